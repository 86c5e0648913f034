//! Errors of requests.
//!
//! A [`Problem`] is an error that the caller can correct; any other error is [`Error::Internal`],
//! logged once with the request ID and returned as a 500 without details.

use api::{ErrorBody, ErrorCode, FieldError, Plan};
use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use store::{DbError, SqlError, StoreError, health::Unavailable};
use uuid::Uuid;

use crate::memory::Exhausted;

/// The result of functions that serve a request.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error that the caller can correct.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// An error of the server.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}

impl Error {
    /// Whether the error is temporary: the database is unreachable or busy.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Problem(it) if it.code == ErrorCode::Overloaded)
    }
}

/// An error that the caller can understand and correct.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// The error code, which determines the status.
    pub code: ErrorCode,
    /// A message for people.
    pub message: String,
    /// The invalid fields.
    pub fields: Vec<FieldError>,
    /// The lowest plan that unlocks the feature.
    pub required_plan: Option<Plan>,
    /// The stored trace with the same ID, and whether it equals the one sent.
    pub stored: Option<(Uuid, bool)>,
}

impl Problem {
    /// Creates a problem.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), fields: Vec::new(), required_plan: None, stored: None }
    }

    /// Creates the error for a value that is not allowed.
    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        let (field, message) = (field.into(), message.into());
        let mut problem = Self::new(ErrorCode::ValidationFailed, format!("{field}: {message}"));
        problem.fields.push(FieldError { field, message });
        problem
    }

    /// Creates the error for a missing required field; `what` describes the expected value.
    pub fn missing(field: &str, what: &str) -> Self {
        Self::new(ErrorCode::InvalidBody, format!("missing field `{field}`: {what}"))
    }

    /// Creates the error for a request that requires a higher plan: `needed` is the lowest sufficient
    /// plan, `plan` the tenant's.
    pub fn plan_too_low(needed: Plan, plan: Plan) -> Self {
        let message = format!("this requires the {needed} plan or above; the tenant is on {plan}");
        Self { required_plan: Some(needed), ..Self::new(ErrorCode::PlanUpgradeRequired, message) }
    }

    /// Returns the body of the response.
    pub fn body(self, request_id: &str) -> ErrorBody {
        ErrorBody {
            message: (self.code == ErrorCode::ProjectArchived).then(|| self.message.clone()),
            error: self.message,
            code: self.code.as_str().to_owned(),
            request_id: request_id.to_owned(),
            required_plan: self.required_plan,
            fields: self.fields,
            trace_id: self.stored.map(|it| it.0),
            identical: self.stored.map(|it| it.1),
        }
    }
}

/// Creates an error from a code and a message.
pub fn problem(code: ErrorCode, message: impl Into<String>) -> Error {
    Problem::new(code, message).into()
}

/// Creates a 404: the tenant has no such resource, whether or not another tenant has.
pub fn not_found(what: &str) -> Error {
    problem(ErrorCode::NotFound, format!("there is no such {what}"))
}

/// Builds the error for a request that the server can't finish because it stops.
pub fn stopping() -> Error {
    problem(ErrorCode::Overloaded, "the server is stopping; try again shortly")
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) | StoreError::Unreachable(_) => {
                problem(ErrorCode::Overloaded, error.to_string())
            }
            // Only reads of a tenant grow while they run.
            StoreError::OutOfMemory(_) => Exhausted::Tenant.into(),
            StoreError::Database(error) => Self::Internal(anyhow::Error::new(error).context("database")),
        }
    }
}

impl From<DbError> for Error {
    fn from(error: DbError) -> Self {
        StoreError::from(error).into()
    }
}

impl From<SqlError> for Error {
    fn from(error: SqlError) -> Self {
        StoreError::from(error).into()
    }
}

impl From<Unavailable> for Error {
    fn from(reason: Unavailable) -> Self {
        StoreError::from(reason).into()
    }
}

impl From<Exhausted> for Error {
    fn from(exhausted: Exhausted) -> Self {
        problem(ErrorCode::Overloaded, exhausted.to_string())
    }
}

/// Marks a response whose body must still be written by the outermost layer, which knows the request ID
/// and the encoding of errors.
#[derive(Clone, Debug)]
pub struct UnwrittenProblem(pub Problem);

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let problem = match self {
            Self::Problem(problem) => *problem,
            Self::Internal(source) => {
                let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
                response.extensions_mut().insert(Fault(format!("{source:#}")));
                response.extensions_mut().insert(UnwrittenProblem(internal()));
                return response;
            }
        };
        let status = StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        match problem.code {
            ErrorCode::Overloaded => {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            // The authentication middleware replaces this by a more exact time.
            ErrorCode::RateLimited => {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            ErrorCode::Unauthorized => {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response.extensions_mut().insert(UnwrittenProblem(problem));
        response
    }
}

/// The cause of a 500, for the log only.
#[derive(Clone, Debug)]
pub struct Fault(pub String);

/// Returns the problem that a client gets for an internal error.
pub fn internal() -> Problem {
    Problem::new(ErrorCode::Internal, "internal error; the server's log has the details under the request ID")
}
