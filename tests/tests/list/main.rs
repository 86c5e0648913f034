//! The list of traces over HTTP, compared with a list that filters rows one by one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cursors;
mod filters;
mod ids;
mod indexed;
mod large;
mod migrated;
mod model;
mod pages;
mod written;
