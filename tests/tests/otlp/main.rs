//! The OTLP ingest, from outside: what real SDKs send, the protocol, and traces that come in pieces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod basic;
mod calls;
mod captured;
mod pieces;
mod protocol;
mod providers;
mod usage;
