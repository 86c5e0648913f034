//! The program as a whole, against a stub of the server.

mod auth;
mod changes;
mod reading;
mod sending;
mod stub;
mod tail;
