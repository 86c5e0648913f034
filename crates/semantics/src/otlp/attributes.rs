//! The attributes of one span, looked up by [`Key`] and removed as they are mapped.
//!
//! **Invariant:** one pass over the list and no copies: a convention moves values out of the list, and
//! the remaining attributes become the span's metadata.

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};

use super::{
    keys::{Group, Key},
    value,
};

/// No attribute of the list has the key.
const ABSENT_INDEX: u16 = u16::MAX;

/// The attributes of one span.
pub(super) struct Attributes {
    list: Vec<KeyValue>,
    slots: [u16; Key::COUNT],
    groups: [Vec<u16>; Group::COUNT],
}

impl Attributes {
    /// Indexes a list of attributes. For a repeated key, the first value counts.
    pub(super) fn new(list: Vec<KeyValue>) -> Self {
        let mut slots = [ABSENT_INDEX; Key::COUNT];
        let mut groups = [const { Vec::new() }; Group::COUNT];
        // Attributes beyond the maximum index are kept as metadata only.
        for (at, attribute) in list.iter().enumerate().take(usize::from(ABSENT_INDEX)) {
            if let Some(key) = Key::find(&attribute.key) {
                if slots[key as usize] == ABSENT_INDEX {
                    slots[key as usize] = at as u16;
                }
            } else if let Some(group) = Group::find(&attribute.key) {
                groups[group as usize].push(at as u16);
            }
        }
        Self { list, slots, groups }
    }

    /// Returns the value of a key, unless it is absent, blank or already taken.
    pub(super) fn get(&self, key: Key) -> Option<&Value> {
        let value = self.list.get(usize::from(self.slots[key as usize]))?.value.as_ref()?.value.as_ref()?;
        (!value::is_blank(value)).then_some(value)
    }

    /// Returns whether [`Attributes::get`] returns a value.
    pub(super) fn has(&self, key: Key) -> bool {
        self.get(key).is_some()
    }

    /// Returns the string value of a key.
    pub(super) fn str(&self, key: Key) -> Option<&str> {
        match self.get(key)? {
            Value::StringValue(text) => Some(text),
            _ => None,
        }
    }

    /// Takes the value of a key.
    pub(super) fn take(&mut self, key: Key) -> Option<Value> {
        let value = self.list.get_mut(usize::from(self.slots[key as usize]))?.value.take()?.value?;
        (!value::is_blank(&value)).then_some(value)
    }

    /// Takes the value of a key as text; lists and maps become JSON.
    pub(super) fn take_text(&mut self, key: Key) -> Option<String> {
        value::into_text(self.take(key)?)
    }

    /// Puts back a text that was taken. It becomes metadata unless the key is dropped later.
    pub(super) fn put_back(&mut self, key: Key, text: String) {
        if let Some(attribute) = self.list.get_mut(usize::from(self.slots[key as usize])) {
            attribute.value = Some(AnyValue { value: Some(Value::StringValue(text)) });
        }
    }

    /// Takes the first of these keys that has a text.
    pub(super) fn take_first(&mut self, keys: &[Key]) -> Option<String> {
        keys.iter().find_map(|key| self.take_text(*key))
    }

    /// Takes a token count; an implausible value remains metadata.
    pub(super) fn take_tokens(&mut self, key: Key) -> Option<i64> {
        let count = value::tokens(self.get(key)?)?;
        self.drop_key(key);
        Some(count)
    }

    /// Takes all of these keys and returns the first plausible token count.
    pub(super) fn first_tokens(&mut self, keys: &[Key]) -> Option<i64> {
        keys.iter().fold(None, |found, key| {
            let count = self.take_tokens(*key);
            found.or(count)
        })
    }

    /// Returns a finite number without taking it.
    pub(super) fn number(&self, key: Key) -> Option<f64> {
        value::number(self.get(key)?)
    }

    /// Excludes an attribute from the metadata.
    pub(super) fn drop_key(&mut self, key: Key) {
        if let Some(attribute) = self.list.get_mut(usize::from(self.slots[key as usize])) {
            attribute.value = None;
        }
    }

    /// Excludes attributes from the metadata.
    pub(super) fn drop_keys(&mut self, keys: &[Key]) {
        for key in keys {
            self.drop_key(*key);
        }
    }

    /// Returns whether a key of the group was sent.
    pub(super) fn has_group(&self, group: Group) -> bool {
        !self.groups[group as usize].is_empty()
    }

    /// Takes the group's attributes as pairs of name (after the prefix) and value, without blank ones.
    pub(super) fn take_group(&mut self, group: Group) -> Vec<(String, Value)> {
        let members = std::mem::take(&mut self.groups[group as usize]);
        let mut taken = Vec::with_capacity(members.len());
        for at in members {
            let Some(KeyValue { key, value, .. }) = self.list.get_mut(usize::from(at)) else { continue };
            let Some(AnyValue { value: Some(value) }) = value.take() else { continue };
            if !value::is_blank(&value) {
                taken.push((key[group.prefix().len()..].to_owned(), value));
            }
        }
        taken
    }

    /// Takes one attribute of a group by its name after the prefix.
    pub(super) fn take_from_group(&mut self, group: Group, names: &[&str]) -> Option<Value> {
        for name in names {
            for at in &self.groups[group as usize] {
                let Some(attribute) = self.list.get_mut(usize::from(*at)) else { continue };
                if attribute.key[group.prefix().len()..] == **name
                    && let Some(AnyValue { value: Some(value) }) = attribute.value.take()
                    && !value::is_blank(&value)
                {
                    return Some(value);
                }
            }
        }
        None
    }

    /// Excludes a group from the metadata.
    pub(super) fn drop_group(&mut self, group: Group) {
        for at in std::mem::take(&mut self.groups[group as usize]) {
            if let Some(attribute) = self.list.get_mut(usize::from(at)) {
                attribute.value = None;
            }
        }
    }

    /// Returns the attributes that were neither taken nor dropped.
    pub(super) fn into_rest(self) -> Vec<KeyValue> {
        self.list
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Creates attributes from pairs of key and text; a whole number becomes an integer.
    pub(in crate::otlp) fn attributes(pairs: &[(&str, &str)]) -> Attributes {
        Attributes::new(
            pairs
                .iter()
                .map(|(key, text)| {
                    let value = match text.parse() {
                        Ok(number) => Value::IntValue(number),
                        Err(_) => Value::StringValue((*text).to_owned()),
                    };
                    KeyValue {
                        key: (*key).to_owned(),
                        value: Some(AnyValue { value: Some(value) }),
                        key_strindex: 0,
                    }
                })
                .collect(),
        )
    }

    #[test]
    fn first_value_of_repeated_attribute_is_taken() {
        let mut given = attributes(&[("session.id", "a"), ("session.id", "b"), ("other", "c")]);
        assert_eq!(given.take_text(Key::SessionId).as_deref(), Some("a"));
        assert_eq!(given.take_text(Key::SessionId), None);
        assert_eq!(given.into_rest().iter().filter(|it| it.value.is_some()).count(), 2);
    }

    #[test]
    fn implausible_token_count_remains_metadata() {
        let mut given =
            attributes(&[("gen_ai.usage.input_tokens", "-5"), ("gen_ai.usage.output_tokens", "5")]);
        assert_eq!(given.take_tokens(Key::UsageInput), None);
        assert_eq!(given.take_tokens(Key::UsageOutput), Some(5));
        assert!(given.has(Key::UsageInput));
        assert!(!given.has(Key::UsageOutput));
    }

    #[test]
    fn attribute_group_is_taken_by_name_after_prefix() {
        let mut given = attributes(&[("gen_ai.prompt.0.role", "user"), ("gen_ai.prompt.0.content", "")]);
        assert!(given.has_group(Group::Prompt));
        assert_eq!(
            given.take_group(Group::Prompt),
            [("0.role".to_owned(), Value::StringValue("user".to_owned()))]
        );
        assert!(given.take_group(Group::Prompt).is_empty());
    }
}
