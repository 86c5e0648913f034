//! The errors of requests, and their kinds.

use api::client;

/// The error of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetError {
    /// The HTTP status; none without a response.
    pub status: Option<u16>,
    /// The machine-readable code, if the server sent one.
    pub code: Option<String>,
    /// The message.
    pub message: String,
    /// Identifier of the request, for the server's log.
    pub request_id: Option<String>,
    /// The required plan, if the plan is the reason.
    pub required_plan: Option<String>,
    /// Seconds to wait before the next request.
    pub retry_after: Option<u64>,
    /// The body is not the API's JSON: it comes from a proxy or another server.
    pub not_api: bool,
}

/// The kinds of failed requests that the console describes differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// No response.
    Unreachable,
    /// 429.
    RateLimited,
    /// 5xx and other statuses that a retry may clear.
    ServerFault,
    /// 401.
    Unauthorized,
    /// 402.
    Plan,
    /// 403.
    Forbidden,
    /// 404.
    NotFound,
    /// The response is not the API's.
    NotApi,
    /// Any other error.
    Rejected,
}

impl NetError {
    /// Returns the kind of this failure.
    pub const fn kind(&self) -> FailureKind {
        match self.status {
            None => FailureKind::Unreachable,
            Some(429) => FailureKind::RateLimited,
            Some(408 | 425 | 500..=599) => FailureKind::ServerFault,
            Some(_) if self.not_api => FailureKind::NotApi,
            Some(401) => FailureKind::Unauthorized,
            Some(402) => FailureKind::Plan,
            Some(403) => FailureKind::Forbidden,
            Some(404) => FailureKind::NotFound,
            Some(_) => FailureKind::Rejected,
        }
    }

    /// Returns whether the server refused the credential.
    pub fn is_unauthorized(&self) -> bool {
        self.kind() == FailureKind::Unauthorized
    }

    /// Returns whether a retry may succeed soon.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind(), FailureKind::Unreachable | FailureKind::RateLimited | FailureKind::ServerFault)
    }
}

/// Converts an error of the client.
pub fn net_error(error: client::Error) -> NetError {
    let message = error.to_string();
    match error {
        client::Error::Response(response) => {
            // An error of the API is an object with a sentence; anything else, such as a redirect, comes
            // from another server.
            let not_api = !response.body.is_object();
            let status = response.status;
            let redirected = (300..400).contains(&status);
            NetError {
                status: Some(status),
                code: Some(response.code).filter(|code| !code.is_empty()),
                required_plan: response
                    .body
                    .get("required_plan")
                    .and_then(|it| it.as_str())
                    .map(str::to_owned),
                message: if not_api && !redirected {
                    "the response is not the JSON of the API".to_owned()
                } else {
                    response.message
                },
                request_id: response.request_id,
                retry_after: response.retry_after.map(|wait| wait.as_secs()),
                not_api,
            }
        }
        // Nothing was sent, and nothing is sent until there is a usable credential.
        client::Error::NoCredential { .. } | client::Error::BadCredential => {
            NetError { status: Some(401), message, ..NetError::default() }
        }
        client::Error::Unreadable { .. } => NetError {
            status: Some(200),
            message: "the response is not the JSON of the API".to_owned(),
            not_api: true,
            ..NetError::default()
        },
        client::Error::Unreachable { .. } | client::Error::Address { .. } | client::Error::NotAStream => {
            NetError { message, ..NetError::default() }
        }
    }
}

/// Returns the error for a successful response that is not the API's.
pub fn unreadable(response: &client::ApiResponse) -> NetError {
    let kind = response.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let what = if kind.starts_with("text/html") || response.body.trim_ascii_start().starts_with(b"<") {
        "an HTML page"
    } else if kind.starts_with("application/json") {
        "JSON that this version of the console does not understand"
    } else {
        "neither JSON nor HTML"
    };
    let message = format!("the response is {what}");
    NetError { status: Some(response.status), message, not_api: true, ..NetError::default() }
}
