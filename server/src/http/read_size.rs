//! Sizes of the blocks in which responses read the rows of traces.

/// Number of spans, or events, whose rows and small texts are read at once.
pub const ROWS_PER_READ: u16 = 64;
/// Maximum size in bytes of the events that are read at once.
pub const EVENT_BYTES_PER_READ: usize = 1024 * 1024;
