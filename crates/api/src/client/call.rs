//! A request before it is sent, and the type of its response.

use std::{fmt, marker::PhantomData};

pub use reqwest::Method;

/// One request whose response body is a `T`.
pub struct Call<T> {
    /// HTTP method.
    pub method: Method,
    /// Path below the base address, beginning with a slash.
    pub path: String,
    /// Query parameters.
    pub query: Vec<(String, String)>,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Body,
    /// The credential to send.
    pub auth: Auth,
    /// Whether the request is idempotent by itself. Other POST requests are sent with an
    /// `Idempotency-Key`; see [`super::Client::send`].
    pub repeatable: bool,
    response: PhantomData<fn() -> T>,
}

/// The body of a [`Call`].
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// No body.
    Empty,
    /// A JSON body.
    Json(serde_json::Value),
    /// Other content.
    Bytes {
        /// The content type.
        content_type: &'static str,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// The credential that a [`Call`] sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// No credential: the endpoint is public.
    None,
    /// The API key, else the session token.
    Key,
    /// The session token, else the API key; the server decides.
    Session,
    /// The session token; the endpoint does not accept API keys.
    SessionOnly,
}

impl<T> Call<T> {
    /// Creates a call that sends the API key, else the session token.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        let repeatable = matches!(method, Method::GET | Method::HEAD | Method::DELETE | Method::PUT);
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Body::Empty,
            auth: Auth::Key,
            repeatable,
            response: PhantomData,
        }
    }

    /// Creates a GET request.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// Creates a POST request.
    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    /// Creates a PATCH request. Repeating it sets the same state again, so it is idempotent.
    pub fn patch(path: impl Into<String>) -> Self {
        Self::new(Method::PATCH, path).repeatable()
    }

    /// Creates a DELETE request.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Adds a query parameter.
    pub fn query(mut self, name: impl Into<String>, value: impl fmt::Display) -> Self {
        self.query.push((name.into(), value.to_string()));
        self
    }

    /// Adds a query parameter if the value is present.
    pub fn maybe(self, name: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Sets a JSON body.
    pub fn json(mut self, body: serde_json::Value) -> Self {
        self.body = Body::Json(body);
        self
    }

    /// Sets the credential.
    pub fn with(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// Declares the request idempotent.
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Returns the value of a header; the name is case-insensitive.
    pub fn header_value(&self, name: &str) -> Option<&str> {
        let named = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }

    /// Returns path and query as in the request line.
    pub fn target(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        format!("{}?{query}", self.path)
    }
}

impl<T> Clone for Call<T> {
    fn clone(&self) -> Self {
        Self {
            method: self.method.clone(),
            path: self.path.clone(),
            query: self.query.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            auth: self.auth,
            repeatable: self.repeatable,
            response: PhantomData,
        }
    }
}
