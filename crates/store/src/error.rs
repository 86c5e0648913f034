//! The error of every query, classified by what a caller can do about it.

use sea_orm::{DbErr, RuntimeErr};

use crate::{health::Unavailable, memory::OutOfMemory};

/// Result of a query.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// A failed query.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A known fault of the database. The query may succeed later.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A database that is down, busy or shutting down. The query may succeed later.
    #[error("the database is unreachable; try again shortly")]
    Unreachable(#[source] DbErr),
    /// Too little memory granted by the caller for large texts.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// A wrong statement or a wrong stored value.
    #[error(transparent)]
    Database(DbErr),
}

impl From<DbErr> for StoreError {
    fn from(error: DbErr) -> Self {
        match Unavailable::of(&error) {
            Some(reason) => Self::Unavailable(reason),
            None if is_away(&error) => Self::Unreachable(error),
            None => Self::Database(error),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        DbErr::Conn(RuntimeErr::SqlxError(error.into())).into()
    }
}

/// Returns whether the cause is a database that is down, full or shutting down, and not a wrong statement.
fn is_away(error: &DbErr) -> bool {
    let (DbErr::Conn(RuntimeErr::SqlxError(source))
    | DbErr::Exec(RuntimeErr::SqlxError(source))
    | DbErr::Query(RuntimeErr::SqlxError(source))) = error
    else {
        return matches!(error, DbErr::ConnectionAcquire(_));
    };
    match source.as_ref() {
        // A proxy that accepts connections while the database is down ends the handshake with one of
        // the last two.
        sqlx::Error::Io(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::Protocol(_)
        | sqlx::Error::Tls(_) => true,
        // By SQLSTATE for PostgreSQL (connection, resources, shutdown, serialization), by primary
        // result code for SQLite (busy, locked, read-only, I/O, full).
        sqlx::Error::Database(it) => it.code().is_some_and(|code| {
            ["08", "53", "57P", "40"].iter().any(|class| code.len() == 5 && code.starts_with(class))
                || code
                    .parse::<u32>()
                    .is_ok_and(|n| code.len() < 5 && matches!(n & 0xff, 5 | 6 | 8 | 10 | 13 | 14))
        }),
        _ => false,
    }
}
