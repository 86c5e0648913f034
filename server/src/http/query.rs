//! Parses query strings: unknown parameters are ignored, known ones must be well-formed. A parameter
//! without a value has an empty value; it does not count as absent.

use api::{
    ErrorCode, Timestamp,
    page::{DEFAULT_LIMIT, MAX_LIMIT},
};
use axum::{extract::FromRequestParts, http::request::Parts};
use percent_encoding::percent_decode_str;
use uuid::Uuid;

use crate::error::{Error, Result, problem};

/// The parameters of a request's query string, decoded.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let text = parts.uri.query().unwrap_or_default();
        let pairs = text.split('&').filter(|it| !it.is_empty()).map(pair).collect::<Result<Vec<_>>>()?;
        if let Some((key, _)) = pairs.iter().find(|(_, value)| value.contains('\0')) {
            return Err(invalid(key, "must not contain NUL"));
        }
        Ok(Self(pairs))
    }
}

impl Query {
    /// Creates a query from parameters of another origin.
    pub fn of(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }

    /// Returns the last value of a parameter, which may be empty.
    pub fn get<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).last()
    }

    /// Returns all values of a parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |it| it.0 == name).map(|it| it.1.as_str())
    }

    /// Returns a text to compare with a stored one. It may be empty, because ingest stores empty texts.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    /// Returns a text that must not be empty.
    ///
    /// # Errors
    ///
    /// Fails with `invalid_query`.
    pub fn filled_text(&self, name: &str) -> Result<Option<String>> {
        match self.get(name) {
            Some("") => Err(invalid(name, "must not be empty")),
            value => Ok(value.map(str::to_owned)),
        }
    }

    /// Returns a UUID.
    ///
    /// # Errors
    ///
    /// Fails with `invalid_query`.
    pub fn uuid(&self, name: &str) -> Result<Option<Uuid>> {
        self.get(name).map(|it| Uuid::parse_str(it).map_err(|_| invalid(name, "must be a UUID"))).transpose()
    }

    /// Returns `true` or `false`.
    ///
    /// # Errors
    ///
    /// Fails with `invalid_query`.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(invalid(name, "must be true or false")),
        }
    }

    /// Returns a time in microseconds.
    ///
    /// # Errors
    ///
    /// Fails with `invalid_query`.
    pub fn time(&self, name: &str) -> Result<Option<i64>> {
        // An unencoded `+` of a time zone is decoded as a space.
        let text = self.get(name).map(|it| it.replace(' ', "+"));
        text.map(|it| {
            it.parse::<Timestamp>().map(Timestamp::micros).map_err(|error| invalid(name, &error.to_string()))
        })
        .transpose()
    }

    /// Returns a whole number that is not negative.
    ///
    /// # Errors
    ///
    /// Fails with `invalid_query`.
    pub fn natural(&self, name: &str) -> Result<Option<i64>> {
        let bad = || invalid(name, "must be a whole number of at least 0");
        self.get(name).map(|it| it.parse::<i64>().ok().filter(|n| *n >= 0).ok_or_else(bad)).transpose()
    }

    /// Returns an amount in US dollars as pico-dollars.
    ///
    /// # Errors
    ///
    /// Fails with `invalid_query`.
    pub fn money(&self, name: &str) -> Result<Option<i64>> {
        let bad = || invalid(name, "must be a number between 0 and 1,000,000");
        self.get(name)
            .map(|it| it.parse().ok().and_then(semantics::money::from_usd).ok_or_else(bad))
            .transpose()
    }

    /// Returns two bounds, the second not below the first.
    ///
    /// # Errors
    ///
    /// Fails with `invalid_query`.
    pub fn ordered(
        names: (&str, &str),
        bounds: (Option<i64>, Option<i64>),
    ) -> Result<(Option<i64>, Option<i64>)> {
        match bounds {
            (Some(min), Some(max)) if max < min => {
                Err(invalid(names.1, &format!("must not be less than {}", names.0)))
            }
            ok => Ok(ok),
        }
    }

    /// Returns `limit`: 1 to 200, 50 if absent.
    ///
    /// # Errors
    ///
    /// Fails with `invalid_query`.
    pub fn limit(&self) -> Result<usize> {
        let limit = match self.get("limit") {
            None => Some(DEFAULT_LIMIT),
            Some(text) => text.parse().ok().filter(|it| (1..=MAX_LIMIT).contains(it)),
        };
        limit
            .map(|it| it as usize)
            .ok_or_else(|| invalid("limit", &format!("must be a whole number from 1 to {MAX_LIMIT}")))
    }
}

/// Decodes one `name=value` of `application/x-www-form-urlencoded`. Bytes that are not UTF-8 are an
/// error, because a replacement character would match another text.
fn pair(text: &str) -> Result<(String, String)> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let decode = |part: &str| {
        let spaced = part.replace('+', " ");
        percent_decode_str(&spaced).decode_utf8().map(|it| it.into_owned()).ok()
    };
    let name = decode(name).ok_or_else(|| invalid("query", "has a name that is not UTF-8 text"))?;
    match decode(value) {
        Some(value) => Ok((name, value)),
        None => Err(invalid(&name, "is not UTF-8 text")),
    }
}

/// Returns the error for an invalid parameter.
pub fn invalid(name: &str, why: &str) -> Error {
    problem(ErrorCode::InvalidQuery, format!("{name}: {why}"))
}

/// Parses a UUID in a path.
///
/// # Errors
///
/// Fails with `invalid_query`.
pub fn path_id(text: &str) -> Result<Uuid> {
    Uuid::parse_str(text).map_err(|_| invalid("id", "must be a UUID"))
}
