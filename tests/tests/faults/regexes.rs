//! Regular expressions of a tenant that take exponential memory or time.
