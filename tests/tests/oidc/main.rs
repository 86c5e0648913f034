//! Session tokens of an identity provider, over HTTP: valid and invalid tokens, and a provider that changes
//! its keys, is slow, or is unavailable.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod keys;
mod provider;
mod settings;
mod signer;
mod tokens;
