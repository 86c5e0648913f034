//! Rolling metrics: against the rows, through HTTP, on both databases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod changes;
mod naive;
mod project;
mod questions;
mod upkeep;
