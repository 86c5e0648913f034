//! Vectors of spans: stores them and finds the nearest.
//!
//! A span has at most one vector: the vector that was sent with it, or the first one that an embedding model
//! computed. Embedding in the background has three steps: [`missing`] returns the spans without a vector, a
//! provider computes vectors while no transaction is open, and [`insert`] stores them. Each step may be
//! repeated, because stored vectors remain. A vector never outlives its span.

mod coarse;
mod filter;
mod graph;
mod missing;
mod near;
mod one;
mod rows;
mod stored;
mod unit;
mod write;

pub use coarse::{ROTATED_DIMENSIONS, rotate};
pub use filter::{Hit, NearestSpans, VectorFilter};
pub use graph::{are_more_than, next_tenant_to_index, put_into_graph};
pub use missing::{BlocksToEmbed, SpanToEmbed, SpansOfBlock, missing};
pub use near::nearest;
pub use one::of_span;
pub use rows::{Arrival, arrivals, count, in_rows, read_numbers, rows_of};
pub use stored::StoredVector;
pub use unit::{BadVector, UnitVector};
pub use write::{VectorRow, insert};
