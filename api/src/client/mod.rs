//! The typed REST client.
