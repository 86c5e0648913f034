//! Connections without a token: oversized, unfinished and incomplete request headers.
