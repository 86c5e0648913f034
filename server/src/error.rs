//! What can go wrong, classified once.
//!
//! A [`Problem`] is the caller's to mend and says how; anything else is [`Error::Internal`],
//! logged once with the request id and answered as a bare 500. How both become responses is HTTP's
//! (`http::error`).

use api::{ErrorCode, FieldError, Plan};
use store::{DbError, SqlError, StoreError, health::Unavailable};
use uuid::Uuid;

use crate::memory::Exhausted;

/// Result of everything that serves a request.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any failure of a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's to mend.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// Ours to mend.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}

impl Error {
    /// Whether it passes by itself, so that the same may work later: the database is away or busy.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Problem(it) if it.code == ErrorCode::Overloaded)
    }
}

/// A failure that the caller can understand and mend.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// The machine-readable reason; it fixes the status.
    pub code: ErrorCode,
    /// A sentence for people.
    pub message: String,
    /// What is wrong with which field.
    pub fields: Vec<FieldError>,
    /// The lowest plan that unlocks the feature.
    pub required_plan: Option<Plan>,
    /// The trace that is stored already, and whether it is the one sent.
    pub stored: Option<(Uuid, bool)>,
}

impl Problem {
    /// A problem of this kind, in these words.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), fields: Vec::new(), required_plan: None, stored: None }
    }

    /// A value of the right shape that is not allowed.
    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        let (field, message) = (field.into(), message.into());
        let mut problem = Self::new(ErrorCode::ValidationFailed, format!("{field}: {message}"));
        problem.fields.push(FieldError { field, message });
        problem
    }

    /// Builds the error for a missing required field; `what` describes the expected value.
    pub fn missing(field: &str, what: &str) -> Self {
        Self::new(ErrorCode::InvalidBody, format!("missing field `{field}`: {what}"))
    }

    /// Builds the error for a request that needs a higher plan: `needed` is the lowest sufficient plan,
    /// `plan` the tenant's.
    pub fn plan_too_low(needed: Plan, plan: Plan) -> Self {
        let message = format!("this needs the {needed} plan or above; the tenant is on {plan}");
        Self { required_plan: Some(needed), ..Self::new(ErrorCode::PlanUpgradeRequired, message) }
    }

    /// Returns after how many seconds the same request may succeed; none when trying again can't help.
    pub fn retry_after_seconds(&self) -> Option<u16> {
        match self.code {
            ErrorCode::Overloaded => Some(1),
            // The authentication middleware knows the exact time.
            ErrorCode::RateLimited => Some(5),
            _ => None,
        }
    }
}

/// Shorthand for the commonest problems.
pub fn problem(code: ErrorCode, message: impl Into<String>) -> Error {
    Problem::new(code, message).into()
}

/// 404: for this tenant there is no such thing, whoever else may have it.
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
            // Only tenants read large texts.
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

/// What the caller is told of a fault.
pub fn internal() -> Problem {
    Problem::new(
        ErrorCode::Internal,
        "something went wrong on our side; the request id helps us find out what",
    )
}
