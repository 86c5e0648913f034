//! OTLP ingest over HTTP: the requests of real SDKs, the protocol, and traces that arrive in pieces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod basic;
mod calls;
mod captured;
mod pieces;
mod protocol;
mod providers;
mod usage;
