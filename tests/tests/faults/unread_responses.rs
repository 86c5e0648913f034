//! Responses that a client asks for and does not read.
