//! Converts errors to responses.

use api::{ErrorBody, ErrorCode};
use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::error::{Error, Problem, internal};

impl Problem {
    /// Returns the response body of a problem.
    pub fn body(self, request_id: &str) -> ErrorBody {
        use ErrorCode::{ProjectArchived, WebhookUrlNotHttps, WebhookUrlPrivateIp, WebhookUrlUnresolvable};
        let (error, message) = match self.code {
            ProjectArchived => (self.message.clone(), Some(self.message)),
            WebhookUrlNotHttps | WebhookUrlPrivateIp | WebhookUrlUnresolvable => {
                (self.code.as_str().to_owned(), Some(self.message))
            }
            _ => (self.message, None),
        };
        ErrorBody {
            message,
            error,
            code: self.code.as_str().to_owned(),
            request_id: request_id.to_owned(),
            required_plan: self.required_plan,
            fields: self.fields,
            trace_id: self.stored.map(|it| it.0),
            identical: self.stored.map(|it| it.1),
        }
    }
}

/// A mark of a response whose body must still be written by the outermost layer, which knows the request ID
/// and the encoding of errors.
#[derive(Clone, Debug)]
pub struct UnwrittenProblem(pub Problem);

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let problem = match self {
            Self::Problem(problem) => *problem,
            Self::Internal(source) => {
                let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
                response.extensions_mut().insert(InternalErrorCause(format!("{source:#}")));
                response.extensions_mut().insert(UnwrittenProblem(internal()));
                return response;
            }
        };
        let status = StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        if let Some(seconds) = problem.retry_after_seconds() {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if problem.code == ErrorCode::Unauthorized {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(UnwrittenProblem(problem));
        response
    }
}

/// The cause of a 500, for the log only.
#[derive(Clone, Debug)]
pub struct InternalErrorCause(pub String);
