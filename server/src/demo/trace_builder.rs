//! Builds traces: spans with consistent times, and IDs that follow from the seed.

use std::collections::BTreeMap;

use api::{
    SpanType, Timestamp, UsageDetails,
    ingest::{EventItem, SpanItem, TraceItem},
    trace::RawObject,
};
use fastrand::Rng;
use serde_json::{Value, value::RawValue};

/// A trace in the format of the JSON ingest, under construction. Times are in microseconds.
pub(super) struct TraceBuilder {
    item: TraceItem,
    spans: Vec<SpanItem>,
    events: Vec<EventItem>,
    start: i64,
    /// The start of the next step.
    cursor: i64,
}

/// The index of a span within its draft.
pub(super) type SpanIndex = usize;

impl TraceBuilder {
    /// Creates a trace with a root span, which lasts until [`TraceBuilder::end`].
    pub(super) fn new(rng: &mut Rng, name: &str, start: i64) -> Self {
        let id = uuid::Builder::from_random_bytes(rng.u128(..).to_be_bytes()).into_uuid();
        let item = TraceItem {
            id: Some(id.to_string()),
            started_at: Some(Timestamp::from_micros(start)),
            ..TraceItem::default()
        };
        let mut builder = Self { item, spans: Vec::new(), events: Vec::new(), start, cursor: start };
        builder.push(None, name, SpanType::Other, start, start);
        builder
    }

    /// Adds a step of this many milliseconds below the root, after the last step.
    pub(super) fn step(&mut self, name: &str, kind: SpanType, ms: i64) -> SpanIndex {
        let start = self.cursor + 2_000;
        self.cursor = start + ms * 1_000;
        self.push(Some(0), name, kind, start, self.cursor)
    }

    /// Adds a step that begins together with the last step.
    pub(super) fn parallel_step(&mut self, name: &str, kind: SpanType, ms: i64) -> SpanIndex {
        let last = self.spans.last().and_then(|it| it.start_time).map_or(self.cursor, Timestamp::micros);
        let end = last + ms * 1_000;
        self.cursor = self.cursor.max(end);
        self.push(Some(0), name, kind, last, end)
    }

    /// Adds a step within another step, for its whole duration.
    pub(super) fn child_step(&mut self, outer: SpanIndex, name: &str, kind: SpanType) -> SpanIndex {
        let time = |it: Option<Timestamp>| it.map_or(self.cursor, Timestamp::micros);
        let (start, end) = self
            .spans
            .get(outer)
            .map_or((self.cursor, self.cursor), |it| (time(it.start_time), time(it.end_time)));
        self.push(Some(outer), name, kind, start, end)
    }

    /// Returns a span for further changes.
    pub(super) fn span(&mut self, index: SpanIndex) -> Option<&mut SpanItem> {
        self.spans.get_mut(index)
    }

    /// Sets the input and output of a span.
    pub(super) fn set_texts(
        &mut self,
        index: SpanIndex,
        input: impl Into<String>,
        output: impl Into<String>,
    ) {
        if let Some(span) = self.span(index) {
            span.input = Some(input.into());
            span.output = Some(output.into());
        }
    }

    /// Makes a span a model call: its tokens follow from its texts.
    pub(super) fn set_model_call(&mut self, rng: &mut Rng, index: SpanIndex, model: &str) {
        if let Some(span) = self.span(index) {
            let tokens =
                |text: &Option<String>| text.as_ref().map_or(0, |it| it.chars().count() as i64 / 4 + 1);
            span.model = Some(model.to_owned());
            // The real prompt also contains a system prompt and other text, which is not shown.
            span.prompt_tokens = Some(tokens(&span.input) + rng.i64(180..900));
            span.completion_tokens = Some(tokens(&span.output) + rng.i64(0..24));
            // The provider caches the system prompt of a long call.
            span.usage_details = span
                .prompt_tokens
                .filter(|it| *it > 640)
                .map(|_| UsageDetails { cached_input_tokens: Some(512), ..UsageDetails::default() });
            span.metadata = object(&serde_json::json!({
                "gen_ai.request.temperature": f64::from(rng.u8(0..10)) / 10.0,
                "gen_ai.request.max_tokens": 1_024,
            }));
        }
    }

    /// Makes a span fail: it has no output and no cost.
    pub(super) fn set_error(&mut self, index: SpanIndex, error: &str) {
        if let Some(span) = self.span(index) {
            span.error = Some(error.to_owned());
            span.output = None;
            (span.prompt_tokens, span.completion_tokens, span.usage_details) = (None, None, None);
        }
    }

    /// Adds an event during a span.
    pub(super) fn add_event(&mut self, index: SpanIndex, level: &str, message: &str) {
        self.events.push(EventItem {
            message: message.to_owned(),
            id: Some(format!("event-{}", self.events.len())),
            span_id: Some(index.to_string()),
            level: Some(level.to_owned()),
            metadata: None,
        });
    }

    /// Sets the user, the session and the tags of the trace.
    pub(super) fn set_user(&mut self, user: &str, session: Option<&str>, tags: &[(&str, &str)]) {
        self.item.user_id = Some(user.to_owned());
        self.item.session_id = session.map(str::to_owned);
        let tag = |(key, value): &(&str, &str)| ((*key).to_owned(), Value::from(*value));
        self.item.tags = Some(tags.iter().map(tag).collect::<BTreeMap<_, _>>());
    }

    /// Sets the application's metadata of the trace.
    pub(super) fn set_metadata(&mut self, metadata: &Value) {
        self.item.metadata = object(metadata);
    }

    /// Ends the root span with the user's question and the answer, or the trace with an error. Only the step that failed
    /// is a failing span: with a failing root span too, every failure would be in two clusters.
    pub(super) fn end(mut self, input: &str, answer: Result<&str, &str>) -> TraceItem {
        let end = self.cursor + 3_000;
        if let Some(root) = self.spans.first_mut() {
            root.end_time = Some(Timestamp::from_micros(end));
            root.latency_ms = Some((end - self.start) / 1_000);
            root.input = Some(input.to_owned());
            root.output = answer.ok().map(str::to_owned);
        }
        self.item.error = answer.err().map(str::to_owned);
        self.item.spans = Some(self.spans);
        self.item.events = Some(self.events);
        self.item
    }

    fn push(
        &mut self,
        parent: Option<SpanIndex>,
        name: &str,
        kind: SpanType,
        start: i64,
        end: i64,
    ) -> SpanIndex {
        self.spans.push(SpanItem {
            name: name.to_owned(),
            kind: Some(kind),
            id: Some(self.spans.len().to_string()),
            parent_span_id: parent.map(|it| it.to_string()),
            input: None,
            output: None,
            model: None,
            latency_ms: Some((end - start) / 1_000),
            cost: None,
            error: None,
            prompt_tokens: None,
            completion_tokens: None,
            usage_details: None,
            metadata: None,
            start_time: Some(Timestamp::from_micros(start)),
            end_time: Some(Timestamp::from_micros(end)),
            embedding: None,
        });
        self.spans.len() - 1
    }
}

fn object(value: &Value) -> Option<RawObject> {
    RawValue::from_string(value.to_string()).ok()
}

/// Moves a whole trace in time, by microseconds.
pub(super) fn shift(item: &mut TraceItem, by: i64) {
    let spans = item.spans.iter_mut().flatten();
    let times = spans.flat_map(|it| [&mut it.start_time, &mut it.end_time]);
    for time in times.chain([&mut item.started_at]).flatten() {
        *time = Timestamp::from_micros(time.micros() + by);
    }
}
