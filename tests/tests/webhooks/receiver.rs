//! Receivers of webhooks: they speak TLS, record the requests, and respond as a test decides.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tests::authority::Authority;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

/// A recorded request.
#[derive(Clone, Debug)]
pub struct Received {
    /// The request line.
    pub line: String,
    /// The headers, with names in lower case.
    pub headers: HashMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    /// Returns the body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the event's ID.
    pub fn event(&self) -> String {
        self.headers["webhook-id"].clone()
    }
}

/// What a receiver does with a request.
#[derive(Clone, Debug)]
pub enum Response {
    /// Responds with a status and without a body.
    Status(u16),
    /// Responds with a status and without a body, after a delay.
    Late(Duration, u16),
    /// Sends these bytes; the connection stays open for the next request.
    Bytes(Vec<u8>),
    /// Sends these bytes, and nothing more until the client disconnects.
    Hang(Vec<u8>),
    /// Sends the first bytes, and then repeats the others.
    Endless(Vec<u8>, Vec<u8>, Duration),
    /// Sends these bytes, and then closes the connection.
    Close(Vec<u8>),
}

/// A receiver, which runs until it is dropped.
pub struct Receiver {
    /// The port on 127.0.0.1.
    pub port: u16,
    received: Arc<Mutex<Vec<Received>>>,
    serving: JoinHandle<()>,
}

impl Receiver {
    /// Starts a receiver with a certificate for these names. `respond` gets each request and the number of requests
    /// before it.
    pub async fn start(
        authority: &Authority,
        names: &[&str],
        until: i32,
        respond: impl Fn(&Received, usize) -> Response + Send + Sync + 'static,
    ) -> Self {
        let acceptor = authority.acceptor(names, until);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (received, respond) = (Arc::<Mutex<Vec<Received>>>::default(), Arc::new(respond));
        let recorded = Arc::clone(&received);
        let serving = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, recorded, respond) =
                    (acceptor.clone(), Arc::clone(&recorded), Arc::clone(&respond));
                tokio::spawn(async move {
                    let Ok(mut secure) = acceptor.accept(socket).await else { return };
                    while let Some(request) = read(&mut secure).await {
                        let response = {
                            let mut recorded = recorded.lock().unwrap();
                            recorded.push(request.clone());
                            respond(&request, recorded.len() - 1)
                        };
                        if !write(&mut secure, response).await {
                            return;
                        }
                    }
                });
            }
        });
        Self { port, received, serving }
    }

    /// Returns the address for a webhook.
    pub fn url(&self) -> String {
        format!("https://hook.example:{}/in?from=loupe", self.port)
    }

    /// Returns the requests so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Returns a response with a status, header lines and a body.
pub fn response(status: u16, headers: &[&str], body: &[u8]) -> Response {
    let headers: String = headers.iter().map(|it| format!("{it}\r\n")).collect();
    let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len());
    Response::Bytes([head.as_bytes(), body].concat())
}

/// Sends a response. Returns whether the connection can have another request.
async fn write(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), response: Response) -> bool {
    match response {
        Response::Late(time, status) => {
            tokio::time::sleep(time).await;
            Box::pin(write(stream, Response::Status(status))).await
        }
        Response::Status(status) => {
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(head.as_bytes()).await.is_ok() && stream.flush().await.is_ok()
        }
        Response::Bytes(bytes) => stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok(),
        Response::Hang(bytes) => {
            _ = stream.write_all(&bytes).await;
            _ = stream.flush().await;
            _ = stream.read(&mut [0]).await;
            false
        }
        Response::Endless(first, then, every) => {
            let mut written = stream.write_all(&first).await;
            while written.is_ok() {
                tokio::time::sleep(every).await;
                written = stream.write_all(&then).await.and(stream.flush().await);
            }
            false
        }
        Response::Close(bytes) => {
            _ = stream.write_all(&bytes).await;
            _ = stream.flush().await;
            false
        }
    }
}

/// Reads a request; none at the end of the connection.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let line = lines.next().unwrap().to_owned();
    let headers: HashMap<String, String> = lines
        .filter_map(|it| it.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers["content-length"].parse().unwrap();
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return None;
        }
    }
    Some(Received { line, headers, body: bytes[end..end + length].to_vec() })
}
