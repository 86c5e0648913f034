//! Vectors of spans: storing them, and finding the nearest.
//!
//! A span has at most one vector: the one that came with it, or else the first that an embedding
//! model made. To embed in the background is three steps: [`missing`] tells which spans of some
//! traces have none yet, a provider is asked while no transaction is open, and [`insert`] stores
//! what it answered. Each may be repeated: what is there stays. A vector never outlives its span.

mod coarse;
mod filter;
mod graph;
mod near;
mod one;
mod rows;
mod stored;
mod unit;
mod write;

pub use filter::{Filter, Found, Hit};
pub use graph::{are_more_than, put_into_graph};
pub use near::nearest;
pub use one::of_span;
pub use rows::{Arrival, arrivals, count, in_rows, read_numbers, rows_of};
pub use stored::StoredVector;
pub use unit::{BadVector, UnitVector};
pub use write::{VectorRow, insert, missing};
