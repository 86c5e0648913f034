//! Parses JSON one level at a time: values are borrowed as text until they are needed.
//!
//! A whole request or response of a provider arrives in one attribute. Only few members matter, so the
//! others are never built, and a member of an unexpected type does not affect the rest.

use std::borrow::Cow;

use serde::{
    Deserialize,
    de::{Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::value;

/// The members of a JSON object in their order, values unparsed.
pub(super) struct RawObject<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawObject<'a> {
    /// Parses a text as an object; none if it is something else.
    pub(super) fn parse(json: &'a str) -> Option<Self> {
        json.trim_start().starts_with('{').then(|| serde_json::from_str(json).ok())?
    }

    /// Returns the JSON of a member; `null` counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let value = self.0.iter().find(|it| it.0 == name)?.1.get();
        (value != "null").then_some(value)
    }

    /// Returns the JSON of the first of these members that is present.
    pub(super) fn first(&self, names: &[&str]) -> Option<&'a str> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Returns a member that is an object.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        Self::parse(self.get(name)?)
    }

    /// Returns a member that is a list.
    pub(super) fn list(&self, name: &str) -> Option<Vec<&'a str>> {
        list(self.get(name)?)
    }

    /// Returns a member that is a string.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        string(self.get(name)?)
    }

    /// Returns a member that is a plausible token count.
    pub(super) fn tokens(&self, name: &str) -> Option<i64> {
        value::count(serde_json::from_str(self.get(name)?).ok()?)
    }

    /// Returns the members that are not `null`.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.all().filter(|it| it.1 != "null")
    }

    /// Returns all members.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.get()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// A name, borrowed unless it is escaped.
        #[derive(Deserialize)]
        struct RawName<'a>(#[serde(borrow)] Cow<'a, str>);
        struct RawObjectVisitor;
        impl<'de> Visitor<'de> for RawObjectVisitor {
            type Value = RawObject<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((RawName(name), value)) = map.next_entry::<RawName<'de>, &'de RawValue>()? {
                    members.push((name, value));
                }
                Ok(RawObject(members))
            }
        }
        deserializer.deserialize_map(RawObjectVisitor)
    }
}

/// Returns the JSON of each item, if the text is a list.
pub(super) fn list(json: &str) -> Option<Vec<&str>> {
    let items = serde_json::from_str::<Vec<&RawValue>>(json).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// Returns the string, if the text is a JSON string.
pub(super) fn string(json: &str) -> Option<String> {
    json.starts_with('"').then(|| serde_json::from_str(json).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_object_members_are_parsed_lazily() {
        let json = r#" {"a": "x\u00fc", "b": [1, {"c": null}], "n": 3.0, "none": null, "\u0061b": {}}"#;
        let object = RawObject::parse(json);
        let object = object.as_ref();
        assert_eq!(object.and_then(|it| it.text("a")).as_deref(), Some("xü"));
        assert_eq!(object.and_then(|it| it.list("b")), Some(vec!["1", r#"{"c": null}"#]));
        assert_eq!(object.and_then(|it| it.tokens("n")), Some(3));
        assert_eq!(object.and_then(|it| it.get("none")), None);
        assert_eq!(object.and_then(|it| it.get("ab")), Some("{}"));
        assert_eq!(object.and_then(|it| it.text("b")), None);
        for none in ["", "[]", "{", r#"{"a"}"#, "text"] {
            assert!(RawObject::parse(none).is_none(), "{none}");
        }
    }
}
