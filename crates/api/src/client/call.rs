//! A request that has not been sent: what to ask, and what is answered.

use std::{fmt, marker::PhantomData};

pub use reqwest::Method;

/// One request to the server whose answer reads as `T`.
pub struct Call<T> {
    /// How.
    pub method: Method,
    /// Path below the base address, beginning with a slash.
    pub path: String,
    /// Query parameters.
    pub query: Vec<(String, String)>,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Body,
    /// Which credential goes with it.
    pub auth: Auth,
    /// Whether sending it twice does no harm by itself. A POST of which that can't be said is
    /// sent with an `Idempotency-Key`, see [`super::Client::send`].
    pub repeatable: bool,
    answer: PhantomData<fn() -> T>,
}

/// The body of a [`Call`].
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// None.
    Empty,
    /// JSON.
    Json(serde_json::Value),
    /// Anything else, as it is.
    Bytes {
        /// Its content type.
        content_type: &'static str,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// Which credential a [`Call`] goes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// None: the endpoint is open.
    None,
    /// The API key, else the session.
    Key,
    /// The session, else the API key, and the server judges.
    Session,
    /// The session; an API key never reaches this endpoint.
    SessionOnly,
}

impl<T> Call<T> {
    /// A call that goes with the API key, else the session.
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
            answer: PhantomData,
        }
    }

    /// A GET.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// A POST.
    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    /// A PATCH. What it sets is a state, so the same one again changes nothing.
    pub fn patch(path: impl Into<String>) -> Self {
        Self::new(Method::PATCH, path).repeatable()
    }

    /// A DELETE.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Adds a query parameter.
    pub fn query(mut self, name: impl Into<String>, value: impl fmt::Display) -> Self {
        self.query.push((name.into(), value.to_string()));
        self
    }

    /// Adds a query parameter if there is a value.
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

    /// Declares that sending it twice does no harm.
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The header of this name, whatever its case.
    pub fn header_value(&self, name: &str) -> Option<&str> {
        let named = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }

    /// Path and query as they stand in the request line.
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
            answer: PhantomData,
        }
    }
}
