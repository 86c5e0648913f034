//! Records for the tests of this crate.

use api::{
    SpanType, Timestamp,
    anomaly::{Anomaly, AnomalyDirection, AnomalySeverity, AnomalyStatus},
    eval::{Evaluation, EvaluationContext, EvaluationStatus, EvaluatorType, ModelTier},
    trace::{Span, Trace},
};
use uuid::Uuid;

/// 2026-11-21T14:02:00Z.
pub const BASE_MICROS: i64 = 1_795_269_720_000_000;

/// Returns an id that ends in the number.
pub fn id(n: u128) -> Uuid {
    Uuid::from_u128((0x0198_0f6e_7000_7000_8000_u128 << 48) | n)
}

/// Returns a trace that started this many seconds after [`BASE_MICROS`].
pub fn trace(second: i64) -> Trace {
    Trace {
        id: id(second.unsigned_abs().into()),
        project_id: id(0),
        external_id: None,
        session_id: None,
        user_id: None,
        name: Some("answer_question".into()),
        input: Some("What is the weather?".into()),
        output: Some("Sunny.".into()),
        error: None,
        model: Some("gpt-4o".into()),
        started_at: Timestamp::from_micros(BASE_MICROS + second * 1_000_000),
        ended_at: None,
        latency_ms: Some(1_840),
        cost: Some(0.0312),
        total_token_count: 3_912,
        prompt_tokens_total: Some(3_000),
        completion_tokens_total: Some(912),
        usage_details: None,
        tags: vec!["env:prod".into()],
        tag_map: [("env".to_owned(), "prod".to_owned())].into(),
        metadata: None,
        span_count: 7,
        state: api::TraceState::Complete,
        ready: true,
        control_loop_depth: None,
        spans: None,
        spans_next_cursor: None,
        events: None,
    }
}

/// Returns a span of 100 ms that started `n` times 100 ms after [`BASE_MICROS`].
pub fn span(n: u128, parent: Option<u128>) -> Span {
    let start = BASE_MICROS + i64::try_from(n).unwrap_or_default() * 100_000;
    Span {
        id: id(n),
        trace_id: id(1),
        tenant_id: id(0),
        created_at: Timestamp::from_micros(start),
        name: format!("step_{n}"),
        kind: SpanType::Llm,
        parent_span_id: parent.map(id),
        input: None,
        output: None,
        model: None,
        latency_ms: Some(100),
        cost: None,
        error: None,
        failure_type: None,
        prompt_tokens: None,
        completion_tokens: None,
        usage_details: None,
        metadata: None,
        start_time: Timestamp::from_micros(start),
        end_time: Some(Timestamp::from_micros(start + 100_000)),
        otel_trace_id: None,
        otel_span_id: None,
    }
}

/// Returns an evaluation requested `n` seconds after [`BASE_MICROS`]: complete with a score, else pending.
pub fn evaluation(n: u128, metric: &str, score: Option<f64>) -> Evaluation {
    let second = i64::try_from(n).unwrap_or_default();
    let at = |second: i64| Timestamp::from_micros(BASE_MICROS + second * 1_000_000);
    let label = score.map(|score| {
        if score >= 0.7 {
            "pass"
        } else if score >= 0.5 {
            "warn"
        } else {
            "fail"
        }
    });
    Evaluation {
        id: id(n),
        trace_id: id(500 + n),
        project_id: id(0),
        span_id: None,
        metric_name: metric.into(),
        evaluator_type: EvaluatorType::Llm,
        evaluator_version: format!("{metric}@1"),
        status: if score.is_some() { EvaluationStatus::Complete } else { EvaluationStatus::Pending },
        context: EvaluationContext::Fresh,
        score,
        label: label.map(str::to_owned),
        reasoning: score.map(|_| "The answer follows from the documents.".to_owned()),
        error: None,
        rule_id: None,
        bulk_id: None,
        source_action_id: None,
        original_evaluation_id: None,
        model_tier: Some(ModelTier::Cheap),
        judge_model: score.map(|_| "gpt-4o-mini".to_owned()),
        prompt_tokens: score.map(|_| 1_204),
        completion_tokens: score.map(|_| 96),
        cost: score.map(|_| 0.0004),
        created_at: at(second),
        completed_at: score.map(|_| at(second + 3)),
    }
}

/// Returns an open anomaly that began an hour before [`BASE_MICROS`].
pub fn anomaly(n: u128, metric: &str) -> Anomaly {
    let at = |minutes: i64| Timestamp::from_micros(BASE_MICROS + minutes * 60_000_000);
    Anomaly {
        id: id(n),
        project_id: id(2),
        metric: metric.into(),
        direction: AnomalyDirection::Up,
        severity: AnomalySeverity::Medium,
        status: AnomalyStatus::Open,
        close_reason: None,
        observed: 8_200.0,
        expected: 3_100.0,
        expected_low: 2_900.0,
        expected_high: 3_300.0,
        score: 9.4,
        window_start: at(-60),
        window_end: at(-45),
        created_at: at(-44),
        updated_at: at(-30),
    }
}
