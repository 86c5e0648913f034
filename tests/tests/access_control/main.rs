//! Access and limits: rate limits, quotas, idempotency, members, access caches and the audit log.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "concurrent callers are tasks of the test")]

mod access_cache;
mod audit;
mod idempotency;
mod members;
mod projects;
mod provider_credentials;
mod races;
mod rate_limits;
mod revoked_streams;
mod trace_quota;
