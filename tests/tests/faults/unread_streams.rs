//! Event streams that a client opens and does not read.
