//! Tests of the program against a stub of the server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first thing that is wrong"
)]

mod administration;
mod auth;
mod changes;
mod evaluators;
mod examples;
mod exporting;
mod judging;
mod looks;
mod measuring;
mod reading;
mod sending;
mod sentences;
mod settings;
mod signals;
mod stub;
mod tail;
