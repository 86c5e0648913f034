//! External evaluations in the attributes of a span, over protobuf.

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value::Value as Any},
    trace::v1::{ResourceSpans, ScopeSpans, Span},
};
use prost::Message;
use serde_json::{Value, json};
use tests::{app::TEST_START_MICROS, on_both_databases};

use super::{create_rule, evaluations};

/// Builds an export of a new trace with one span and these attributes.
fn export(id: u8, attributes: Vec<(&str, Any)>) -> Vec<u8> {
    let at = u64::try_from(TEST_START_MICROS).unwrap() * 1_000;
    let attribute = |(key, value): (&str, Any)| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    };
    let span = Span {
        trace_id: vec![id; 16],
        span_id: vec![id; 8],
        name: "evaluate".to_owned(),
        start_time_unix_nano: at,
        end_time_unix_nano: at + 5_000_000,
        attributes: attributes.into_iter().map(attribute).collect(),
        ..Span::default()
    };
    let scope = ScopeSpans { spans: vec![span], ..ScopeSpans::default() };
    let resource_spans = vec![ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

fn text(text: &str) -> Any {
    Any::StringValue(text.to_owned())
}

on_both_databases! {
    async fn external_evaluation_with_label_only_is_stored(app: TestApp) {
        let key = app.full_key();
        let rule = create_rule(app, json!({})).await;
        let labelled = vec![
            ("gen_ai.evaluation.name", text("Tone")),
            ("gen_ai.evaluation.score.label", text("too friendly")),
            ("gen_ai.evaluation.explanation", text("It says dear twice.")),
        ];
        let scored = vec![("gen_ai.evaluation.name", text("Length")), ("gen_ai.evaluation.score.value", Any::DoubleValue(12.5))];
        let nameless = vec![("gen_ai.evaluation.score.label", text("of nothing"))];
        for (id, attributes) in [(1, labelled), (2, scored), (3, nameless)] {
            // A repeated request is stored once.
            for _ in 0..2 {
                key.post_bytes("/v1/otlp/traces", "application/x-protobuf", export(id, attributes.clone())).await.ok();
            }
        }
        let rows = evaluations(&key, "").await;
        assert_eq!(rows.len(), 2, "{rows:?}");
        let of = |metric: &str| rows.iter().find(|it| it["metric_name"] == metric).unwrap();
        for (metric, trace, score, label, reasoning) in [
            ("Tone", "01", Value::Null, json!("too friendly"), json!("It says dear twice.")),
            ("Length", "02", json!(12.5), Value::Null, Value::Null),
        ] {
            let row = of(metric);
            assert_eq!((&row["score"], &row["label"], &row["reasoning"]), (&score, &label, &reasoning), "{row}");
            assert_eq!((&row["status"], &row["evaluator_type"], &row["evaluator_version"]), (&json!("complete"), &json!("llm"), &json!("external")), "{row}");
            assert!(row["trace_id"].as_str().unwrap().starts_with(trace) && row["span_id"].is_string(), "{row}");
            assert_eq!(&key.get(&format!("/v1/eval/{}", row["id"].as_str().unwrap())).await.ok(), row);
        }
        assert_eq!(evaluations(&key, "label=too%20friendly").await, [of("Tone").clone()]);
        assert_eq!(evaluations(&key, "min_score=0").await, [of("Length").clone()]);
        assert_eq!(key.get("/v1/me").await.ok()["usage"]["llm_evaluations"], 0);
        // A rule evaluates such a trace independently.
        app.advance(6);
        app.drain().await;
        assert_eq!(evaluations(&key, &format!("rule_id={rule}")).await.len(), 3);
    }
}
