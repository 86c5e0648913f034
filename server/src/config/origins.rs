//! The origins whose pages may call from a browser.

use std::str::FromStr;

use url::Url;

/// The allowed origins, parsed from a comma-separated list, or `*` for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origins {
    /// No other origins; responses have no CORS headers.
    #[default]
    None,
    /// All origins. This is safe because there are no cookies: a page needs a token in any case.
    Any,
    /// The listed origins, in the notation of browsers.
    These(Vec<String>),
}

/// Error: an entry of the list is not an origin in the notation of browsers.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an origin: write it like https://app.example.com, or use `*` alone")]
pub struct NoOrigin(String);

impl FromStr for Origins {
    type Err = NoOrigin;

    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        let entries: Vec<&str> = text.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
        match entries.as_slice() {
            [] => Ok(Self::None),
            ["*"] => Ok(Self::Any),
            _ => entries.iter().map(|it| origin(it)).collect::<Result<_, _>>().map(Self::These),
        }
    }
}

/// Parses an origin. Origins are compared as text later, so only the notation of browsers is accepted.
fn origin(text: &str) -> Result<String, NoOrigin> {
    let wrong = || NoOrigin(text.to_owned());
    let url = Url::parse(text).map_err(|_| wrong())?;
    // A wildcard would be parsed as a host name.
    if url.origin().ascii_serialization() != text || text.contains('*') {
        return Err(wrong());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_list_is_parsed_in_browser_notation() {
        assert_eq!("".parse::<Origins>().unwrap(), Origins::None);
        assert_eq!(" * ".parse::<Origins>().unwrap(), Origins::Any);
        let these = "https://app.example.com, http://localhost:3000,http://[::1]:8080";
        assert!(matches!(these.parse::<Origins>().unwrap(), Origins::These(it) if it.len() == 3));
    }

    #[test]
    fn invalid_origin_is_rejected() {
        for wrong in [
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
            assert!(wrong.parse::<Origins>().is_err(), "{wrong}");
        }
    }
}
