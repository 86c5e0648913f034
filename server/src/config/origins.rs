//! The origins whose pages may call from a browser.

use std::str::FromStr;

use url::Url;

/// The allowed origins, parsed from a comma-separated list, or `*` for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CorsOrigins {
    /// No other origins; responses have no CORS headers.
    #[default]
    None,
    /// All origins. This is safe because there are no cookies: a page needs a token in any case.
    Any,
    /// The listed origins, in the notation of browsers.
    Listed(Vec<String>),
}

/// Error: an entry of the list is not an origin in the notation of browsers.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an origin: write it like https://app.example.com, or use `*` alone")]
pub struct InvalidOrigin(String);

impl FromStr for CorsOrigins {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let entries: Vec<&str> = text.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
        match entries.as_slice() {
            [] => Ok(Self::None),
            ["*"] => Ok(Self::Any),
            _ => entries.iter().map(|it| origin(it)).collect::<Result<_, _>>().map(Self::Listed),
        }
    }
}

/// Parses an origin. Origins are compared as text later, so only the notation of browsers is accepted.
fn origin(text: &str) -> Result<String, InvalidOrigin> {
    let invalid = || InvalidOrigin(text.to_owned());
    let url = Url::parse(text).map_err(|_| invalid())?;
    // A wildcard would be parsed as a host name.
    if url.origin().ascii_serialization() != text || text.contains('*') {
        return Err(invalid());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_list_is_parsed_in_browser_notation() {
        assert_eq!("".parse::<CorsOrigins>().unwrap(), CorsOrigins::None);
        assert_eq!(" * ".parse::<CorsOrigins>().unwrap(), CorsOrigins::Any);
        let list = "https://app.example.com, http://localhost:3000,http://[::1]:8080";
        assert!(matches!(list.parse::<CorsOrigins>().unwrap(), CorsOrigins::Listed(it) if it.len() == 3));
    }

    #[test]
    fn invalid_origin_is_rejected() {
        for invalid in [
            "https://app.example.com/",
            "https://app.example.com:443",
            "HTTPS://app.example.com",
            "https://App.example.com",
            "app.example.com",
            "null",
            "https://*.example.com",
            "*,https://app.example.com",
            "https://a b",
            "file:///x",
            "https://user@app.example.com",
            "https://app.example.com?x",
            "https://b\u{fc}cher.example",
        ] {
            assert!(invalid.parse::<CorsOrigins>().is_err(), "{invalid}");
        }
    }
}
