//! The trace index: finds traces by their properties. Storing an entry costs the same whatever the number of stored traces.
//!
//! A trace's row has no index for most filters. Instead, an [entry](entry::IndexEntry) for each of its [terms] is in a
//! [run], a sorted and immutable list in blocks. New and changed traces are the [tail], which lists read as rows,
//! until [indexing] makes a run of them. Entries are hints: lists compare the rows of all [candidates].

pub mod candidates;
pub mod directories;
pub mod entry;
pub mod growth;
pub mod indexing;
pub mod keys;
pub mod merging;
pub mod removed;
pub mod run;
pub mod search;
pub mod stored;
pub mod tail;
pub mod terms;

pub use candidates::Candidates;
pub use indexing::{
    index_long_tail, index_long_tails_completely, index_tail, rebuild, tenants_with_long_tails,
};
pub use merging::{merge, remove_retired, retire_expired, rewrite_sparse};
pub use terms::{AnyOf, Terms};
