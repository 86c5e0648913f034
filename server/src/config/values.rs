//! Parses single values of settings, with error messages for operators.

use std::net::SocketAddr;

use uuid::Uuid;

/// Parses a whole number.
///
/// # Errors
///
/// Fails when the text is not a whole number or out of range.
pub fn parse_number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().and_then(|it: u64| T::try_from(it).ok());
    number.ok_or_else(|| "must be a whole number within the range of this setting".to_owned())
}

/// Parses an IP address with a port.
///
/// # Errors
///
/// Fails when the text is not an address with a port.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an IP address and a port, such as 127.0.0.1:4600".to_owned())
}

/// Parses an ID.
///
/// # Errors
///
/// Fails when the text is not a UUID.
pub fn parse_id(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| "must be an ID, such as 01980f6e-5f0a-7c3e-9d2b-3c1a7b20c07b".to_owned())
}
