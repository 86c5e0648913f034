//! Requests that a screen defines itself: a call of the API and the type of its response.

use std::{any::Any, fmt, sync::Arc};

use api::client::Call;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::{NetError, Reply, RequestId, requests::Sender};

type Response = Result<Fetched, NetError>;

/// A request that a screen defines itself.
///
/// The screen knows the type of the response and reads it with [`Reply::decoded`].
#[derive(Clone)]
pub struct Fetch {
    /// The id of the request.
    pub request: RequestId,
    /// Method, path, query and body, for tests and logs.
    summary: String,
    send: Arc<dyn Fn(Sender) -> BoxFuture<'static, Response> + Send + Sync>,
}

impl Fetch {
    /// Returns a request that sends a call.
    pub fn new<T>(request: RequestId, call: Call<T>) -> Self
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        let summary = format!("{} {} {:?}", call.method, call.target(), call.body);
        let call = Arc::new(call);
        let send = move |sender: Sender| -> BoxFuture<'static, Response> {
            let call = Arc::clone(&call);
            Box::pin(async move { Ok(Fetched::new(sender.send(&call).await?)) })
        };
        Self { request, summary, send: Arc::new(send) }
    }

    /// Returns the method, the path with the query, and the body.
    #[cfg(test)]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// Sends the request.
    pub(super) async fn send(&self, sender: Sender) -> Response {
        (self.send)(sender).await
    }
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch").field("request", &self.request).field("call", &self.summary).finish()
    }
}

impl PartialEq for Fetch {
    fn eq(&self, other: &Self) -> bool {
        (self.request, &self.summary) == (other.request, &other.summary)
    }
}

/// The response to a [`Fetch`].
pub struct Fetched(Box<dyn Any + Send>);

impl Fetched {
    /// Wraps a response.
    pub fn new<T: Send + 'static>(response: T) -> Self {
        Self(Box::new(response))
    }
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetched")
    }
}

impl Reply {
    /// Returns the response to a [`Fetch`] as the type that its call declares.
    ///
    /// # Errors
    /// The response is of another request.
    pub fn decoded<T: Send + 'static>(self) -> Result<T, NetError> {
        let response = match self {
            Self::Fetched(Fetched(response)) => response.downcast::<T>().ok(),
            _ => None,
        };
        response.map(|response| *response).ok_or_else(|| NetError {
            message: "the response belongs to another request".to_owned(),
            ..NetError::default()
        })
    }
}
