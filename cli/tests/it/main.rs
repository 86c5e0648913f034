//! Tests of the program against a stub of the server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first thing that is wrong"
)]

mod administration;
mod auth;
mod control;
mod deployments;
mod error_messages;
mod evaluations;
mod evaluators;
mod examples;
mod export;
mod failures;
mod keys_and_projects;
mod lists_and_traces;
mod metrics_and_search;
mod presentation;
mod rejections;
mod send;
mod settings;
mod signals;
mod stub;
mod tail;
mod webhook_tools;
mod webhooks;
