//! Metrics, compared with the rows, over HTTP and on both databases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod changes;
mod folding;
mod project;
mod queries;
mod recount;
mod reference;
