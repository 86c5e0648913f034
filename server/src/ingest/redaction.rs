//! Masks values in the texts of applications before they are stored, by the settings of their project.
//!
//! The engine is [`evaluators::redaction`]. OTLP messages are redacted after decoding ([`semantics::otlp::redact`]), items of
//! JSON ingest after parsing, feedback after validation. The number of masked values by kind is the member
//! [`REDACTIONS_ATTRIBUTE`](semantics::otlp::redact::REDACTIONS_ATTRIBUTE) of the metadata.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use api::{
    SpanType,
    ingest::{EventItem, SpanItem, TraceItem},
    project::RedactionSettings,
    trace::RawObject,
};
use evaluators::redaction::{RedactionProblem, Redactor};
use semantics::{
    draft::SpanDraft,
    otlp::{
        RejectedSpan, Sdk,
        redact::{Redact, RedactionCounts, with_counts},
    },
};
use serde_json::{Value, value::RawValue};
use store::row_text::{MAX_LABEL, MAX_ROW_TEXT_BYTES, label, row_text, tag_label};

use super::{rejections::RejectedItems, trace_item::MAX_TAGS};
use crate::error::{Error, Problem};

/// The redactor of a project.
#[derive(Debug)]
pub struct ProjectRedactor(Redactor);

impl ProjectRedactor {
    /// Compiles the settings of a project; `None` if nothing is redacted.
    ///
    /// # Errors
    ///
    /// Fails with the invalid field.
    pub fn new(settings: &RedactionSettings) -> Result<Option<Self>, RedactionProblem> {
        if settings.is_off() {
            return Ok(None);
        }
        Redactor::new(settings).map(|it| Some(Self(it)))
    }

    /// Returns the memory of the redactor in bytes, estimated.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Redacts a text that may be absent and has at most `max_chars` characters; a longer result is cut.
    pub fn bounded(&self, text: &mut Option<String>, max_chars: usize, counts: &mut RedactionCounts) {
        let Some(sent) = text else { return };
        let Some(redacted) = self.0.text(sent, counts) else { return };
        // A text that was too long stays too long, so that it is rejected as it would be without redaction.
        *sent = match sent.chars().nth(max_chars) {
            Some(_) => redacted,
            None => redacted.chars().take(max_chars).collect(),
        };
    }

    /// Redacts a JSON object that may be absent.
    pub fn object(&self, object: &mut Option<RawObject>, counts: &mut RedactionCounts) {
        if let Some(redacted) = object.as_ref().and_then(|it| self.0.text(it.get(), counts)) {
            // Redacted JSON is JSON. If it were not, nothing would be stored rather than the text as sent.
            *object = RawValue::from_string(redacted).ok();
        }
    }

    /// Returns a text redacted, without counts.
    pub fn redacted(&self, text: String) -> String {
        self.0.text(&text, &mut RedactionCounts::new()).unwrap_or(text)
    }

    /// Redacts the texts of the span of a control action. Its output may come from a callback of the application.
    pub fn draft(&self, draft: &mut SpanDraft) {
        let mut counts = RedactionCounts::new();
        for text in [&mut draft.input, &mut draft.output, &mut draft.model].into_iter().flatten() {
            self.text(text, &mut counts);
        }
        self.text(&mut draft.metadata, &mut counts);
        if !counts.is_empty()
            && let Some(with) = with_counts(&draft.metadata, &counts)
        {
            draft.metadata = with;
        }
    }

    /// Redacts an item. The IDs of the item, its spans and its events stay as sent: they are hashed.
    pub fn item(&self, item: &mut TraceItem) {
        let mut counts = RedactionCounts::new();
        let labels =
            [&mut item.external_id, &mut item.session_id, &mut item.user_id, &mut item.name, &mut item.model];
        for text in labels {
            self.bounded(text, MAX_LABEL, &mut counts);
        }
        for text in [&mut item.input, &mut item.output, &mut item.error].into_iter().flatten() {
            self.text(text, &mut counts);
        }
        if let Some(tags) = item.tags.take() {
            item.tags = Some(self.tags(tags, &mut counts));
        }
        self.object(&mut item.metadata, &mut counts);
        for event in item.events.iter_mut().flatten() {
            self.event(event, &mut counts);
        }
        add_counts(&mut item.metadata, &counts);
        for span in item.spans.iter_mut().flatten() {
            self.span(span);
        }
    }

    fn span(&self, span: &mut SpanItem) {
        let mut counts = RedactionCounts::new();
        self.text(&mut span.name, &mut counts);
        self.bounded(&mut span.model, MAX_LABEL, &mut counts);
        if let Some(SpanType::Custom(word)) = &mut span.kind {
            self.row_text(word, &mut counts);
        }
        for text in [&mut span.input, &mut span.output, &mut span.error].into_iter().flatten() {
            self.text(text, &mut counts);
        }
        self.object(&mut span.metadata, &mut counts);
        add_counts(&mut span.metadata, &counts);
    }

    fn event(&self, event: &mut EventItem, counts: &mut RedactionCounts) {
        self.text(&mut event.message, counts);
        if let Some(level) = &mut event.level {
            self.row_text(level, counts);
        }
        self.object(&mut event.metadata, counts);
    }

    /// Redacts a text whose length in bytes is limited; a longer result is cut.
    fn row_text(&self, text: &mut String, counts: &mut RedactionCounts) {
        if let Some(redacted) = self.0.text(text, counts) {
            *text = if text.len() > MAX_ROW_TEXT_BYTES { redacted } else { row_text(redacted) };
        }
    }

    fn tags(&self, sent: BTreeMap<String, Value>, counts: &mut RedactionCounts) -> BTreeMap<String, Value> {
        // An item with more tags is rejected, and its tags are not stored.
        if sent.len() > MAX_TAGS {
            return sent;
        }
        let mut tags = BTreeMap::new();
        let mut next_numbers = HashMap::new();
        for (key, value) in sent {
            let text = match &value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            };
            let redacted = text.and_then(|it| self.0.labelled_text(&key, &it, counts));
            let value = redacted.map_or(value, |it| Value::from(tag_label(&it)));
            let key = match self.0.text(&key, counts) {
                Some(redacted) => free_key(&tags, &mut next_numbers, label(&redacted)),
                None => key,
            };
            tags.insert(key, value);
        }
        tags
    }

    /// Redacts the message and the fields of a problem.
    pub fn problem(&self, problem: &mut Problem) {
        let mut counts = RedactionCounts::new();
        self.text(&mut problem.message, &mut counts);
        for it in &mut problem.fields {
            self.text(&mut it.field, &mut counts);
            self.text(&mut it.message, &mut counts);
        }
    }

    /// Redacts an error.
    pub fn error(&self, mut error: Error) -> Error {
        if let Error::Problem(problem) = &mut error {
            self.problem(problem);
        }
        error
    }
}

/// Returns a key that the tags do not have: equal placeholders must not become equal keys. `next_numbers` has the first
/// number to try for each key.
fn free_key(tags: &BTreeMap<String, Value>, next_numbers: &mut HashMap<String, u32>, key: String) -> String {
    if !tags.contains_key(&key) {
        return key;
    }
    let next = next_numbers.entry(key.clone()).or_insert(2);
    loop {
        let numbered = format!("{key}_{next}");
        *next += 1;
        if !tags.contains_key(&numbered) {
            return numbered;
        }
    }
}

/// Adds counts to metadata. Metadata that is not an object stays as it is, and is rejected later.
pub fn add_counts(metadata: &mut Option<RawObject>, counts: &RedactionCounts) {
    if counts.is_empty() {
        return;
    }
    let sent = metadata.as_ref().map(|it| it.get()).filter(|it| *it != "null").unwrap_or("{}");
    if let Some(with) = with_counts(sent, counts).and_then(|it| RawValue::from_string(it).ok()) {
        *metadata = Some(with);
    }
}

impl Redact for ProjectRedactor {
    fn text(&self, text: &mut String, counts: &mut RedactionCounts) {
        if let Some(redacted) = self.0.text(text, counts) {
            *text = redacted;
        }
    }

    fn labelled_text(&self, label: &str, text: &mut String, counts: &mut RedactionCounts) {
        if let Some(redacted) = self.0.labelled_text(label, text, counts) {
            *text = redacted;
        }
    }

    fn searches_small_numbers(&self, label: &str) -> bool {
        self.0.searches_small_numbers(label)
    }

    fn json_strings(&self, text: &mut String, counts: &mut RedactionCounts) {
        if let Some(redacted) = self.0.json_strings(text, counts) {
            *text = redacted;
        }
    }
}

/// The redactors of the projects of a request, for texts that belong to no single project.
#[derive(Clone, Debug, Default)]
pub struct RequestRedactors(pub Vec<Arc<ProjectRedactor>>);

impl RequestRedactors {
    /// Redacts why spans or log records are rejected, and the SDK that sent them.
    pub fn rejections(&self, rejections: &mut [RejectedSpan], sdk: &mut Option<Sdk>) {
        let mut counts = RedactionCounts::new();
        for redactor in &self.0 {
            for it in &mut *rejections {
                redactor.text(&mut it.message, &mut counts);
            }
            if let Some(sdk) = sdk {
                redactor.text(&mut sdk.name, &mut counts);
                sdk.version.iter_mut().for_each(|it| redactor.text(it, &mut counts));
            }
        }
    }

    /// Redacts the SDK and the reasons of rejected items.
    pub fn rejected(&self, items: &mut RejectedItems) {
        let mut counts = RedactionCounts::new();
        for redactor in &self.0 {
            for text in [&mut items.sdk, &mut items.sdk_version].into_iter().flatten() {
                redactor.text(text, &mut counts);
            }
            for reason in &mut items.reasons {
                redactor.text(&mut reason.message, &mut counts);
            }
        }
    }
}
