//! Resident memory after a load has ended.
