//! Reading structures from JSON objects only.
//!
//! A derived reader also takes an array, as the values of the fields in their order. A body like
//! that is a mistake of its sender, and what it would mean changes with every new field.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};

/// A structure that was written as an object.
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

/// For `deserialize_with` beside `default`: what is given, null too, is told from what is absent.
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
    fn arrays_are_no_objects() {
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
