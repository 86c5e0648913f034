//! The filters of trace lists, each declared once in `table`.
//!
//! Query parameters, their OpenAPI description, the flags of the command line, the terms of the filter grammar
//! and their completion follow from the table. The store assigns columns and indexes to the filters.

#[macro_use]
mod declare;
mod definition;
#[cfg(feature = "schema")]
mod parameters;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use definition::{FilterDefinition, Flag, FlagValue, Parameter, Term, ValueType};
#[cfg(feature = "schema")]
pub use parameters::TraceFilterParameters;
pub use table::{TERM_ORDER, TraceConditions, TraceFilter};
pub use value::{Bounds, FilterSource, FilterValue, Tag};
