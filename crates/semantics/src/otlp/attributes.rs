//! The attributes of one span, looked up by [`Key`] and taken out as they are mapped.
//!
//! **Invariant:** one pass over the list, no copies: what a convention takes moves out of the
//! list, and what nobody took or dropped is the span's metadata.

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};

use super::{
    keys::{Group, Key},
    value,
};

/// No attribute of the list has the key.
const ABSENT: u16 = u16::MAX;

/// The attributes of one span.
pub(super) struct Attributes {
    list: Vec<KeyValue>,
    slots: [u16; Key::COUNT],
    groups: [Vec<u16>; Group::COUNT],
}

impl Attributes {
    /// Indexes a list. Of a key that repeats, the first value counts.
    pub(super) fn new(list: Vec<KeyValue>) -> Self {
        let mut slots = [ABSENT; Key::COUNT];
        let mut groups = [const { Vec::new() }; Group::COUNT];
        // What lies beyond is kept as metadata, without a meaning.
        for (at, attribute) in list.iter().enumerate().take(usize::from(ABSENT)) {
            if let Some(key) = Key::find(&attribute.key) {
                if slots[key as usize] == ABSENT {
                    slots[key as usize] = at as u16;
                }
            } else if let Some(group) = Group::find(&attribute.key) {
                groups[group as usize].push(at as u16);
            }
        }
        Self { list, slots, groups }
    }

    /// The value under a key, unless it is absent, blank or already taken.
    pub(super) fn get(&self, key: Key) -> Option<&Value> {
        let value = self.list.get(usize::from(self.slots[key as usize]))?.value.as_ref()?.value.as_ref()?;
        (!value::is_blank(value)).then_some(value)
    }

    /// True if [`Attributes::get`] finds something.
    pub(super) fn has(&self, key: Key) -> bool {
        self.get(key).is_some()
    }

    /// The string under a key.
    pub(super) fn str(&self, key: Key) -> Option<&str> {
        match self.get(key)? {
            Value::StringValue(text) => Some(text),
            _ => None,
        }
    }

    /// Takes the value under a key.
    pub(super) fn take(&mut self, key: Key) -> Option<Value> {
        let value = self.list.get_mut(usize::from(self.slots[key as usize]))?.value.take()?.value?;
        (!value::is_blank(&value)).then_some(value)
    }

    /// Takes the value under a key as text; lists and maps become JSON.
    pub(super) fn take_text(&mut self, key: Key) -> Option<String> {
        value::into_text(self.take(key)?)
    }

    /// Puts back a text that was taken: it stays with the metadata unless it is dropped later.
    pub(super) fn put_back(&mut self, key: Key, text: String) {
        if let Some(attribute) = self.list.get_mut(usize::from(self.slots[key as usize])) {
            attribute.value = Some(AnyValue { value: Some(Value::StringValue(text)) });
        }
    }

    /// Takes the first of these keys that has text.
    pub(super) fn take_first(&mut self, keys: &[Key]) -> Option<String> {
        keys.iter().find_map(|key| self.take_text(*key))
    }

    /// Takes a token count; what is no believable count stays with the metadata.
    pub(super) fn take_tokens(&mut self, key: Key) -> Option<i64> {
        let count = value::tokens(self.get(key)?)?;
        self.drop_key(key);
        Some(count)
    }

    /// The first of these keys that holds a believable token count; all of them are taken.
    pub(super) fn first_tokens(&mut self, keys: &[Key]) -> Option<i64> {
        keys.iter().fold(None, |found, key| {
            let count = self.take_tokens(*key);
            found.or(count)
        })
    }

    /// A finite number under a key, which stays.
    pub(super) fn number(&self, key: Key) -> Option<f64> {
        value::number(self.get(key)?)
    }

    /// Leaves an attribute out of the metadata.
    pub(super) fn drop_key(&mut self, key: Key) {
        if let Some(attribute) = self.list.get_mut(usize::from(self.slots[key as usize])) {
            attribute.value = None;
        }
    }

    /// Leaves attributes out of the metadata.
    pub(super) fn drop_keys(&mut self, keys: &[Key]) {
        for key in keys {
            self.drop_key(*key);
        }
    }

    /// True if a key of the group was sent.
    pub(super) fn has_group(&self, group: Group) -> bool {
        !self.groups[group as usize].is_empty()
    }

    /// Takes the group's attributes: what follows the prefix, and the value; blank ones left out.
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

    /// Takes one attribute of a group by the name that follows the prefix.
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

    /// Leaves a group out of the metadata.
    pub(super) fn drop_group(&mut self, group: Group) {
        for at in std::mem::take(&mut self.groups[group as usize]) {
            if let Some(attribute) = self.list.get_mut(usize::from(at)) {
                attribute.value = None;
            }
        }
    }

    /// Whatever nobody took.
    pub(super) fn into_rest(self) -> Vec<KeyValue> {
        self.list
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Attributes from pairs of key and text; text that is a whole number is sent as a number.
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
    fn the_first_value_counts_and_moves_out() {
        let mut given = attributes(&[("session.id", "a"), ("session.id", "b"), ("other", "c")]);
        assert_eq!(given.take_text(Key::SessionId).as_deref(), Some("a"));
        assert_eq!(given.take_text(Key::SessionId), None);
        assert_eq!(given.into_rest().iter().filter(|it| it.value.is_some()).count(), 2);
    }

    #[test]
    fn unbelievable_counts_stay() {
        let mut given =
            attributes(&[("gen_ai.usage.input_tokens", "-5"), ("gen_ai.usage.output_tokens", "5")]);
        assert_eq!(given.take_tokens(Key::UsageInput), None);
        assert_eq!(given.take_tokens(Key::UsageOutput), Some(5));
        assert!(given.has(Key::UsageInput));
        assert!(!given.has(Key::UsageOutput));
    }

    #[test]
    fn groups_are_taken_by_what_follows_the_prefix() {
        let mut given = attributes(&[("gen_ai.prompt.0.role", "user"), ("gen_ai.prompt.0.content", "")]);
        assert!(given.has_group(Group::Prompt));
        assert_eq!(
            given.take_group(Group::Prompt),
            [("0.role".to_owned(), Value::StringValue("user".to_owned()))]
        );
        assert!(given.take_group(Group::Prompt).is_empty());
    }
}
