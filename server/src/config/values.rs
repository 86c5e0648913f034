//! Reading single values of settings, with sentences of our own for what can't be read.

use std::net::SocketAddr;

use uuid::Uuid;

/// Reads a whole number.
///
/// # Errors
/// When it is none, or does not fit.
pub fn number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().and_then(|it: u64| T::try_from(it).ok());
    number.ok_or_else(|| "must be a whole number, and not too large".to_owned())
}

/// Reads an address with a port.
///
/// # Errors
/// When it is none.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an IP address and a port, such as 127.0.0.1:4600".to_owned())
}

/// Reads an id.
///
/// # Errors
/// When it is none.
pub fn id(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| "must be an id, such as 01980f6e-5f0a-7c3e-9d2b-3c1a7b20c07b".to_owned())
}
