//! The built server under attack and during faults of its environment: a tenant that exhausts memory,
//! connections or the processor, a full disk, a replaced database file, a database that does not respond.
//! Each attack runs in a short form; `LOUPE_TEST_FAULTS=full` runs it in full size.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "attackers and bystanders run beside the test")]
#![allow(clippy::large_futures, reason = "a test awaits its future in one place")]
#![allow(clippy::print_stdout, reason = "each attack prints the figures that it measured")]

mod attacker_connections;
mod bystander;
mod database_outage;
mod dedicated_postgres;
mod disk_full;
mod expanding_bodies;
mod headers;
mod idle_memory;
mod installation;
mod replaced_file;
mod slow_regexes;
mod slow_senders;
mod unread_responses;
mod unread_streams;
