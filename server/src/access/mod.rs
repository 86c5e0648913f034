//! Who is calling and what they may do. Access is data: a route names what it needs as an
//! [`Access`], and one place compares it with the [`Caller`].

pub mod api_key;
pub mod caller;
pub mod master_key;
pub mod plans;
pub mod session;

pub use caller::{Access, Caller, Credential, Keys};
