//! OTLP ingest over HTTP and gRPC: the requests of real SDKs, the protocol, and traces that arrive in pieces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod basic_authentication;
mod captured;
mod grpc;
mod log_records;
mod model_call_texts;
mod outputs;
mod partial_traces;
mod protocol;
mod providers;
mod usage;
