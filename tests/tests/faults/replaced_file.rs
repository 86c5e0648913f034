//! A SQLite file that is deleted or replaced under a running server.
