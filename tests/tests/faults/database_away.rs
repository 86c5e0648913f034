//! A PostgreSQL that stops answering and comes back.
