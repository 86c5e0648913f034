//! Adds members to JSON objects that are kept as text.
//!
//! The metadata of a span is stored and returned as the sender wrote it, and may have megabytes. Parsing
//! it to add one member would cost more than everything else that ingest does with it, and a tree of
//! values takes many times the memory of its text. So the member is appended to the text. This is the
//! only place that edits JSON objects as text.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The text of a JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectText(String);

impl From<String> for ObjectText {
    /// Takes a text that was checked to be a JSON object.
    fn from(object: String) -> Self {
        Self(object)
    }
}

impl ObjectText {
    /// Returns the text of an object with one more member; without an object, of one with this member.
    pub fn with(object: Option<String>, name: &'static str, value: &impl Serialize) -> String {
        let mut text = Self(object.unwrap_or_else(|| "{}".to_owned()));
        text.set(name, value);
        text.0
    }

    /// Sets a member; `name` needs no escaping. A member of that name is replaced, and the others keep
    /// their text.
    pub fn set(&mut self, name: &'static str, value: &impl Serialize) {
        // Values with string keys always serialize.
        let Ok(value) = serde_json::to_string(value) else { return };
        self.remove(name);
        let Some(members) = self.0.trim_end().strip_suffix('}') else { return };
        let separator = if members.trim_end().ends_with('{') { "" } else { "," };
        self.0.truncate(members.len());
        self.0.push_str(separator);
        self.0.push('"');
        self.0.push_str(name);
        self.0.push_str("\":");
        self.0.push_str(&value);
        self.0.push('}');
    }

    /// Removes a member. The object is parsed only if its text contains the name.
    fn remove(&mut self, name: &str) {
        if !self.0.contains(&format!("\"{name}\"")) {
            return;
        }
        let Ok(Members(mut members)) = serde_json::from_str(&self.0) else { return };
        let count = members.len();
        members.retain(|(key, _)| key != name);
        if members.len() < count
            && let Ok(text) = serde_json::to_string(&Members(members))
        {
            self.0 = text;
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text, unless the object has no members.
    pub fn into_nonempty(self) -> Option<String> {
        (self.0 != "{}").then_some(self.0)
    }
}

/// The members of an object in their order, with their values as text.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Members<'de>, A::Error> {
        /// A name, which is borrowed unless it contains escapes.
        #[derive(Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

        let mut members = Vec::new();
        while let Some((Name(name), value)) = object.next_entry()? {
            members.push((name, value));
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(object: &str) -> String {
        ObjectText::with(Some(object.to_owned()), "cost", &json!({"usd": 1}))
    }

    #[test]
    fn member_is_appended_to_text_of_object() {
        for (object, expected) in [
            ("{}", r#"{"cost":{"usd":1}}"#),
            ("{ }", r#"{ "cost":{"usd":1}}"#),
            ("{\"a\":1}", r#"{"a":1,"cost":{"usd":1}}"#),
            ("{\"a\":{}} ", r#"{"a":{},"cost":{"usd":1}}"#),
            ("{\"a\":\"}\"}", r#"{"a":"}","cost":{"usd":1}}"#),
            ("{\"a\":\"{\"}", r#"{"a":"{","cost":{"usd":1}}"#),
        ] {
            let text = with(object);
            assert_eq!(text, expected);
            serde_json::from_str::<serde_json::Value>(&text).unwrap();
        }
        assert_eq!(ObjectText::with(None, "n", &1), r#"{"n":1}"#);
    }

    #[test]
    fn member_of_same_name_is_replaced_and_others_keep_their_text() {
        for (object, expected) in [
            (r#"{"cost":null}"#, r#"{"cost":{"usd":1}}"#),
            (r#"{"z":1e400,"cost":2,"a":[ 1 ]}"#, r#"{"z":1e400,"a":[ 1 ],"cost":{"usd":1}}"#),
            (r#"{"cost":2,"cost":3}"#, r#"{"cost":{"usd":1}}"#),
            (r#"{"a\u0062":"\"cost\"","co\u0073t":0,"cost":1}"#, r#"{"ab":"\"cost\"","cost":{"usd":1}}"#),
            // The name occurs, but is not a member.
            (r#"{"a":{"cost":2}}"#, r#"{"a":{"cost":2},"cost":{"usd":1}}"#),
        ] {
            assert_eq!(with(object), expected);
        }
    }

    #[test]
    fn object_without_members_is_none() {
        assert_eq!(ObjectText::from("{}".to_owned()).into_nonempty(), None);
        assert_eq!(ObjectText::from("{\"a\":1}".to_owned()).into_nonempty().as_deref(), Some("{\"a\":1}"));
    }
}
