//! Errors of requests.
//!
//! A [`Problem`] is an error that the caller can correct; any other error is [`Error::Internal`],
//! logged once with the request ID and returned as a 500 without details.
//! `http::error` turns both into responses.

use api::{ErrorCode, FieldError, Plan};
use store::{DbError, SqlError, StoreError, health::Unavailable};
use uuid::Uuid;

use crate::memory::MemoryExhausted;

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
    /// Returns whether the error is temporary: the database is unreachable or busy.
    pub fn is_temporary(&self) -> bool {
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

    /// Returns after how many seconds the same request may succeed; none when trying again cannot help.
    pub fn retry_after_seconds(&self) -> Option<u16> {
        match self.code {
            ErrorCode::Overloaded => Some(1),
            // The authentication middleware knows the exact time.
            ErrorCode::RateLimited => Some(5),
            _ => None,
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

/// Builds the error for a request that the server cannot finish because it stops.
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
            // Only tenants read large texts.
            StoreError::OutOfMemory(_) => MemoryExhausted::Tenant.into(),
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

impl From<MemoryExhausted> for Error {
    fn from(exhausted: MemoryExhausted) -> Self {
        problem(ErrorCode::Overloaded, exhausted.to_string())
    }
}

/// Returns the problem that a client gets for an internal error.
pub fn internal() -> Problem {
    Problem::new(ErrorCode::Internal, "internal error; the server's log has the details under the request ID")
}
