//! Numbers of things in configs.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error};

/// A whole number from 0. In JSON Schema 2.0 is a whole number too; numbers above [`u64::MAX`] become that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Count(pub u64);

impl Count {
    /// Returns the number as a length.
    pub(crate) fn to_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Returns the number for comparisons with signed numbers.
    pub(crate) fn to_i64(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        let is_whole = |it: &f64| *it >= 0.0 && it.fract() == 0.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and saturates")]
        let from_float = || number.as_f64().filter(is_whole).map(|it| it as u64);
        number.as_u64().or_else(from_float).map(Self).ok_or_else(|| D::Error::custom("a whole number from 0"))
    }
}

impl JsonSchema for Count {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 0})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_accepts_whole_numbers_only() {
        let parse = |text: &str| serde_json::from_str::<Count>(text).ok().map(|it| it.0);
        assert_eq!((parse("2"), parse("2.0"), parse("1e30")), (Some(2), Some(2), Some(u64::MAX)));
        assert_eq!((parse("2.5"), parse("-1"), parse("\"2\"")), (None, None, None));
    }
}
