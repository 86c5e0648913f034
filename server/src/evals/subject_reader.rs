//! Reads the subject of an evaluation.

use std::collections::{BTreeMap, HashMap};

use api::trace_filter::TraceConditions;
use entities::{span, trace};
use evaluators::{
    Subject,
    subject::{ConversationTurn, Step},
};
use serde_json::{Map, Value};
use store::{
    Db, MemoryAccount, OutOfMemory, StoreError,
    traces::{self, Counted, PackedSpans, SpanTexts, TextBlocks, Texts},
};
use uuid::Uuid;

use crate::{error::Result, memory::MemoryBudget};

/// Maximum number of spans of a trace that evaluators see.
const MAX_SPANS: u64 = 2_000;
/// Maximum size in bytes of the spans' texts that they see: many traces are read at the same time.
const MAX_SPAN_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of earlier traces of the session that evaluators see.
const MAX_TURNS: usize = 50;
/// Maximum size in bytes of their texts together; no judge reads more.
const MAX_TURN_BYTES: usize = 1024 * 1024;

/// Maximum number of spans of a trace that is read together with others.
pub const MAX_SHORT_TRACE_SPANS: usize = 128;
/// Maximum size in bytes of the texts longer than 72 KiB in the traces of [`read_short`], together.
const MAX_LONG_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// The result of reading a subject.
pub enum SubjectLookup {
    /// The subject.
    Subject(Box<Subject>),
    /// The trace does not exist.
    NoTrace,
    /// The trace has no span with this ID.
    NoSpan,
}

/// Reads a trace, or one span of it, for evaluators; with the earlier turns of its session if
/// requested.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn read(db: &Db, tenant: Uuid, id: Uuid, span: Option<Uuid>, turns: bool) -> Result<SubjectLookup> {
    let db = &db.primary();
    let Some(row) = traces::get(db, tenant, id).await? else { return Ok(SubjectLookup::NoTrace) };
    let texts = traces::trace_texts(db, tenant, &row).await?;
    let mut spans = traces::spans(db, tenant, id, None, MAX_SPANS).await?;
    if let Some(requested_span) = span.filter(|it| spans.iter().all(|row| row.id != *it)) {
        // A span beyond the limit is evaluated without the others.
        spans.extend(traces::some_spans(db, tenant, &[(id, requested_span)]).await?);
    }
    let packed = PackedSpans::some_of(db, tenant, &spans, span, MAX_SPAN_BYTES).await?;
    let turns = if turns { earlier_turns(db, tenant, &row).await? } else { Vec::new() };
    // Texts of many megabytes are parsed here.
    let subject =
        tokio::task::spawn_blocking(move || build_subject(row, texts, spans, packed, turns, span)).await;
    subject.map_err(|_| anyhow::anyhow!("reading a trace for evaluation was interrupted"))?
}

fn build_subject(
    row: trace::Model,
    texts: Texts,
    spans: Vec<span::Model>,
    packed: PackedSpans,
    turns: Vec<ConversationTurn>,
    requested_span: Option<Uuid>,
) -> Result<SubjectLookup> {
    let mut subject = trace_subject(row, texts, turns);
    let spans = with_texts(spans, packed, requested_span)?;
    let Some(requested_span) = requested_span else {
        subject.steps = spans.into_iter().map(step).collect();
        return Ok(SubjectLookup::Subject(Box::new(subject)));
    };
    let Some(at) = spans.iter().position(|it| it.0.id == requested_span) else {
        return Ok(SubjectLookup::NoSpan);
    };
    let row = &spans[at].0;
    subject.name = Some(row.name.clone());
    subject.error.clone_from(&row.error);
    subject.model.clone_from(&row.model);
    subject.latency_ms = row.latency_ms;
    subject.cost = row.cost.map(semantics::money::to_usd);
    subject.prompt_tokens = row.prompt_tokens;
    subject.completion_tokens = row.completion_tokens;
    subject.steps = subtree(requested_span, spans).into_iter().map(step).collect();
    if let Some(own) = subject.steps.first() {
        subject.input.clone_from(&own.input);
        subject.output.clone_from(&own.output);
        subject.metadata = own.metadata.clone();
    }
    Ok(SubjectLookup::Subject(Box::new(subject)))
}

/// Returns the subject of a whole trace, without its steps.
fn trace_subject(row: trace::Model, texts: Texts, turns: Vec<ConversationTurn>) -> Subject {
    let tags = row.tags.as_deref().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    Subject {
        name: row.name,
        input: texts.input,
        output: texts.output,
        error: row.error,
        model: row.model,
        latency_ms: row.latency_ms,
        cost: row.cost.map(semantics::money::to_usd),
        prompt_tokens: row.prompt_tokens,
        completion_tokens: row.completion_tokens,
        tags,
        metadata: parse_object(texts.metadata),
        steps: Vec::new(),
        turns,
    }
}

/// A trace that was read, with its texts.
pub struct TraceParts {
    row: trace::Model,
    texts: Texts,
    spans: Vec<(span::Model, SpanTexts)>,
}

impl TraceParts {
    /// Returns the ID of the trace.
    pub fn trace_id(&self) -> Uuid {
        self.row.id
    }

    /// Returns the subject. Its texts are parsed here, which can take long.
    pub fn into_subject(self) -> Subject {
        let mut subject = trace_subject(self.row, self.texts, Vec::new());
        subject.steps = self.spans.into_iter().map(step).collect();
        subject
    }
}

/// Reads traces of up to [`MAX_SHORT_TRACE_SPANS`] spans, several with each statement. Returns `None` for each
/// trace that has to be read alone, because its texts are long or damaged.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn read_short(db: &Db, tenant: Uuid, rows: Vec<trace::Model>) -> Result<Vec<Option<TraceParts>>> {
    let db = &db.primary();
    let ids: Vec<Uuid> = rows.iter().map(|it| it.id).collect();
    let mut spans: HashMap<Uuid, Vec<span::Model>> = HashMap::with_capacity(ids.len());
    for span in traces::spans_of(db, tenant, &ids).await? {
        spans.entry(span.trace_id).or_default().push(span);
    }
    let of_traces = rows.iter().flat_map(|it| [it.body_id, it.input_body_id, it.output_body_id]);
    let of_spans = spans.values().flatten().map(|it| it.body_id);
    let block_ids: Vec<Uuid> = of_traces.chain(of_spans).flatten().collect();
    let mut blocks = TextBlocks::load(db, tenant, block_ids.into_iter()).await?;
    let mut memory = LongTexts { left: MAX_LONG_TEXT_BYTES };
    let mut read = Vec::with_capacity(rows.len());
    // The texts of a span leave the blocks, so the texts of all traces are read before.
    let mut texts = Vec::with_capacity(rows.len());
    for row in &rows {
        texts.push(readable(blocks.of_trace(db, row, &mut memory).await)?);
    }
    for (row, texts) in rows.into_iter().zip(texts) {
        let spans = spans.remove(&row.id).unwrap_or_default();
        let spans = match texts.is_some() && spans.len() <= MAX_SHORT_TRACE_SPANS {
            true => short_spans(db, &mut blocks, spans, &mut memory).await?,
            false => None,
        };
        read.push(texts.zip(spans).map(|(texts, spans)| TraceParts { row, texts, spans }));
    }
    Ok(read)
}

/// Returns the spans with their texts; `None` if one of them is long or damaged.
async fn short_spans(
    db: &Db,
    blocks: &mut TextBlocks,
    spans: Vec<span::Model>,
    memory: &mut LongTexts,
) -> Result<Option<Vec<(span::Model, SpanTexts)>>> {
    let mut read = Vec::with_capacity(spans.len());
    for span in spans {
        let Some(texts) = readable(blocks.of_span(db, &span, memory).await)? else { return Ok(None) };
        read.push((span, texts));
    }
    Ok(Some(read))
}

/// Returns the texts; `None` if they are too long or damaged.
fn readable<T>(read: store::Result<Counted<T>>) -> Result<Option<T>> {
    match read {
        Ok(counted) => Ok(Some(counted.texts)),
        Err(StoreError::OutOfMemory(_) | StoreError::Database(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Bounds the long texts of traces that are read together.
struct LongTexts {
    left: usize,
}

impl MemoryAccount for LongTexts {
    async fn reserve(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        self.left = self.left.checked_sub(bytes).ok_or(OutOfMemory)?;
        Ok(())
    }

    fn release(&mut self, bytes: usize) {
        self.left += bytes;
    }
}

/// Returns the spans with their texts, up to a bound; those beyond it have none.
fn with_texts(
    spans: Vec<span::Model>,
    mut packed: PackedSpans,
    requested_span: Option<Uuid>,
) -> Result<Vec<(span::Model, SpanTexts)>> {
    let mut bytes = 0;
    let mut read = Vec::with_capacity(spans.len());
    for row in spans {
        let texts = if bytes < MAX_SPAN_BYTES || requested_span == Some(row.id) {
            packed.take(&row)?
        } else {
            SpanTexts::default()
        };
        let sizes = [&texts.input, &texts.output, &texts.metadata].into_iter().flatten().map(String::len);
        bytes += sizes.sum::<usize>();
        read.push((row, texts));
    }
    Ok(read)
}

/// Returns a span and its descendants, itself first, the others ordered by start.
fn subtree(root: Uuid, spans: Vec<(span::Model, SpanTexts)>) -> Vec<(span::Model, SpanTexts)> {
    let mut children: BTreeMap<Uuid, Vec<Uuid>> = BTreeMap::new();
    for (row, _) in &spans {
        if let Some(parent) = row.parent_id.filter(|it| *it != row.id) {
            children.entry(parent).or_default().push(row.id);
        }
    }
    let mut included = std::collections::BTreeSet::from([root]);
    let mut pending = vec![root];
    while let Some(id) = pending.pop() {
        // A loop ends where it began.
        pending
            .extend(children.remove(&id).unwrap_or_default().into_iter().filter(|it| included.insert(*it)));
    }
    let (mut own, rest): (Vec<_>, Vec<_>) =
        spans.into_iter().filter(|it| included.contains(&it.0.id)).partition(|it| it.0.id == root);
    own.extend(rest);
    own
}

fn step((row, texts): (span::Model, SpanTexts)) -> Step {
    Step {
        id: row.id,
        parent: row.parent_id,
        name: row.name,
        kind: row.kind.into(),
        input: texts.input,
        output: texts.output,
        error: row.error,
        model: row.model,
        metadata: parse_object(texts.metadata),
    }
}

fn parse_object(text: Option<String>) -> Map<String, Value> {
    text.and_then(|it| serde_json::from_str(&it).ok()).unwrap_or_default()
}

/// Returns the earlier traces of the same session, oldest first.
async fn earlier_turns(db: &Db, tenant: Uuid, row: &trace::Model) -> Result<Vec<ConversationTurn>> {
    let Some(session) = &row.session_id else { return Ok(Vec::new()) };
    let filter = TraceConditions {
        session_id: Some(session.clone()),
        project_id: Some(row.project_id),
        ..TraceConditions::default()
    };
    let (after, mut memory) = (Some(traces::position(row)), MemoryBudget::uncounted());
    let page = traces::page(db, tenant, &filter, after, MAX_TURNS, &mut memory).await?;
    let mut bytes = 0;
    let mut turns = Vec::new();
    for (_, texts) in page.rows {
        bytes += texts.bytes();
        if bytes > MAX_TURN_BYTES {
            break;
        }
        turns.push(ConversationTurn { input: texts.input, output: texts.output });
    }
    turns.reverse();
    Ok(turns)
}
