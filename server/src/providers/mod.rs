//! Everything that leaves this process over the network.
//!
//! Addresses that tenants set (webhooks, callbacks, base URLs of providers) are reached through
//! [`Egress`] and nothing else: it refuses every address that is not public, unless the operator
//! opened it. Addresses that the operator sets in the configuration are not guarded: the keys of an
//! identity provider (`jwks`), the platform's providers of models (`exchange`, which `embedding` and
//! `judge` send through; `said` reads what providers say of failures, `rest` leaves them alone).
//!
//! From the text of a URL to a connection: `target` reads it, `resolve` finds addresses,
//! `guard` judges all of them by `address`, `openings` and `own`, `connect` dials one
//! that was judged, `link` speaks HTTP on it, `pool` keeps it for a while, and `egress` is
//! the door to all of this. `remedy` tells tenants which setting opens a refused address.

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

pub use egress::{Answer, Egress, Outbound, SendError};
pub use guard::Refusal;
use link::root_cause;

/// Where OpenAI answers.
pub const OPENAI: &str = "https://api.openai.com/v1";
