//! The OTLP ingest, from outside: what real SDKs send, the protocol, and traces that come in pieces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod basic;
mod answers;
mod calls;
mod captured;
mod pieces;
mod protocol;
mod providers;
mod usage;
