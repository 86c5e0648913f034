//! Explains in plain sentences why a request got no response.

use std::{error::Error as StdError, io};

use crate::plain::io_error;

/// Fragments of the TLS library's error messages, with plain sentences.
const TLS_ERRORS: [(&str, &str); 8] = [
    ("Expired", "its certificate has expired"),
    ("certificate expired", "its certificate has expired"),
    ("NotValidForName", "its certificate is for another name"),
    ("not valid for name", "its certificate is for another name"),
    ("NotValidYet", "its certificate is not valid yet"),
    ("UnknownIssuer", "its certificate comes from an authority that this machine does not trust"),
    ("ertificate", "its certificate is not accepted"),
    ("corrupt message", "it does not answer in TLS; perhaps its address begins with http://"),
];

/// Explains why there is no complete response.
pub(super) fn sentence(error: &reqwest::Error) -> String {
    let mut chain: Vec<&dyn StdError> = Vec::new();
    let mut next: Option<&dyn StdError> = Some(error);
    while let Some(cause) = next {
        chain.push(cause);
        next = cause.source();
    }
    let says = |words: &str| chain.iter().any(|it| it.to_string().contains(words));
    if error.is_timeout() {
        return "there was no response in time".to_owned();
    }
    if error.is_builder() {
        return "the address or a header contains characters that can't be sent".to_owned();
    }
    if says("dns error") {
        return "the name of the host can't be resolved".to_owned();
    }
    let debugged = |words: &str| chain.iter().any(|it| format!("{it:?}").contains(words));
    if error.is_connect()
        && let Some((_, meaning)) = TLS_ERRORS.iter().find(|(words, _)| says(words) || debugged(words))
    {
        return (*meaning).to_owned();
    }
    let of_system = chain.iter().find_map(|it| it.downcast_ref::<io::Error>());
    if let Some(cause) = of_system.filter(|it| it.raw_os_error().is_some()) {
        return io_error(cause);
    }
    if error.is_connect() {
        return "no connection could be made".to_owned();
    }
    if says("invalid HTTP") || says("invalid content-length") || says("chunk size") {
        return "the response is not HTTP".to_owned();
    }
    "the connection was closed before the response was complete".to_owned()
}
