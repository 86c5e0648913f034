//! The origins whose pages may call from a browser.

use std::str::FromStr;

use url::Url;

/// The origins that the operator lets in. Read from a list with commas, or `*` for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origins {
    /// No page but our own: there are no headers of CORS at all.
    #[default]
    None,
    /// Every page. No harm is done by that: there are no cookies to ride on, and a token has to
    /// be in the page already.
    Any,
    /// These, as browsers write them.
    These(Vec<String>),
}

/// An entry of the list that no browser would ever send.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no origin: write it as a browser does, like https://app.example.com, or a lone `*`")]
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

/// Compared as text later, so it must be written in the one way that browsers do.
fn origin(text: &str) -> Result<String, NoOrigin> {
    let wrong = || NoOrigin(text.to_owned());
    let url = Url::parse(text).map_err(|_| wrong())?;
    // A pattern would be read as the name of a host.
    if url.origin().ascii_serialization() != text || text.contains('*') {
        return Err(wrong());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_origins_as_browsers_do() {
        assert_eq!("".parse::<Origins>().unwrap(), Origins::None);
        assert_eq!(" * ".parse::<Origins>().unwrap(), Origins::Any);
        let these = "https://app.example.com, http://localhost:3000,http://[::1]:8080";
        assert!(matches!(these.parse::<Origins>().unwrap(), Origins::These(it) if it.len() == 3));
    }

    #[test]
    fn what_no_browser_sends_is_refused() {
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
