//! The requests to one server. Each is a task that reports its result as a message.

use std::time::Duration;

use api::{
    client::{self, Client, Retry, StreamEvent as Wire, calls},
    plain::io_error,
    trace::Trace,
};
use tokio::{
    sync::mpsc::UnboundedSender,
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep_until},
};

use super::{
    Effect, Msg, NetError, Request, RequestId, StreamEvent, TraceQuery, error::net_error, files::write_new,
    request::REQUEST_TIMEOUT,
};
use crate::options::Connection;

/// Returns a client for a server and its credentials.
///
/// # Errors
/// An address or a credential that cannot be used.
pub fn connect(connection: &Connection) -> Result<Client, client::Error> {
    let mut options = client::Options::new(&connection.url);
    options.api_key.clone_from(&connection.api_key);
    options.session_token.clone_from(&connection.session_token);
    options.timeout = REQUEST_TIMEOUT;
    // The console repeats requests itself and shows the wait. Requests that change something are never repeated.
    options.retry = Retry::NEVER;
    Client::new(options)
}

/// A server and the open requests to it.
pub struct Server {
    /// The client, or why there is none; each request is then answered with this error.
    client: Result<Client, NetError>,
    sender: UnboundedSender<Msg>,
    stream: Option<AbortHandle>,
    /// The tasks of the open requests. Dropping them aborts the requests.
    tasks: JoinSet<()>,
}

impl Server {
    /// Returns a server without open requests.
    pub fn new(client: Result<Client, client::Error>, sender: UnboundedSender<Msg>) -> Self {
        Self { client: client.map_err(net_error), sender, stream: None, tasks: JoinSet::new() }
    }

    /// Returns another server that reports over the same channel.
    pub fn moved(&self, client: Result<Client, client::Error>) -> Self {
        Self::new(client, self.sender.clone())
    }

    /// Reports a message.
    pub fn tell(&self, msg: Msg) {
        // Without a receiver, the loop that reads the messages has ended.
        let _ = self.sender.send(msg);
    }

    /// Starts the task of an effect that waits for the server or a file. Other effects belong to the driver.
    pub fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::CloseStream => self.close(),
            Effect::OpenStream { request, query } => self.open(request, query),
            Effect::Request(request) => self.send(request),
            Effect::Write { path, text, notice } => self.write(path, text, notice),
            Effect::Connect(_)
            | Effect::Go(_)
            | Effect::RefreshList
            | Effect::ShowEvaluations
            | Effect::Reconnected { .. }
            | Effect::KeepBookmarks(_)
            | Effect::Copy(_)
            | Effect::Redraw
            | Effect::Suspend
            | Effect::Quit => {}
        }
    }

    fn send(&mut self, request: Request) {
        let Some(client) = self.client(request.id) else { return };
        let messages = self.sender.clone();
        self.spawn(async move {
            let result = request.send(&client, messages.clone()).await;
            let _ = messages.send(Msg::Reply(request.id, result));
        });
    }

    fn write(&mut self, path: String, text: String, notice: String) {
        let sender = self.sender.clone();
        self.spawn(async move {
            let result = write_new(&path, &text).await;
            let failed = |error: std::io::Error| format!("{path}: {}", io_error(&error));
            let _ = sender.send(Msg::Written(result.map(|()| notice).map_err(failed)));
        });
    }

    fn open(&mut self, request: RequestId, query: TraceQuery) {
        self.close();
        if let Some(client) = self.client(request) {
            let task = follow(client, query, request, self.sender.clone());
            self.stream = Some(self.tasks.spawn(task));
        }
    }

    fn close(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.abort();
        }
    }

    /// Returns the client. Without one, answers the request with the reason.
    fn client(&self, request: RequestId) -> Option<Client> {
        match &self.client {
            Ok(client) => Some(client.clone()),
            Err(error) => {
                self.tell(Msg::Reply(request, Err(error.clone())));
                None
            }
        }
    }

    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        // Finished tasks are removed, so that the set does not grow.
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(task);
    }
}

/// Reads the live stream until it ends.
async fn follow(client: Client, query: TraceQuery, request: RequestId, sender: UnboundedSender<Msg>) {
    let tell = |event| sender.send(Msg::Stream(request, event)).is_ok();
    let call = calls::trace_stream(&query.filter, query.project);
    let mut stream = match client.stream(&call, None).await {
        Ok(stream) => stream,
        Err(error) => {
            tell(StreamEvent::Closed(net_error(error)));
            return;
        }
    };
    if !tell(StreamEvent::Open) {
        return;
    }
    let why = loop {
        match stream.next().await {
            Some(Ok(Wire::Alive)) => {
                if !tell(StreamEvent::Alive) {
                    return;
                }
            }
            // No trace is lost: the stream resumes after the last one received.
            Some(Ok(Wire::Lagged { cursor })) => match client.stream(&call, cursor.as_deref()).await {
                Ok(resumed) => stream = resumed,
                Err(error) => break net_error(error),
            },
            Some(Ok(Wire::Trace { trace, .. })) => match serde_json::from_value::<Trace>(trace) {
                Ok(trace) => {
                    if !tell(StreamEvent::Traces(vec![trace])) {
                        return;
                    }
                }
                Err(_) => {
                    break NetError {
                        message: "the stream sent a trace that this version does not understand".to_owned(),
                        ..NetError::default()
                    };
                }
            },
            Some(Err(error)) => break net_error(error),
            None => {
                break NetError { message: "the server ended the stream".to_owned(), ..NetError::default() };
            }
        }
    };
    // A pause, because the server may end each stream at once.
    sleep_until(Instant::now() + Duration::from_millis(200)).await;
    tell(StreamEvent::Closed(why));
}
