//! The contract of Loupe: what travels over the wire, and nothing that decides.
//!
//! The server, the command line and the console all depend on this crate, so a word that
//! two of them must agree on is written here once. Feature `client` adds the typed REST
//! client, `db` the sea-orm derives of enums that are stored as they are sent, `schema`
//! the schemas of the OpenAPI document.

#[cfg(feature = "client")]
pub mod client;
pub mod enums;
pub mod error;
pub mod ingest;
pub mod key;
pub mod model;
pub mod page;
pub mod project;
pub mod tenant;
pub mod time;
pub mod trace;

pub use enums::{FailureType, Plan, Role, Scope, SpanType};
pub use error::{ErrorBody, ErrorCode, FieldError};
pub use page::PageInfo;
pub use time::Timestamp;
