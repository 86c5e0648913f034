//! A stub HTTP server for tests of clients: a function returns the response to each request, and the
//! requests are recorded. It runs on threads, beside any runtime, and is never part of a product.

#![allow(clippy::unwrap_used, reason = "a test stops at the first failure")]

mod request;
mod response;

use std::{
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

pub use request::StubRequest;
pub use response::{ResponseSwitch, StubResponse};

/// A server on a loopback address, which runs until the test ends.
pub struct StubServer {
    url: String,
    requests: Arc<Mutex<Vec<StubRequest>>>,
}

impl StubServer {
    /// Starts a server; `respond` receives each request and the number of requests before it.
    pub fn new(respond: impl Fn(&StubRequest, usize) -> StubResponse + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&requests);
        let respond = Arc::new(respond);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (recorded, respond) = (Arc::clone(&recorded), Arc::clone(&respond));
                std::thread::spawn(move || serve(stream, &recorded, &*respond));
            }
        });
        Self { url, requests }
    }

    /// Starts a server that returns these responses in order; another request fails.
    pub fn in_order(responses: Vec<StubResponse>) -> Self {
        Self::new(move |_, before| responses[before].clone())
    }

    /// Returns the base URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<StubRequest> {
        self.requests.lock().unwrap().clone()
    }
}

/// Serves the one request of a connection.
fn serve(
    mut stream: TcpStream,
    recorded: &Mutex<Vec<StubRequest>>,
    respond: &(dyn Fn(&StubRequest, usize) -> StubResponse + Send + Sync),
) {
    let request = StubRequest::read(&mut stream);
    let before = {
        let mut recorded = recorded.lock().unwrap();
        recorded.push(request.clone());
        recorded.len() - 1
    };
    // A client that disconnects is not a failure of the test.
    _ = respond(&request, before).send(&mut stream);
}
