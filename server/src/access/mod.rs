//! Authentication and authorization. A route declares its requirements as an [`Access`], and one
//! function compares them with the [`Caller`].

pub mod api_key;
pub mod caller;
pub mod claims;
pub mod endpoints;
pub mod jwt;
pub mod master_key;
pub mod oidc;
pub mod plans;
pub mod seal;
pub mod session;
mod strict_json;

pub use caller::{Access, Caller, Credential, Keys};
