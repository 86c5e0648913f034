//! JSON read one level at a time: values are borrowed as text until something asks for them.
//!
//! Whole requests and responses of providers arrive in one attribute. Only a few of their members
//! matter, so nothing is built of the rest, and a member of an unexpected type hides no other one.

use std::borrow::Cow;

use serde::{
    Deserialize,
    de::{Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::value;

/// The members of a JSON object in their order, values unread.
pub(super) struct RawObject<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawObject<'a> {
    /// The object that the text is, if it is one.
    pub(super) fn parse(json: &'a str) -> Option<Self> {
        json.trim_start().starts_with('{').then(|| serde_json::from_str(json).ok())?
    }

    /// The JSON of a member; `null` counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let value = self.0.iter().find(|it| it.0 == name)?.1.get();
        (value != "null").then_some(value)
    }

    /// The JSON of the first of these members that is present.
    pub(super) fn first(&self, names: &[&str]) -> Option<&'a str> {
        names.iter().find_map(|name| self.get(name))
    }

    /// A member that is an object.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        Self::parse(self.get(name)?)
    }

    /// A member that is a list.
    pub(super) fn list(&self, name: &str) -> Option<Vec<&'a str>> {
        list(self.get(name)?)
    }

    /// A member that is a string.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        string(self.get(name)?)
    }

    /// A member that is a believable token count.
    pub(super) fn tokens(&self, name: &str) -> Option<i64> {
        value::count(serde_json::from_str(self.get(name)?).ok()?)
    }

    /// The members that are not `null`.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.get())).filter(|it| it.1 != "null")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// A name that borrows unless it is escaped.
        #[derive(Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = RawObject<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    members.push((name, value));
                }
                Ok(RawObject(members))
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// The JSON of each item, if the text is a list.
pub(super) fn list(json: &str) -> Option<Vec<&str>> {
    let items = serde_json::from_str::<Vec<&RawValue>>(json).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// The string that the text is, if it is one.
pub(super) fn string(json: &str) -> Option<String> {
    json.starts_with('"').then(|| serde_json::from_str(json).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_one_by_one() {
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
