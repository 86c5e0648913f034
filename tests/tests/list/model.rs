//! The model of the list: rows in memory, filtered one by one and sorted.

use std::collections::{BTreeMap, BTreeSet};

use api::Timestamp;
use serde_json::{Value, json};
use tests::{Caller, app::TEST_START_MICROS, otlp};
use uuid::Uuid;

/// A trace as it is sent.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub id: Uuid,
    /// The name of the project; none for the key's project.
    pub project: Option<&'static str>,
    pub started_at: i64,
    pub name: Option<String>,
    pub model: Option<String>,
    pub session: Option<String>,
    pub user: Option<String>,
    pub external: Option<String>,
    pub error: Option<String>,
    pub failures: BTreeSet<&'static str>,
    pub latency: Option<i64>,
    pub tokens: i64,
    pub cost: Option<f64>,
    pub tags: BTreeMap<String, String>,
    pub input: Option<String>,
    pub output: Option<String>,
}

/// A condition of the list.
#[derive(Clone, Debug)]
pub enum Condition {
    Project(&'static str),
    Model(String),
    Error(bool),
    Failure(&'static str),
    From(i64),
    To(i64),
    Latency(Option<i64>, Option<i64>),
    Tokens(Option<i64>, Option<i64>),
    Cost(Option<f64>, Option<f64>),
    /// `tag_key` and `tag_value`.
    TagParts(String, String),
    /// `tag=key:value`.
    Tag(String, String),
    /// `tag=key`.
    TagKey(String),
    Session(String),
    User(String),
    Name(String),
    External(String),
    Words(&'static str),
}

/// Errors of spans with their failure types.
const SPAN_FAILURES: [(&str, &str); 4] = [
    ("request timed out", "timeout"),
    ("429 too many requests", "rate_limit"),
    ("JSONDecodeError: bad", "invalid_response"),
    ("maximum context length", "context_length"),
];
/// Keys that are difficult to find in text: parts of each other, with characters of JSON syntax.
const TAG_KEYS: [&str; 9] =
    ["env", "x\"env", "x,\"env", "{\"env", "en", "a:b", "back\\slash", "\u{1F600}", "%_"];
const TAG_VALUES: [&str; 8] = ["prod", "", "dev", "\"env\":", ",\"env\":\"prod\"", "a:b", "caf\u{e9}", "'"];
const MODEL_NAMES: [&str; 3] = ["house-1", "house-2", "HOUSE-1"];
const SEARCH_WORDS: [&str; 6] = ["Alpha", "beta", "gamma ray", "\u{c4}pfel", "delta_", "100%"];

impl Row {
    /// Returns a random row. Start times are few, so that many rows have the same.
    pub fn random(rng: &mut fastrand::Rng) -> Self {
        let mut maybe = |list: &[&str]| rng.bool().then(|| list[rng.usize(..list.len())].to_owned());
        let mut row = Self {
            name: maybe(&SEARCH_WORDS),
            model: maybe(&MODEL_NAMES),
            session: maybe(&["s-1", "s-2", "S-1"]),
            user: maybe(&["u-1", "u-2"]),
            external: maybe(&["e-1", "e-2", "e-3"]),
            error: maybe(&["boom", "Alpha failed", "beta"]),
            input: maybe(&SEARCH_WORDS),
            output: maybe(&SEARCH_WORDS),
            ..Self::default()
        };
        row.id = Uuid::from_u128(rng.u128(..));
        row.started_at = TEST_START_MICROS - rng.i64(0..40) * 1_000_000 + rng.i64(0..2);
        row.project = rng.bool().then_some("second");
        // The bounds of classes, and the values next to them.
        row.latency = rng.bool().then(|| (1_i64 << rng.u32(0..14)) + rng.i64(-1..2));
        row.tokens = if rng.bool() { 0 } else { (1_i64 << rng.u32(1..18)) + rng.i64(-1..2) };
        row.cost = rng.bool().then(|| f64::from(rng.u32(0..40)) / 1_000.0);
        if rng.u8(..4) == 0 {
            row.failures.insert(SPAN_FAILURES[rng.usize(..4)].1);
        }
        for _ in 0..rng.usize(..4) {
            row.tags.insert(
                TAG_KEYS[rng.usize(..TAG_KEYS.len())].to_owned(),
                TAG_VALUES[rng.usize(..TAG_VALUES.len())].to_owned(),
            );
        }
        if row.tokens > 0 || !row.failures.is_empty() {
            // A trace without a name takes that of its root span.
            row.name.get_or_insert_with(|| "c".to_owned());
        }
        // A key with more values than the list merges.
        if rng.bool() {
            row.tags.insert("n".to_owned(), rng.u8(..90).to_string());
        }
        row
    }

    /// Returns the item of JSON ingest.
    pub fn item(&self) -> Value {
        let mut spans = Vec::new();
        if self.tokens > 0 {
            spans.push(json!({"name": "c", "prompt_tokens": self.tokens - 1, "completion_tokens": 1}));
        } else if !self.failures.is_empty() {
            spans.push(json!({"name": "c"}));
        }
        for failure in &self.failures {
            let error = SPAN_FAILURES.iter().find(|it| it.1 == *failure).unwrap().0;
            spans.push(json!({"name": "f", "parent_span_id": "gone", "error": error}));
        }
        json!({
            "id": self.id, "project_name": self.project, "started_at": Timestamp::from_micros(self.started_at),
            "name": self.name, "model": self.model, "session_id": self.session, "user_id": self.user,
            "external_id": self.external, "error": self.error, "latency_ms": self.latency, "cost": self.cost,
            "tags": self.tags, "input": self.input, "output": self.output, "spans": spans,
        })
    }

    /// Returns a random row that OTLP can represent: one span with a name and an end.
    pub fn random_otlp(rng: &mut fastrand::Rng) -> Self {
        let row = Self::random(rng);
        Self {
            project: None,
            name: Some(row.name.unwrap_or_else(|| "otlp".to_owned())),
            latency: Some(row.latency.unwrap_or(7)),
            error: None,
            failures: BTreeSet::new(),
            external: None,
            cost: None,
            tags: BTreeMap::new(),
            input: None,
            output: None,
            ..row
        }
    }

    /// Returns the span as an OpenTelemetry SDK sends it.
    pub fn span(&self) -> otlp::Span {
        let end = self.started_at + self.latency.unwrap() * 1_000;
        let mut span = otlp::Span::new(self.id.as_u128(), 1, self.name.as_deref().unwrap(), self.started_at)
            .until(Some(end))
            .with("gen_ai.operation.name", "chat");
        let texts =
            [("gen_ai.request.model", &self.model), ("session.id", &self.session), ("user.id", &self.user)];
        for (key, text) in texts {
            if let Some(text) = text {
                span = span.with(key, text.as_str());
            }
        }
        if self.tokens > 0 {
            span =
                span.with("gen_ai.usage.input_tokens", self.tokens - 1).with("gen_ai.usage.output_tokens", 1);
        }
        span
    }

    fn has_words(&self, words: &str) -> bool {
        let fields: Vec<_> = [&self.name, &self.error, &self.input, &self.output]
            .into_iter()
            .flatten()
            .map(|it| it.to_lowercase())
            .collect();
        words.to_lowercase().split_whitespace().all(|word| fields.iter().any(|it| it.contains(word)))
    }
}

impl Condition {
    /// Returns a condition of a kind, usually one that some of the `rows` meet.
    pub fn random(rng: &mut fastrand::Rng, rows: &[Row], kind: usize) -> Self {
        let row = rows[rng.usize(..rows.len())].clone();
        let or = |text: Option<String>, other: &str| text.unwrap_or_else(|| other.to_owned());
        let mut bounds = |value: i64| match rng.u8(..4) {
            0 => (Some(value), None),
            1 => (None, Some(value)),
            2 => (Some(value), Some(value)),
            _ => (Some(value / 2), Some(value.saturating_mul(3))),
        };
        let tag = row
            .tags
            .iter()
            .next()
            .map_or(("none".to_owned(), "x".to_owned()), |(k, v)| (k.clone(), v.clone()));
        match kind {
            0 => Self::Project(row.project.unwrap_or("default")),
            1 => Self::Model(or(row.model, "house-3")),
            2 => Self::Error(rng.bool()),
            3 => Self::Failure(SPAN_FAILURES[rng.usize(..4)].1),
            4 => Self::From(row.started_at),
            5 => Self::To(row.started_at),
            6 => {
                let (min, max) = bounds(row.latency.unwrap_or(0));
                Self::Latency(min, max)
            }
            7 => {
                let (min, max) = bounds(row.tokens);
                Self::Tokens(min, max)
            }
            8 => {
                let (min, max) = bounds((row.cost.unwrap_or(0.0) * 1e6) as i64);
                Self::Cost(min.map(|it| it as f64 / 1e6), max.map(|it| it as f64 / 1e6))
            }
            9 => Self::TagParts(tag.0, tag.1),
            10 if tag.0.contains(':') => Self::TagParts(tag.0, tag.1),
            10 => Self::Tag(tag.0, tag.1),
            11 if tag.0.contains(':') => Self::TagKey("env".to_owned()),
            11 => Self::TagKey(tag.0),
            12 => Self::Session(or(row.session, "s-3")),
            13 => Self::User(or(row.user, "u-3")),
            14 => Self::Name(or(row.name, "nameless")),
            15 => Self::External(or(row.external, "e-4")),
            _ => Self::Words(
                ["alpha", "BETA", "gamma ray", "\u{e4}pfel", "a b", "delta_", "%", "nothing"][rng.usize(..8)],
            ),
        }
    }

    /// Number of kinds of [`Self::random`].
    pub const KIND_COUNT: usize = 17;

    /// Returns whether a row meets the condition.
    pub fn holds(&self, row: &Row) -> bool {
        let within = |value: Option<i64>, min: &Option<i64>, max: &Option<i64>| {
            value.is_some_and(|it| min.is_none_or(|min| it >= min) && max.is_none_or(|max| it <= max))
        };
        match self {
            Self::Project(name) => row.project.unwrap_or("default") == *name,
            Self::Model(it) => row.model.as_ref() == Some(it),
            Self::Error(it) => row.error.is_some() == *it,
            Self::Failure(it) => row.failures.contains(it),
            Self::From(it) => row.started_at >= *it,
            Self::To(it) => row.started_at <= *it,
            Self::Latency(min, max) => within(row.latency, min, max),
            Self::Tokens(min, max) => within(Some(row.tokens), min, max),
            Self::Cost(min, max) => row.cost.is_some_and(|it| {
                min.is_none_or(|min| it >= min - 1e-12) && max.is_none_or(|max| it <= max + 1e-12)
            }),
            Self::TagParts(key, value) | Self::Tag(key, value) => row.tags.get(key) == Some(value),
            Self::TagKey(key) => row.tags.contains_key(key),
            Self::Session(it) => row.session.as_ref() == Some(it),
            Self::User(it) => row.user.as_ref() == Some(it),
            Self::Name(it) => row.name.as_ref() == Some(it),
            Self::External(it) => row.external.as_ref() == Some(it),
            Self::Words(it) => row.has_words(it),
        }
    }

    /// Returns the parameters of the condition.
    pub fn parameters(&self, projects: &BTreeMap<&str, Uuid>) -> Vec<(&'static str, String)> {
        let range = |names: [&'static str; 2], bounds: [Option<String>; 2]| {
            names.into_iter().zip(bounds).filter_map(|(name, bound)| Some((name, bound?))).collect()
        };
        let whole = |it: &Option<i64>| it.map(|it| it.to_string());
        let dollars = |it: &Option<f64>| it.map(|it| it.to_string());
        let time = |it: i64| Timestamp::from_micros(it).to_string();
        match self {
            Self::Project(name) => vec![("project_id", projects[name].to_string())],
            Self::Model(it) => vec![("model", it.clone())],
            Self::Error(it) => vec![("error", it.to_string())],
            Self::Failure(it) => vec![("failure_type", (*it).to_owned())],
            Self::From(it) => vec![("from", time(*it))],
            Self::To(it) => vec![("to", time(*it))],
            Self::Latency(min, max) => range(["latency_min", "latency_max"], [whole(min), whole(max)]),
            Self::Tokens(min, max) => range(["token_count_min", "token_count_max"], [whole(min), whole(max)]),
            Self::Cost(min, max) => range(["min_cost", "max_cost"], [dollars(min), dollars(max)]),
            Self::TagParts(key, value) => vec![("tag_key", key.clone()), ("tag_value", value.clone())],
            Self::Tag(key, value) => vec![("tag", format!("{key}:{value}"))],
            Self::TagKey(key) => vec![("tag", key.clone())],
            Self::Session(it) => vec![("session_id", it.clone())],
            Self::User(it) => vec![("user_id", it.clone())],
            Self::Name(it) => vec![("name", it.clone())],
            Self::External(it) => vec![("external_id", it.clone())],
            Self::Words(it) => vec![("q", (*it).to_owned())],
        }
    }
}

/// Returns the ids of the rows that meet all conditions, in the order of the rows.
pub fn expected(rows: &[Row], conditions: &[Condition]) -> Vec<Uuid> {
    rows.iter().filter(|row| conditions.iter().all(|it| it.holds(row))).map(|it| it.id).collect()
}

/// Sorts the rows like the list of all traces, which must contain exactly these, newest first.
pub async fn in_list_order(caller: &Caller, rows: Vec<Row>) -> Vec<Row> {
    let listed = pages(caller, &[], 200).await;
    assert_eq!(listed.len(), rows.len());
    let mut rows: BTreeMap<Uuid, Row> = rows.into_iter().map(|it| (it.id, it)).collect();
    let sorted: Vec<Row> = listed.iter().map(|it| rows.remove(it).unwrap()).collect();
    assert!(sorted.is_sorted_by_key(|it| std::cmp::Reverse(it.started_at)));
    sorted
}

/// Stores the rows of `items` with JSON ingest, and those of `spans` with OTLP.
pub async fn store(caller: &Caller, items: &[Row], spans: &[Row]) {
    for some in items.chunks(100) {
        let items: Vec<_> = some.iter().map(Row::item).collect();
        let result = caller.post("/v1/ingest/batch", &json!({"traces": items})).await.ok();
        assert_eq!(result["accepted"], some.len(), "{result}");
    }
    for row in spans {
        caller.post("/v1/otlp/traces", &otlp::request(&[row.span()])).await.ok();
    }
}

/// Returns the ids of one page, and the cursor of the next page.
pub async fn page(caller: &Caller, parameters: &[(&str, String)]) -> (Vec<Uuid>, Option<String>) {
    let request = caller.request(reqwest::Method::GET, "/v1/traces").query(parameters);
    let body = caller.send(request).await.ok();
    let ids = body["traces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!(body["has_more"], body["next_cursor"].is_string());
    (ids, body["next_cursor"].as_str().map(str::to_owned))
}

/// Returns all pages. Each but the last has `limit` rows, or fewer in a search for words.
pub async fn pages(caller: &Caller, parameters: &[(&str, String)], limit: usize) -> Vec<Uuid> {
    let searched = parameters.iter().any(|it| it.0 == "q");
    let mut parameters = parameters.to_vec();
    parameters.push(("limit", limit.to_string()));
    let (mut all, first) = (Vec::new(), parameters.len());
    loop {
        let (ids, next) = page(caller, &parameters).await;
        assert!(
            ids.len() == limit || ids.len() < limit && (next.is_none() || searched),
            "{} of {limit}",
            ids.len()
        );
        all.extend(ids);
        let Some(next) = next else { return all };
        parameters.truncate(first);
        parameters.push(("cursor", next));
    }
}
