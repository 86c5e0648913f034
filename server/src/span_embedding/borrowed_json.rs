//! A JSON value that borrows its strings from the text, to read the texts of many spans without copies.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::Number;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum BorrowedJson<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number.
    Number(Number),
    /// A string; borrowed if it contains no escape sequences.
    Text(Cow<'a, str>),
    /// An array.
    Array(Vec<BorrowedJson<'a>>),
    /// The members of an object in the order of their names. Of several members with the same name, the last one
    /// counts.
    Object(Vec<(Cow<'a, str>, BorrowedJson<'a>)>),
}

impl BorrowedJson<'_> {
    /// Returns a member of an object that is a string.
    pub fn text_member(&self, name: &str) -> Option<&str> {
        let Self::Object(members) = self else { return None };
        match members.iter().find(|it| it.0 == name) {
            Some((_, BorrowedJson::Text(text))) => Some(text),
            _ => None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for BorrowedJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

/// A string that is borrowed if possible: the implementation for `Cow` always copies.
struct BorrowedText<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for BorrowedText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_str(JsonVisitor)? {
            BorrowedJson::Text(text) => Ok(Self(text)),
            _ => Err(D::Error::custom("not a string")),
        }
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = BorrowedJson<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(BorrowedJson::Null)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(BorrowedJson::Boolean)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(BorrowedJson::Number(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(BorrowedJson::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(number).map_or(BorrowedJson::Null, BorrowedJson::Number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(BorrowedJson::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(BorrowedJson::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(BorrowedJson::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<BorrowedText<'de>>()? {
            members.push((name.0, map.next_value()?));
        }
        // The sort is stable, so the last one of the same name comes first.
        members.reverse();
        members.sort_by(|a: &(Cow<'de, str>, BorrowedJson<'de>), b| a.0.cmp(&b.0));
        members.dedup_by(|a, b| a.0 == b.0);
        Ok(BorrowedJson::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn to_value(json: &BorrowedJson<'_>) -> Value {
        match json {
            BorrowedJson::Null => Value::Null,
            BorrowedJson::Boolean => Value::Bool(true),
            BorrowedJson::Number(number) => Value::Number(number.clone()),
            BorrowedJson::Text(text) => Value::String(text.clone().into_owned()),
            BorrowedJson::Array(list) => list.iter().map(to_value).collect(),
            BorrowedJson::Object(members) => {
                members.iter().map(|it| (it.0.clone().into_owned(), to_value(&it.1))).collect()
            }
        }
    }

    #[test]
    fn borrowed_json_equals_the_owned_value() {
        for text in [
            r#"{"b":[1,-2,2.5,1e300,18446744073709551615],"a":"x","c":null,"d":true}"#,
            r#"{"a":1,"b":2,"a":{"\u0061\n":"é \"\ud83d\ude00"}}"#,
            "[]",
            "{}",
            r#""plain""#,
        ] {
            let borrowed: BorrowedJson<'_> = serde_json::from_str(text).unwrap();
            assert_eq!(to_value(&borrowed), serde_json::from_str::<Value>(text).unwrap());
        }
        for text in ["", "{", "[1,]", r#"{"a" 1}"#, "{1:2}", "[1] 2", r#"["\ud800"]"#] {
            assert!(serde_json::from_str::<BorrowedJson<'_>>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn strings_without_escape_sequences_are_borrowed() {
        let borrowed: BorrowedJson<'_> = serde_json::from_str(r#"{"a":"text"}"#).unwrap();
        let BorrowedJson::Object(members) = borrowed else { panic!("not an object") };
        assert!(matches!(members[..], [(Cow::Borrowed("a"), BorrowedJson::Text(Cow::Borrowed("text")))]));
    }
}
