//! Deserializes structures from JSON objects only.
//!
//! A derived `Deserialize` also accepts an array with the values of the fields in order. Such a body is
//! a mistake of the sender, and its meaning would change with every new field.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

/// A structure that deserializes only from an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Object)
    }
}

/// Counts the objects and lists in a JSON text. Braces and brackets inside strings are text.
pub fn count_structures(json: &[u8]) -> usize {
    let (mut count, mut in_string, mut escaped) = (0, false, false);
    for byte in json {
        match (in_string, *byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b'{' | b'[') => count += 1,
            _ => {}
        }
    }
    count
}

/// For `deserialize_with`: a list of objects, or null.
pub(crate) fn list<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list: Option<Vec<Object<T>>> = Deserialize::deserialize(deserializer)?;
    Ok(list.map(|it| it.into_iter().map(|Object(it)| it).collect()))
}

/// For `deserialize_with`: an object, or null.
pub(crate) fn one<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let object: Option<Object<T>> = Deserialize::deserialize(deserializer)?;
    Ok(object.map(|Object(it)| it))
}

/// For `deserialize_with` together with `default`: distinguishes null from an absent field, like [`given`], and
/// accepts only objects.
pub(crate) fn given_one<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    one(deserializer).map(Some)
}

/// Maximum number of tags that are decoded; above the limit that validation checks afterwards.
const MAX_TAGS_READ: usize = 1_000;

/// For `deserialize_with`: tags. Nested values are not built: a list or object becomes empty, and
/// entries beyond [`MAX_TAGS_READ`] are skipped.
pub(crate) fn tags<'de, D>(deserializer: D) -> Result<Option<BTreeMap<String, Value>>, D::Error>
where
    D: Deserializer<'de>,
{
    struct Tags;

    impl<'de> Visitor<'de> for Tags {
        type Value = BTreeMap<String, Value>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut tags = BTreeMap::new();
            while tags.len() < MAX_TAGS_READ
                && let Some((key, TagValue(value))) = members.next_entry()?
            {
                tags.insert(key, value);
            }
            while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(tags)
        }
    }

    struct MaybeTags;

    impl<'de> Visitor<'de> for MaybeTags {
        type Value = Option<BTreeMap<String, Value>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }

        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_map(Tags).map(Some)
        }
    }

    deserializer.deserialize_option(MaybeTags)
}

/// A tag's value: a scalar unchanged, a list or an object emptied.
struct TagValue(Value);

impl<'de> Deserialize<'de> for TagValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TagValueVisitor)
    }
}

struct TagValueVisitor;

impl<'de> Visitor<'de> for TagValueVisitor {
    type Value = TagValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<TagValue, E> {
        Ok(TagValue(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<TagValue, E> {
        Ok(TagValue(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<TagValue, E> {
        Ok(TagValue(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<TagValue, E> {
        Ok(TagValue(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<TagValue, E> {
        Ok(TagValue(value.into()))
    }

    fn visit_unit<E>(self) -> Result<TagValue, E> {
        Ok(TagValue(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<TagValue, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(TagValue(Value::Array(Vec::new())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<TagValue, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(TagValue(Value::Object(serde_json::Map::new())))
    }
}

/// For `deserialize_with` beside `default`: distinguishes null (`Some`) from an absent field (`None`).
pub(crate) fn given<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use crate::ingest::TraceItem;

    use super::*;

    #[test]
    fn object_given_as_array_is_rejected() {
        let read = |text| serde_json::from_str::<Object<TraceItem>>(text);
        assert!(read(r#"{"spans":[{"name":"s"}],"events":null}"#).is_ok());
        for text in [
            "[]",
            r#"["id"]"#,
            "null",
            r#"{"spans":[["s"]]}"#,
            r#"{"events":[["m"]]}"#,
            r#"{"spans":[{"name":"s","usage_details":[]}]}"#,
        ] {
            assert!(read(text).is_err_and(|it| it.is_data()), "{text}");
        }
    }
}
