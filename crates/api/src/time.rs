//! A point in time: stored as microseconds, sent as RFC 3339 in UTC.

use std::{fmt, str::FromStr};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Microseconds since 1970-01-01T00:00:00Z, within the years 1 to 9999.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(value_type = String, format = DateTime, example = "2026-11-21T10:15:30.123456Z"))]
pub struct Timestamp(i64);

/// Error: the text is not an RFC 3339 date-time of the years 1 to 9999.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an RFC 3339 date-time between the years 1 and 9999")]
pub struct BadTimestamp(String);

impl Timestamp {
    /// 0001-01-01T00:00:00Z.
    pub const MIN: Self = Self(-62_135_596_800_000_000);
    /// 9999-12-31T23:59:59.999999Z.
    pub const MAX: Self = Self(253_402_300_799_999_999);

    /// Converts microseconds; values outside the years 1 to 9999 become the nearest bound.
    pub const fn from_micros(micros: i64) -> Self {
        if micros < Self::MIN.0 {
            Self::MIN
        } else if micros > Self::MAX.0 {
            Self::MAX
        } else {
            Self(micros)
        }
    }

    /// Returns the microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Converts to a chrono value, for calendars and time zones.
    pub fn to_chrono(self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.0).unwrap_or_default()
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self::from_micros(time.timestamp_micros())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_chrono().to_rfc3339_opts(SecondsFormat::Micros, true))
    }
}

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        let bad = || BadTimestamp(text.chars().take(64).collect());
        let time = DateTime::parse_from_rfc3339(text).map_err(|_| bad())?;
        let micros = time.timestamp_micros();
        if (Self::MIN.0..=Self::MAX.0).contains(&micros) { Ok(Self(micros)) } else { Err(bad()) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn timestamps_are_utc_with_microseconds() {
        let time: Timestamp = "2026-11-21T03:00:00.5+01:00".parse().unwrap();
        assert_eq!(time.to_string(), "2026-11-21T02:00:00.500000Z");
    }

    #[test]
    fn timestamps_are_bounded_by_years_1_and_9999() {
        assert_eq!(Timestamp::MIN.to_string(), "0001-01-01T00:00:00.000000Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999999Z");
        assert!("0000-12-31T00:00:00Z".parse::<Timestamp>().is_err());
        assert!("yesterday".parse::<Timestamp>().is_err());
    }
}
