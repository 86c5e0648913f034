//! The sections of data that a judge sees, and the allocation of the available characters to them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{fence::Fence, rubric::TracePart};
use crate::{
    subject::{Reading, Subject},
    verdict::NotEvaluated,
};

/// A part of a judge's request that contains data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PromptPart {
    /// A part of the trace.
    Trace(TracePart),
    /// A value of the trace's metadata, by its key or dotted path.
    Metadata(String),
    /// An option of the evaluation's config.
    Config(String),
}

impl PromptPart {
    /// Returns the name of the section.
    pub fn name(&self) -> String {
        match self {
            Self::Trace(need) => need.word().to_owned(),
            Self::Metadata(key) => format!("metadata.{key}"),
            Self::Config(key) => format!("config.{key}"),
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Trace(TracePart::Documents) => 4,
            Self::Trace(TracePart::Input | TracePart::Output) => 3,
            Self::Trace(TracePart::Calls | TracePart::Turns) => 2,
            Self::Trace(TracePart::Tools) | Self::Metadata(_) | Self::Config(_) => 1,
        }
    }
}

/// Items that are shown under one name.
pub(super) struct Section<'a> {
    name: String,
    /// The weight of the section when the sections need more characters than are available.
    pub(super) weight: usize,
    items: Vec<Cow<'a, str>>,
    /// Whether the last items are kept if there are too many.
    newest: bool,
}

/// Minimum number of characters of an item; below it, fewer items are shown.
const MIN_ITEM_CHARS: usize = 160;
/// Characters for the lines around a section or a note, in addition to the token.
const SECTION_OVERHEAD_CHARS: usize = 200;

impl Section<'_> {
    /// Returns an upper bound of the characters that the whole section takes; line ends are counted only
    /// within the limit for all sections.
    pub(super) fn size(&self) -> usize {
        self.items.iter().map(|it| size(it)).fold(SECTION_OVERHEAD_CHARS, usize::saturating_add)
    }

    pub(super) fn write(&self, fence: &mut Fence<'_>, most: usize) {
        fence.open(&self.name);
        let room = most.saturating_sub(SECTION_OVERHEAD_CHARS);
        let fits = (room / MIN_ITEM_CHARS).max(1);
        let left_out = self.items.len().saturating_sub(fits);
        let items =
            if self.newest { &self.items[left_out..] } else { &self.items[..self.items.len() - left_out] };
        if left_out > 0 && self.newest {
            fence.note(&format!("{left_out} earlier ones left out"));
        }
        let sizes: Vec<usize> = items.iter().map(|it| size(it)).collect();
        for (item, most) in items.iter().zip(shares(&sizes, &vec![1; sizes.len()], room)) {
            fence.data(item, most);
        }
        if left_out > 0 && !self.newest {
            fence.note(&format!("{left_out} more left out"));
        }
        fence.close(&self.name);
    }
}

/// Returns an upper bound of the characters that a text takes when quoted; line ends beyond the limit for all
/// sections are not counted.
fn size(text: &str) -> usize {
    let lines = text.bytes().take(super::MAX_SHOWN_CHARS).filter(|it| *it == b'\n').count();
    SECTION_OVERHEAD_CHARS.saturating_add(text.len()).saturating_add(2 * lines)
}

/// Returns the section of a part; none if the trace lacks it. `beside_turns`: earlier turns have a section of
/// their own.
pub(super) fn of<'a>(
    part: &PromptPart,
    beside_turns: bool,
    subject: &'a Subject,
    reading: &'a Reading,
    config: &Map<String, Value>,
) -> Option<Section<'a>> {
    let items: Vec<Cow<'a, str>> = match part {
        PromptPart::Trace(TracePart::Input) if beside_turns => {
            reading.last_input().into_iter().map(Cow::Borrowed).collect()
        }
        PromptPart::Trace(TracePart::Input) => reading.input().into_iter().map(Cow::Borrowed).collect(),
        PromptPart::Trace(TracePart::Output) => reading.output().into_iter().map(Cow::Borrowed).collect(),
        PromptPart::Trace(TracePart::Documents) => {
            reading.documents().iter().map(|it| it.to_string().into()).collect()
        }
        PromptPart::Trace(TracePart::Tools) => {
            reading.tools().iter().map(|it| it.to_string().into()).collect()
        }
        PromptPart::Trace(TracePart::Calls) => {
            reading.calls().iter().map(|it| it.to_string().into()).collect()
        }
        PromptPart::Trace(TracePart::Turns) => {
            reading.turns().iter().map(|it| it.to_string().into()).collect()
        }
        PromptPart::Metadata(path) => found(&subject.metadata, path).into_iter().map(text).collect(),
        PromptPart::Config(path) => {
            found(config, path).map(|it| Cow::Owned(text(it).into_owned())).into_iter().collect()
        }
    };
    let items: Vec<Cow<'a, str>> = items.into_iter().filter(|it| !it.trim().is_empty()).collect();
    if items.is_empty() {
        return None;
    }
    let newest = *part == PromptPart::Trace(TracePart::Turns);
    Some(Section { name: part.name(), weight: part.weight(), items, newest })
}

/// Returns the value under a key or a dotted path.
fn found<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = object.get(path) {
        return Some(value).filter(|it| !it.is_null());
    }
    let (key, rest) = path.split_once('.')?;
    found(object.get(key)?.as_object()?, rest)
}

fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Returns the reason why a section is missing, and what to send.
pub(super) fn missing(part: &PromptPart, subject: &Subject) -> NotEvaluated {
    let why = match part {
        PromptPart::Trace(TracePart::Input) => {
            "the trace has no input: send `input` with the trace, or on its root span".to_owned()
        }
        PromptPart::Trace(TracePart::Output) if subject.error.is_some() => {
            "the trace has no output, because it ended in an error: evaluate traces with an output (an eval rule's \
             filter `error: false` selects them)"
                .to_owned()
        }
        PromptPart::Trace(TracePart::Output) => {
            "the trace has no output: send `output` with the trace, or on its root span".to_owned()
        }
        PromptPart::Trace(TracePart::Documents) => {
            "the trace has no retrieved documents: send a span of type `retrieval` \
                                         whose output is the JSON list of documents, or send the list as \
                                         `metadata.documents` of the trace"
                .to_owned()
        }
        PromptPart::Trace(TracePart::Tools) => "the trace does not say which tools were offered: send the request's \
                                     `tools` in the input of the span that calls the model, or as \
                                     `metadata.tools` of the trace"
            .to_owned(),
        PromptPart::Trace(TracePart::Calls) => {
            "the trace has no tool calls: send a span of type `tool` for each, or the \
                                     model's answer with its `tool_calls` as the output of its span"
                .to_owned()
        }
        PromptPart::Trace(TracePart::Turns) => {
            "the trace has no earlier turns: give the traces of a conversation the same \
                                     `session_id`, or send the whole list of messages as `input`"
                .to_owned()
        }
        PromptPart::Metadata(key) => {
            format!("the trace's metadata has no `{key}`, which the rubric refers to: send it with the trace")
        }
        PromptPart::Config(key) => {
            format!(
                "the config has no `{key}`, which the rubric refers to: set it in the evaluation's `config`"
            )
        }
    };
    NotEvaluated::new(why)
}

/// Divides `room` by weight. No section gets more than it needs; the rest goes to the other sections.
pub(super) fn shares(requested: &[usize], weights: &[usize], room: usize) -> Vec<usize> {
    let mut granted = vec![0; requested.len()];
    let mut open: Vec<usize> = (0..requested.len()).collect();
    let mut left = room;
    loop {
        let total: usize = open.iter().map(|it| weights[*it]).sum();
        if total == 0 {
            return granted;
        }
        let (content, greedy): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|it| requested[**it] <= left * weights[**it] / total);
        if content.is_empty() {
            for it in greedy {
                granted[it] = left * weights[it] / total;
            }
            return granted;
        }
        for it in content {
            granted[it] = requested[it];
            left -= requested[it];
        }
        open = greedy;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_shared_by_weight_without_waste() {
        assert_eq!(shares(&[10, 10], &[1, 1], 100), [10, 10]);
        assert_eq!(shares(&[10, 1_000], &[1, 1], 100), [10, 90]);
        assert_eq!(shares(&[1_000, 1_000], &[3, 1], 100), [75, 25]);
        assert_eq!(shares(&[1_000, 20, 1_000], &[3, 1, 1], 100), [60, 20, 20]);
        assert_eq!(shares(&[usize::MAX, usize::MAX], &[1, 1], 100), [50, 50]);
        assert_eq!(shares(&[], &[], 100), [0; 0]);
    }

    #[test]
    fn metadata_is_found_by_key_and_by_path() {
        let Value::Object(object) = serde_json::json!({"a.b": 1, "c": {"d": {"e": "x"}}, "n": null}) else {
            panic!()
        };
        assert_eq!(found(&object, "a.b"), Some(&Value::from(1)));
        assert_eq!(found(&object, "c.d.e"), Some(&Value::from("x")));
        assert_eq!(found(&object, "c.x"), None);
        assert_eq!(found(&object, "n"), None);
    }
}
