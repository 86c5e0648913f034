//! Clients of the server, and the responses that they get.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test whose request fails, fails")]
#![allow(clippy::disallowed_methods, reason = "a test uses its own client")]

use reqwest::{Method, header::HeaderMap};
use serde_json::Value;

use crate::{conformance, declared};

/// A client with a token, or without one.
#[derive(Clone, Debug)]
pub struct Caller {
    client: reqwest::Client,
    url: String,
    token: Option<String>,
}

/// A complete response.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Caller {
    /// Creates a client of the server at `url`.
    pub fn new(url: &str, token: Option<&str>) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { client, url: url.to_owned(), token: token.map(str::to_owned) }
    }

    /// Returns the bearer token, if the client has one.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Builds a request without headers and body, which is not sent yet.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request and reads the response, which must match the OpenAPI document; an error must be one
    /// that the route declares.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Reply {
        let request = request.build().unwrap();
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let response = self.client.execute(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let reply = Reply { status, headers, body: response.bytes().await.unwrap().to_vec() };
        if status >= 400 && method != Method::HEAD {
            declared::check(&method, &path, status, reply.code().as_deref());
        }
        conformance::check(&method, &path, &reply);
        reply
    }

    /// Sends a `GET` request.
    pub async fn get(&self, path: &str) -> Reply {
        self.send(self.request(Method::GET, path)).await
    }

    /// Sends a `POST` request with JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// Sends a `PUT` request with JSON.
    pub async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send(self.request(Method::PUT, path).json(body)).await
    }

    /// Sends a `DELETE` request.
    pub async fn delete(&self, path: &str) -> Reply {
        self.send(self.request(Method::DELETE, path)).await
    }

    /// Sends a `POST` request with any body.
    pub async fn post_bytes(&self, path: &str, content_type: &str, body: Vec<u8>) -> Reply {
        self.send(self.request(Method::POST, path).header("content-type", content_type).body(body)).await
    }
}

impl Reply {
    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|it| panic!("{it}: {}", self.text()))
    }

    /// Returns the error code: from the header on OTLP endpoints, otherwise from the body.
    pub fn code(&self) -> Option<String> {
        if let Some(code) = self.headers.get("x-error-code") {
            return code.to_str().ok().map(str::to_owned);
        }
        let value: Value = serde_json::from_slice(&self.body).ok()?;
        value["code"].as_str().map(str::to_owned)
    }

    /// Returns the body of a success; panics on an error.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text());
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// Panics unless the response is this error, with a complete error body.
    #[track_caller]
    pub fn is(&self, status: u16, code: &str) -> &Self {
        assert_eq!((self.status, self.code().as_deref()), (status, Some(code)), "{}", self.text());
        let body = self.json();
        assert!(body["error"].as_str().is_some_and(|it| !it.is_empty()), "{body}");
        assert_eq!(body["request_id"].as_str(), self.headers["x-request-id"].to_str().ok(), "{body}");
        self
    }
}
