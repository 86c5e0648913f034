//! Session tokens of an identity provider, from outside: which are taken and which are not, and
//! what happens when the provider changes its keys, is slow, or is away.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod keys;
mod provider;
mod recipes;
mod settings;
mod signer;
