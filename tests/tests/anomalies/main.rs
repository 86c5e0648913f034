//! Anomalies: their detection in the traffic of projects, and their list.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod detection;
mod lifecycle;
mod list;
mod processes;
mod recount;
mod scores;
mod traffic;
