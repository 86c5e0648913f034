//! Determines why an eval rule fired on a trace, or its skip reason: stored or recomputed.

use std::collections::HashMap;

use api::{
    Timestamp,
    eval::EvaluationStatus,
    eval_rule::{Decision, RuleDecision},
};
use entities::{evaluation, rule_decision, trace};
use store::{eval_rules, evaluations, traces};
use uuid::Uuid;

use super::{matching::is_sampled, rules::RulePause};
use crate::{app::App, error::Result, rule_filter::mismatch_reason, rule_set::ParsedRule};

/// Appended to the decision for a failed evaluation.
const RETRY_NOTE: &str =
    "; a backfill evaluates the trace again, and so does the rule if the trace becomes ready again";

/// Returns the decisions of a rule for these traces, in their order.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn of_traces(
    app: &App,
    tenant: Uuid,
    rule: &ParsedRule,
    rows: &[trace::Model],
) -> Result<Vec<RuleDecision>> {
    let db = app.db.current();
    let ids: Vec<Uuid> = rows.iter().map(|it| it.id).collect();
    let evaluation = evaluations::of_rule(db, tenant, rule.row.id, &ids).await?;
    let stored: HashMap<Uuid, rule_decision::Model> =
        eval_rules::stored_decisions(db, tenant, rule.row.id, &ids)
            .await?
            .into_iter()
            .map(|it| (it.trace_id, it))
            .collect();
    let ids_for_kinds = if rule.filter.span_type.is_some() { ids.as_slice() } else { &[] };
    let kinds = traces::span_kinds(&app.db, tenant, ids_for_kinds).await?;
    rows.iter()
        .map(|trace| {
            let has_span_type = |kind: &str| kinds.get(&trace.id).is_some_and(|it| it.contains(kind));
            decision(rule, trace, evaluation.get(&trace.id), stored.get(&trace.id), has_span_type)
        })
        .collect()
}

fn decision(
    rule: &ParsedRule,
    trace: &trace::Model,
    evaluation: Option<&evaluation::Model>,
    stored: Option<&rule_decision::Model>,
    has_span: impl FnOnce(&str) -> bool,
) -> Result<RuleDecision> {
    let row = &rule.row;
    let decision_of = |decision, detail: String| RuleDecision {
        rule_id: row.id,
        trace_id: trace.id,
        decision,
        detail,
        evaluation_id: None,
        decided_at: None,
    };
    if let Some(it) = evaluation {
        let failed = it.status == EvaluationStatus::Failed.as_str();
        let (decision, detail) = if !failed && trace.ready && trace.ready_at > it.created_at {
            let detail = "the trace changed after its evaluation and became ready again; a rule evaluates a trace once";
            (Decision::Duplicate, detail.to_owned())
        } else {
            let again = if failed { RETRY_NOTE } else { "" };
            (Decision::Queued, format!("the evaluation was created and is {}{again}", it.status))
        };
        let decided_at = Some(Timestamp::from_micros(it.created_at));
        return Ok(RuleDecision { evaluation_id: Some(it.id), decided_at, ..decision_of(decision, detail) });
    }
    if trace.project_id != row.project_id {
        return Ok(decision_of(
            Decision::Filtered,
            "the trace belongs to another project than the rule".to_owned(),
        ));
    }
    if !trace.ready {
        let detail = if trace.ready_at <= trace.updated_at {
            "the trace is ready, and rules will run in a moment".to_owned()
        } else {
            format!(
                "the trace is not ready; it becomes ready at {}, if no further span arrives",
                Timestamp::from_micros(trace.ready_at)
            )
        };
        return Ok(decision_of(Decision::NotReady, detail));
    }
    if let Some(it) = stored {
        let decision = it.decision.parse().map_err(anyhow::Error::from)?;
        let decided_at = Some(Timestamp::from_micros(it.decided_at));
        return Ok(RuleDecision { decided_at, ..decision_of(decision, it.detail.clone()) });
    }
    if let Some(why) = mismatch_reason(&rule.filter, trace, has_span) {
        return Ok(decision_of(Decision::Filtered, why));
    }
    if !is_sampled(trace.id, row.sample_rate) {
        let detail = format!("the trace is not in the sample of {}", row.sample_rate);
        return Ok(decision_of(Decision::SampledOut, detail));
    }
    let detail = if row.enabled && trace.ready_at > row.updated_at {
        "the trace became ready before its process knew the rule; a backfill evaluates it".to_owned()
    } else if row.enabled {
        format!(
            "the rule was created, enabled or changed at {}, after the trace became ready; a backfill evaluates it",
            Timestamp::from_micros(row.updated_at)
        )
    } else {
        "the rule is disabled".to_owned()
    };
    Ok(decision_of(Decision::Disabled, detail))
}

/// Returns what a rule would decide for a trace if it were ingested now.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn predict(
    app: &App,
    tenant: Uuid,
    rule: &ParsedRule,
    trace: &trace::Model,
    paused: Option<RulePause>,
) -> Result<(Decision, String)> {
    let ids_for_kinds = if rule.filter.span_type.is_some() { vec![trace.id] } else { Vec::new() };
    let kinds = traces::span_kinds(&app.db, tenant, &ids_for_kinds).await?;
    let has_span_type = |kind: &str| kinds.get(&trace.id).is_some_and(|it| it.contains(kind));
    if trace.project_id != rule.row.project_id {
        return Ok((Decision::Filtered, "the trace belongs to another project than the rule".to_owned()));
    }
    if let Some(why) = mismatch_reason(&rule.filter, trace, has_span_type) {
        return Ok((Decision::Filtered, why));
    }
    if !is_sampled(trace.id, rule.row.sample_rate) {
        let detail = format!("the trace is not in the sample of {}", rule.row.sample_rate);
        return Ok((Decision::SampledOut, detail));
    }
    if !rule.row.enabled {
        return Ok((Decision::Disabled, "the rule is disabled".to_owned()));
    }
    if let Some(why) = paused {
        return Ok((Decision::Paused, why.detail));
    }
    let evaluation = evaluations::of_rule(app.db.current(), tenant, rule.row.id, &[trace.id]).await?;
    if let Some(it) = evaluation.get(&trace.id).filter(|it| it.status != EvaluationStatus::Failed.as_str()) {
        return Ok((
            Decision::Duplicate,
            format!("the rule has already evaluated the trace: evaluation {}", it.id),
        ));
    }
    Ok((Decision::Queued, "the rule would fire on the trace".to_owned()))
}
