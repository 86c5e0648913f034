//! Requests, which their owners define: a call of the API and the type of its response.
//!
//! The owner, a screen or the shell, states the call where it needs it and reads the response as the type that the
//! call declares. Nothing here lists the requests of the console.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use api::{
    Timestamp,
    client::{self, Auth, Body, Call, Client, calls::Page},
    page::MAX_LIMIT,
};
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::{
    Msg, NetError, RateLimit, RequestId,
    error::{net_error, unreadable},
};

/// Maximum duration of a request.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of pages of a list that is shown as a whole; further pages are left out.
const MAX_PAGES: usize = 10;

type SentRequest = BoxFuture<'static, Result<Response, NetError>>;

/// A list that comes in pages and is shown as a whole. The owner of the list implements it.
pub trait List: DeserializeOwned + Send + Sync + 'static {
    /// A row.
    type Row: Send + 'static;
    /// Returns the rows of a page, and the cursor of the next page.
    fn into_rows(self) -> (Vec<Self::Row>, Option<String>);
}

/// A request to the server.
#[derive(Clone)]
pub struct Request {
    /// The id, by which the response is recognised.
    pub id: RequestId,
    /// The longest time that the request may take.
    timeout: Duration,
    /// Method, path, query, credential and body, for tests and logs.
    summary: String,
    send: Arc<dyn Fn(Sender) -> SentRequest + Send + Sync>,
}

impl Request {
    /// Returns a request that sends a call. Its response is a `T`.
    pub fn new<T>(id: RequestId, call: Call<T>) -> Self
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        let summary = summary_of(&call);
        let call = Arc::new(call);
        let send = move |sender: Sender| -> SentRequest {
            let call = Arc::clone(&call);
            Box::pin(async move { sender.send(&call).await.map(Response::new) })
        };
        Self { id, timeout: REQUEST_TIMEOUT, summary, send: Arc::new(send) }
    }

    /// Returns a request for all pages of a list. Its response is a vector of rows, and whether there are more.
    pub fn all<L, F>(id: RequestId, call: F) -> Self
    where
        L: List,
        F: Fn(&Page) -> Call<L> + Send + Sync + 'static,
    {
        let summary = summary_of(&call(&Page { limit: Some(MAX_LIMIT), cursor: None }));
        let call = Arc::new(call);
        let send = move |sender: Sender| -> SentRequest {
            let call = Arc::clone(&call);
            Box::pin(async move { sender.send_all(&*call).await })
        };
        Self { id, timeout: REQUEST_TIMEOUT, summary, send: Arc::new(send) }
    }

    /// Sets the longest time that the request may take.
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the method and the path with the query, then `as Session` if the session token goes before the API
    /// key, then the JSON body.
    #[cfg(test)]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// Sends the request.
    pub(super) async fn send(
        &self,
        client: &Client,
        messages: UnboundedSender<Msg>,
    ) -> Result<Response, NetError> {
        (self.send)(Sender { client: client.with_timeout(self.timeout), messages }).await
    }
}

fn summary_of<T>(call: &Call<T>) -> String {
    let auth = if call.auth == Auth::Key { String::new() } else { format!(" as {:?}", call.auth) };
    let body =
        if let Body::Json(body) = &call.body { format!(" {}", without_secret(body)) } else { String::new() };
    format!("{} {}{auth}{body}", call.method, call.target())
}

/// Returns a body without the secret of a webhook, because summaries can be logged.
fn without_secret(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(secret) = body.get_mut("secret") {
        *secret = Value::from("***");
    }
    body
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("id", &self.id).field("call", &self.summary).finish()
    }
}

impl PartialEq for Request {
    fn eq(&self, other: &Self) -> bool {
        (self.id, &self.summary) == (other.id, &other.summary)
    }
}

/// Sends the calls of one request.
struct Sender {
    client: Client,
    messages: UnboundedSender<Msg>,
}

impl Sender {
    /// Sends a call, reads its response and reports the rate limit.
    async fn send<T: DeserializeOwned>(&self, call: &Call<T>) -> Result<T, NetError> {
        let answer = self.client.send(call).await.map_err(net_error)?;
        if let Some((limit, remaining)) = answer.rate_limit() {
            let reset =
                answer.headers.get("x-ratelimit-reset").and_then(|it| it.to_str().ok()?.parse::<i64>().ok());
            let reset = reset.map(|seconds| Timestamp::from_micros(seconds.saturating_mul(1_000_000)));
            let _ = self.messages.send(Msg::Limit(RateLimit { limit, remaining, reset }));
        }
        answer.json().map_err(|error| match error {
            client::Error::Unreadable { .. } => unreadable(&answer),
            other => net_error(other),
        })
    }

    /// Requests the pages of a list, up to [`MAX_PAGES`].
    async fn send_all<L: List>(&self, call: impl Fn(&Page) -> Call<L>) -> Result<Response, NetError> {
        let mut page = Page { limit: Some(MAX_LIMIT), cursor: None };
        let mut rows = Vec::new();
        for _ in 0..MAX_PAGES {
            let (more, next) = self.send(&call(&page)).await?.into_rows();
            rows.extend(more);
            page.cursor = next;
            if page.cursor.is_none() {
                break;
            }
        }
        Ok(Response { has_more: page.cursor.is_some(), ..Response::new(rows) })
    }
}

/// The response to a [`Request`].
pub struct Response {
    value: Box<dyn Any + Send>,
    has_more: bool,
}

impl Response {
    /// Wraps a response.
    pub fn new<T: Send + 'static>(response: T) -> Self {
        Self { value: Box::new(response), has_more: false }
    }

    /// Marks the response as a list without its last pages.
    #[cfg(test)]
    pub fn with_more(self) -> Self {
        Self { has_more: true, ..self }
    }

    /// Returns whether the response is a list that was requested as a whole and has more pages than were read.
    pub const fn has_more(&self) -> bool {
        self.has_more
    }

    /// Returns the response as the type that the call declares.
    ///
    /// # Errors
    /// Fails when the response has another type than the call declares.
    pub fn decoded<T: Send + 'static>(self) -> Result<T, NetError> {
        self.value.downcast::<T>().map(|response| *response).map_err(|_| NetError {
            message: "the response belongs to another request".to_owned(),
            ..NetError::default()
        })
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Response")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use api::{client::calls, control::ActionFilter, control::ControlActionList};
    use serde_json::json;
    use stub::{StubResponse, StubServer};
    use tokio::sync::mpsc;

    use super::*;
    use crate::{net::server::connect, options::Connection};

    /// Requests all pages of a list that has this many. Returns the number of requests, and whether there are more.
    async fn read_all(pages: usize) -> (usize, bool) {
        let stub = StubServer::new(move |_, before| {
            let next = (before + 1 < pages).then(|| format!("page-{before}"));
            StubResponse::json(json!({ "actions": [], "has_more": next.is_some(), "next_cursor": next }))
        });
        let connection = Connection {
            url: stub.url().to_owned(),
            session_token: Some("lps_test".into()),
            ..Connection::default()
        };
        let request = Request::all(1, |page| calls::control_actions(&ActionFilter::default(), page));
        let (sender, _inbox) = mpsc::unbounded_channel();
        let response = request.send(&connect(&connection).unwrap(), sender).await.unwrap();
        let has_more = response.has_more();
        let rows = response.decoded::<Vec<<ControlActionList as List>::Row>>().unwrap();
        assert!(rows.is_empty());
        (stub.requests().len(), has_more)
    }

    #[tokio::test]
    async fn list_with_too_many_pages_says_that_it_has_more() {
        assert_eq!(read_all(MAX_PAGES).await, (MAX_PAGES, false));
        assert_eq!(read_all(MAX_PAGES + 1).await, (MAX_PAGES, true));
    }
}
