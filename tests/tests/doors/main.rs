//! Access and limits: rate limits, quotas, idempotency, members, access caches and the audit log.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "callers at the same time are tasks of the test")]

mod audit;
mod credentials;
mod idempotency;
mod known;
mod members;
mod projects;
mod quotas;
mod races;
mod rates;
mod streams;
