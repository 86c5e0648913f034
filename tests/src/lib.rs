//! What the suites share: the server under test and its databases.

pub mod postgres;
