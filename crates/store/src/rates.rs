//! The requests of each minute that processes have leased from the rate limits.
//!
//! The statement is SQL, because it inserts or updates depending on the stored value, and returns it.

use entities::dialect::Dialect;
use sea_orm::{ConnectionTrait, DbErr, Statement};
use uuid::Uuid;

use crate::{
    db::Db,
    housekeeping::{ExpiringRows, TimeUnit},
};

/// Rate limit windows by the time at which they begin.
pub const EXPIRING_WINDOWS: ExpiringRows =
    ExpiringRows { unit: TimeUnit::Seconds, ..ExpiringRows::of("rate_window", "starts_at") };

/// Routes that share a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateBucket {
    /// `GET /v1/traces`.
    Traces,
    /// `GET /v1/metrics`.
    Metrics,
    /// `POST /v1/feedback`.
    Feedback,
    /// `POST /v1/eval`.
    Eval,
    /// `GET /v1/prompts/{name}`.
    Prompts,
    /// The ingest endpoints.
    Ingest,
    /// All other routes.
    Other,
}

impl RateBucket {
    /// Every bucket, in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::Traces, Self::Metrics, Self::Feedback, Self::Eval, Self::Prompts, Self::Ingest, Self::Other];

    /// Returns the word in the database and the documentation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Feedback => "feedback",
            Self::Eval => "eval",
            Self::Prompts => "prompts",
            Self::Ingest => "ingest",
            Self::Other => "other",
        }
    }
}

/// Takes requests with one statement, so that two processes never take the same ones. A process gets at most
/// the requested number and an eighth of the rest, but at least one while any are left.
const TAKE_REQUESTS_SQL: &str = "\
    INSERT INTO rate_window AS w (tenant_id, starts_at, bucket, taken, granted) \
    VALUES ($1, $2, $3, LEAST($4, $5), LEAST($4, $5)) \
    ON CONFLICT (tenant_id, starts_at, bucket) DO UPDATE SET \
    granted = GREATEST(0, LEAST($4, GREATEST(1, ($5 - w.taken) / 8), $5 - w.taken)), \
    taken = w.taken + GREATEST(0, LEAST($4, GREATEST(1, ($5 - w.taken) / 8), $5 - w.taken)) \
    RETURNING granted, taken";

/// Takes up to `wanted` requests of the window that starts at `starts_at` (seconds). Returns the number that
/// was granted, and the number that all processes have taken.
///
/// # Errors
/// Fails when the database fails.
pub async fn take(
    db: &Db,
    tenant: Uuid,
    bucket: RateBucket,
    starts_at: i64,
    wanted: u64,
    limit: u64,
) -> Result<(u64, u64), DbErr> {
    let number = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
    let values = [
        tenant.into(),
        starts_at.into(),
        bucket.as_str().into(),
        number(wanted).into(),
        number(limit).into(),
    ];
    let statement = Statement::from_sql_and_values(Dialect::Postgres.backend(), TAKE_REQUESTS_SQL, values);
    let row = db.write.query_one_raw(statement).await?;
    let row = row.ok_or_else(|| DbErr::RecordNotFound("the statement returned no lease".to_owned()))?;
    let read = |column| row.try_get::<i64>("", column).map(|it| u64::try_from(it).unwrap_or(0));
    Ok((read("granted")?, read("taken")?))
}
