//! Endpoints of keys, members, credentials and the caller.

pub mod credentials;
pub mod keys;
pub mod me;
pub mod members;
