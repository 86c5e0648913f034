//! The one HTTP client of the server, with its SSRF guard.
//!
//! [`OutboundClient`] sends every outbound request. [`AddressOwner`] decides what is allowed: an address
//! that a tenant set (webhook, callback, base URL of a provider) must be public and https, unless it is
//! on the operator's [`AllowList`]; an address that the operator set may be private, and is reached
//! through the proxies of the environment.
//!
//! From a URL to a response: `target` parses the URL, `guard` resolves the name once and
//! checks every address with `address`, the allow list and `own_listeners`, `connector` connects to a
//! checked address (`dial`, `proxy`, `tls`), `connection` speaks HTTP/1.1 on it and `pool` keeps it for
//! reuse. `remedy` tells tenants which setting allows a rejected address.
//!
//! **Invariants.** A name is resolved once for each connection, and the connection goes to an address
//! that was checked. A connection that was opened for the operator is never used for a tenant.
//! Redirects are not followed. The time and the size of a response are bounded. A request that is
//! dropped leaves nothing behind: a connection has no task of its own.
//!
//! Retries, circuit breakers and the meaning of a status belong to the callers.

pub mod address;
mod address_owner;
mod allow_list;
mod client;
mod connection;
mod connector;
mod deadline;
mod dial;
mod error;
mod guard;
mod own_listeners;
mod pool;
mod proxy;
pub mod remedy;
pub mod resolver;
mod target;
mod tls;

pub use address_owner::AddressOwner;
pub use allow_list::{AllowList, InvalidEntry};
pub use client::{OutboundClient, OutboundRequest, OutboundResponse, OutboundSettings};
pub use error::{AddressRejection, SendError, Stage};
pub use hyper::{HeaderMap, Method, StatusCode, body::Bytes, header};
pub use tls::{InvalidRoots, TrustedRoots};
pub use url::Url;
