//! Outbound requests of this process.
//!
//! Addresses that tenants set (webhooks, callbacks, base URLs of providers) are reached only through
//! [`Egress`], the outbound HTTP guard: it rejects every address that is not public, unless it is on
//! the operator's allow list. Addresses in the configuration are not guarded: the keys of an identity
//! provider (`jwks`) and the platform's model providers (`exchange`, which `embedding` and `judge` use;
//! `said` parses error responses, `rest` contains the circuit breakers).
//!
//! From a URL to a connection: `target` parses it, `resolve` finds addresses, `guard` checks all of
//! them with `address`, `openings` and `own`, `connect` connects to a checked one, `link` speaks HTTP
//! on it, `pool` keeps it for reuse, and `egress` is the interface. `remedy` tells tenants which
//! setting allows a rejected address.

pub mod address;
mod connect;
pub mod egress;
pub mod embedding;
mod exchange;
pub mod guard;
pub mod judge;
pub mod jwks;
mod link;
mod own;
mod pool;
pub mod remedy;
pub mod resolve;
pub mod rest;
mod said;
mod target;
mod tls;

pub use egress::{Egress, Outbound, OutboundResponse, SendError};
pub use guard::Refusal;
use link::root_cause;

/// OpenAI's base URL.
pub const OPENAI: &str = "https://api.openai.com/v1";
