//! Metrics, compared with the rows, over HTTP and on both databases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod changes;
mod naive;
mod project;
mod questions;
mod upkeep;
