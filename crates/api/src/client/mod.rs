//! The REST client of the command line and the console.
//!
//! Endpoints are declared in [`calls`], each with the type of its response. A [`Client`] performs them
//! and returns either typed values or the JSON as received, so that programs can pass on fields that
//! this version does not know. Retries are in [`retry`], the live stream of traces in [`stream`]. This
//! module does not read the environment (reqwest does, for proxies) and prints nothing.

pub mod call;
pub mod calls;
mod cause;
pub mod download;
pub mod error;
pub mod options;
pub mod response;
pub mod retry;
pub mod stream;

use std::{sync::Arc, time::Duration};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use url::Url;
use uuid::Uuid;

pub use call::{Auth, Body, Call};
pub use download::Download;
pub use error::{ApiError, Error};
pub use options::{JUDGE_TIMEOUT, Notice, Observer, Options};
pub use response::ApiResponse;
pub use retry::Retry;
pub use stream::{HEARTBEAT_INTERVAL, StreamEvent, TraceStream};

/// Header by which the server recognizes a repeated POST.
pub const IDEMPOTENCY_KEY_HEADER: &str = "Idempotency-Key";

/// A client of one server, with its credentials. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    options: Arc<Options>,
}

impl Client {
    /// Creates a client. Fails if the address is not http or https, or if a credential cannot be sent in
    /// a header.
    pub fn new(options: Options) -> Result<Self, Error> {
        let bad = |why: &str| Error::Address { url: options.url.clone(), why: why.to_owned() };
        let mut base = Url::parse(&options.url).map_err(|error| bad(wrong_address(error)))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(bad("it must begin with http:// or https://"));
        }
        base.set_query(None);
        base.set_fragment(None);
        if !base.path().ends_with('/') {
            let path = format!("{}/", base.path());
            base.set_path(&path);
        }
        let http = reqwest::Client::builder()
            .user_agent(concat!("loupe/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(Duration::from_secs(10).min(options.timeout))
            // Following a redirect would drop the body of a POST and might leave the configured server.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| bad(&cause::sentence(&error)))?;
        Ok(Self { http, base, options: Arc::new(options) })
    }

    /// Returns a client of the same server with another timeout per request.
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        let options = Options { timeout, ..Options::clone(&self.options) };
        Self { options: Arc::new(options), ..self.clone() }
    }

    /// Returns a client of the same server with another retry policy.
    pub fn with_retry(&self, retry: Retry) -> Self {
        let options = Options { retry, ..Options::clone(&self.options) };
        Self { options: Arc::new(options), ..self.clone() }
    }

    /// Returns the base address, which ends with a slash.
    pub fn url(&self) -> &Url {
        &self.base
    }

    /// Returns whether an API key is configured.
    pub fn has_api_key(&self) -> bool {
        self.options.api_key.is_some()
    }

    /// Returns whether a session token is configured.
    pub fn has_session(&self) -> bool {
        self.options.session_token.is_some()
    }

    /// Performs a call and parses the response.
    pub async fn call<T: DeserializeOwned>(&self, call: &Call<T>) -> Result<T, Error> {
        self.send(call).await?.json()
    }

    /// Performs a call and returns the JSON as received.
    pub async fn value<T>(&self, call: &Call<T>) -> Result<serde_json::Value, Error> {
        self.send(call).await?.json()
    }

    /// Performs a call and retries it if that is safe and can help.
    ///
    /// A POST that is not idempotent is sent with a generated `Idempotency-Key`, the same in every
    /// attempt, so that the server executes it once.
    pub async fn send<T>(&self, call: &Call<T>) -> Result<ApiResponse, Error> {
        let keyed = keyed(call);
        let call = keyed.as_ref().unwrap_or(call);
        self.retried(call, |again| self.attempt(call, again)).await
    }

    /// Opens a response of any length, such as an export. Only opening is retried; a truncated body is
    /// an error of [`Download::chunk`].
    pub async fn download<T>(&self, call: &Call<T>) -> Result<Download, Error> {
        let started = self.retried(call, |_| async {
            let request = self.request(call)?;
            self.started(call, request, self.options.timeout).await
        });
        Ok(Download::new(started.await?))
    }

    /// Retries until success, or until a further attempt is unsafe, useless or not allowed. The
    /// argument of `attempt_once` says whether an earlier attempt may have been executed.
    async fn retried<T, R, F>(&self, call: &Call<T>, attempt_once: impl Fn(bool) -> F) -> Result<R, Error>
    where
        F: Future<Output = Result<R, Error>>,
    {
        let (mut attempt, mut again) = (1, false);
        loop {
            let error = match attempt_once(again).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let Some(delay) = self.options.retry.after(&error, call.repeatable, attempt) else {
                return Err(error);
            };
            attempt += 1;
            again |= error.may_be_done();
            self.notify(|| Notice::Waiting {
                why: error.cause(),
                delay,
                attempt,
                attempts: self.options.retry.attempts,
            });
            tokio::time::sleep(delay).await;
        }
    }

    /// Opens the live stream of the traces that match a filter, after the event `last_event_id` if
    /// given.
    pub async fn stream(
        &self,
        call: &Call<stream::Traces>,
        last_event_id: Option<&str>,
    ) -> Result<TraceStream, Error> {
        let mut request = self.request(call)?;
        request = request.header("Accept", "text/event-stream");
        if let Some(id) = last_event_id {
            request = request.header("Last-Event-ID", id);
        }
        let response = self.started(call, request, self.options.timeout).await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return Err(Error::NotAStream);
        }
        Ok(TraceStream::new(response))
    }

    /// Performs one attempt. A 404 on a repeated DELETE counts as success: an earlier attempt deleted
    /// the resource.
    async fn attempt<T>(&self, call: &Call<T>, again: bool) -> Result<ApiResponse, Error> {
        let request = self.request(call)?;
        let limit = self.options.timeout;
        let deadline = Instant::now() + limit;
        let response = match self.started(call, request, limit).await {
            Err(error) if again && call.method == call::Method::DELETE && error.status() == Some(404) => {
                return Ok(ApiResponse { status: 204, headers: HeaderMap::new(), body: Vec::new() });
            }
            started => started?,
        };
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = tokio::time::timeout_at(deadline, response.bytes())
            .await
            .map_err(|_| self.timed_out())?
            .map_err(|error| self.unreachable(&error))?;
        Ok(ApiResponse { status, headers, body: body.to_vec() })
    }

    /// Sends a request and waits at most `limit` for the head of a successful response.
    async fn started<T>(
        &self,
        call: &Call<T>,
        request: reqwest::RequestBuilder,
        limit: Duration,
    ) -> Result<reqwest::Response, Error> {
        let start = Instant::now();
        let sent = tokio::time::timeout(limit, request.send()).await;
        let sent = sent
            .map_err(|_| self.timed_out())
            .and_then(|sent| sent.map_err(|error| self.unreachable(&error)));
        self.notify(|| requested(call, sent.as_ref(), start.elapsed()));
        let response = sent?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let left = limit.saturating_sub(start.elapsed());
        // If the body cannot be read, the status is reported without it.
        let body =
            tokio::time::timeout(left, response.bytes()).await.ok().and_then(Result::ok).unwrap_or_default();
        Err(Error::Response(Box::new(ApiError::new(status, &headers, &body))))
    }

    fn request<T>(&self, call: &Call<T>) -> Result<reqwest::RequestBuilder, Error> {
        let relative = call.path.trim_start_matches('/');
        let mut url = self.base.join(relative).map_err(|error| Error::Address {
            url: format!("{}{relative}", self.base),
            why: wrong_address(error).to_owned(),
        })?;
        // `join` accepts absolute addresses, which would send the credential to another server.
        if url.origin() != self.base.origin() {
            return Err(Error::Address { url: url.into(), why: "it is on another server".to_owned() });
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let mut request = self.http.request(call.method.clone(), url);
        if let Some(secret) = self.credential(call.auth)? {
            let mut value =
                HeaderValue::try_from(format!("Bearer {secret}")).map_err(|_| Error::BadCredential)?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        for (name, value) in &call.headers {
            // Project names may contain any letter and are sent in UTF-8.
            request = match HeaderValue::from_bytes(value.as_bytes()) {
                Ok(value) => request.header(name, value),
                Err(_) => request.header(name, value),
            };
        }
        Ok(match &call.body {
            Body::Empty => request,
            Body::Json(value) => request.json(value),
            Body::Bytes { content_type, bytes } => {
                request.header(CONTENT_TYPE, *content_type).body(bytes.clone())
            }
        })
    }

    /// Returns the credential that a call sends.
    fn credential(&self, auth: Auth) -> Result<Option<&str>, Error> {
        let key = self.options.api_key.as_deref();
        let session = self.options.session_token.as_deref();
        match auth {
            Auth::None => Ok(None),
            Auth::Key => key.or(session).map(Some).ok_or(Error::NoCredential { session: false }),
            Auth::Session => session.or(key).map(Some).ok_or(Error::NoCredential { session: false }),
            Auth::SessionOnly => session.map(Some).ok_or(Error::NoCredential { session: true }),
        }
    }

    fn notify(&self, notice: impl FnOnce() -> Notice) {
        if let Some(observer) = &self.options.observer {
            observer(&notice());
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Error {
        Error::Unreachable {
            url: self.base.to_string(),
            why: cause::sentence(error),
            sent: !(error.is_connect() || error.is_builder()),
        }
    }

    fn timed_out(&self) -> Error {
        let why = format!("there was no response within {:?}", self.options.timeout);
        Error::Unreachable { url: self.base.to_string(), why, sent: true }
    }
}

/// Adds an idempotency key to a call that needs one; `None` for other calls.
fn keyed<T>(call: &Call<T>) -> Option<Call<T>> {
    if call.method != call::Method::POST || call.repeatable {
        return None;
    }
    let call = call.clone().repeatable();
    Some(match call.header_value(IDEMPOTENCY_KEY_HEADER) {
        Some(_) => call,
        None => call.header(IDEMPOTENCY_KEY_HEADER, random_key()),
    })
}

#[expect(clippy::disallowed_methods, reason = "the key identifies one call; no test depends on it")]
fn random_key() -> String {
    Uuid::new_v4().to_string()
}

fn requested<T>(call: &Call<T>, sent: Result<&reqwest::Response, &Error>, elapsed: Duration) -> Notice {
    let header = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Notice::Requested {
        method: call.method.to_string(),
        path: call.target(),
        outcome: sent.map(|response| response.status().as_u16()).map_err(|error| error.to_string()),
        elapsed,
        request_id: sent.ok().and_then(|response| response.headers().get("x-request-id")).map(header),
        headers: sent
            .map(|response| {
                response.headers().iter().map(|(name, value)| (name.to_string(), header(value))).collect()
            })
            .unwrap_or_default(),
    }
}

/// Explains why an address is invalid.
fn wrong_address(error: url::ParseError) -> &'static str {
    use url::ParseError as Wrong;
    match error {
        Wrong::RelativeUrlWithoutBase => "it must begin with http:// or https://",
        Wrong::EmptyHost => "it names no host",
        Wrong::InvalidPort => "its port must be a number up to 65535",
        Wrong::InvalidIpv4Address | Wrong::InvalidIpv6Address => "its host is not a valid IP address",
        _ => "its host is not a valid name",
    }
}

#[cfg(test)]
mod tests;
