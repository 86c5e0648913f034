//! Stores the output of an action as a span of its trace.

use std::collections::HashSet;

use api::SpanType;
use entities::{control_action, span};
use semantics::draft::{SpanDraft, TraceHints};
use serde_json::{Value, json};
use store::{
    derived_id,
    traces::{self, Allowance, ChunkOutcome},
};
use uuid::Uuid;

use crate::{
    app::App,
    error::Result,
    ingest::spans::{Receipt, to_chunks},
    providers::chat::ChatReply,
};

/// The output of an action, and when the provider was called.
#[derive(Clone)]
pub struct RemediatedOutput {
    /// The reply.
    pub reply: ChatReply,
    /// The input that the span shows.
    pub input: String,
    /// The requested model; a callback may choose it itself.
    pub model: Option<String>,
    /// Start of the call, microseconds.
    pub started_at: i64,
    /// End of the call, microseconds.
    pub ended_at: i64,
}

/// Returns the ID of the span with the output of an action. It follows from the action, so that the span is stored once.
pub fn id_of(action: Uuid) -> Uuid {
    derived_id(action, "remediated_span")
}

/// Stores the span beside the original one. Returns its row, or `None` if the trace was deleted.
///
/// # Errors
///
/// Fails when the database fails. A repeated call stores the span once.
pub async fn store(
    app: &App,
    action: &control_action::Model,
    original: &span::Model,
    output: RemediatedOutput,
) -> Result<Option<span::Model>> {
    let (tenant, now) = (action.tenant_id, app.clock.now());
    let prices = app.access_cache.price_book(tenant).await?;
    let receipt = Receipt { tenant_id: tenant, project_id: action.project_id, now };
    let mut draft = draft(action, original, output);
    if let Some(redactor) = app.access_cache.redactor(tenant, action.project_id).await? {
        redactor.draft(&mut draft);
    }
    let mut chunks = to_chunks(vec![draft], receipt, &prices).map_err(anyhow::Error::from)?;
    let Some(row) = chunks.first_mut().and_then(|it| it.spans.first_mut()) else {
        return Err(anyhow::anyhow!("a remediated output has no span").into());
    };
    row.id = id_of(action.id);
    row.parent_id = original.parent_id;
    // The span has no ID in OpenTelemetry. Its tokens count in addition to those of the original span.
    row.otel_span_id = None;
    let row = row.clone();
    let embeds = match app.access_cache.tenant(tenant).await? {
        Some(it) => app.embedder.embeds(tenant, it.plan.parse().map_err(anyhow::Error::from)?).await?,
        None => false,
    };
    let allowance = Allowance {
        embedding: embeds.then_some(tenant).into_iter().collect::<HashSet<_>>(),
        are_action_outputs: true,
        ..Allowance::default()
    };
    let outcomes = traces::store(&app.db, &mut chunks, &allowance, &*app.rules, now).await?;
    if outcomes.first() == Some(&ChunkOutcome::Refused) {
        return Ok(None);
    }
    // There may be no subscribers.
    _ = app.changed_tenants.send(tenant);
    Ok(Some(row))
}

fn draft(action: &control_action::Model, original: &span::Model, output: RemediatedOutput) -> SpanDraft {
    let RemediatedOutput { reply, input, model, started_at, ended_at } = output;
    let remediation = json!({
        "action_id": action.id,
        "action_type": action.requested_type,
        "original_span_id": original.id,
    });
    let mut metadata = json!({"remediation": remediation});
    let responding = reply.model.or_else(|| model.clone());
    if let Some(model) = model.as_deref().filter(|it| responding.as_deref() != Some(*it)) {
        metadata["request_model"] = Value::from(model);
    }
    let mut otel_id = [0; 8];
    otel_id.copy_from_slice(&id_of(action.id).as_bytes()[..8]);
    SpanDraft {
        trace_id: *action.trace_id.as_bytes(),
        span_id: otel_id,
        parent_span_id: None,
        name: original.name.clone(),
        span_type: SpanType::Llm,
        start_us: Some(started_at),
        end_us: Some(ended_at.max(started_at)),
        input: Some(input.replace('\0', "")),
        output: Some(reply.output.replace('\0', "")),
        error: None,
        failure: None,
        model: responding.map(|it| it.replace('\0', "")),
        request_model: model,
        response_id: None,
        usage: reply.usage,
        sent_cost: reply.cost,
        hints: TraceHints::default(),
        trace_input: None,
        trace_output: None,
        metadata: metadata.to_string(),
        events: Vec::new(),
        evaluations: Vec::new(),
        record: None,
    }
}
