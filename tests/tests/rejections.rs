//! Rejections: spans and traces that ingest rejected within accepted requests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use api::{Plan, Role};
use futures::future::join_all;
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    trace::v1::Span as OtlpSpan,
};
use prost::Message;
use reqwest::{Method, header::USER_AGENT};
use serde_json::{Value, json};
use server::{features, housekeeping};
use store::Connection;
use tests::{
    Caller,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request, request_of},
};

const REJECTIONS_PATH: &str = "/v1/rejections";
const OTLP_PATH: &str = "/v1/otlp/traces";
const BATCH_PATH: &str = "/v1/ingest/batch";
const PROTOBUF_TYPE: &str = "application/x-protobuf";
/// Number of rows that a process inserts for a tenant in an hour.
const MAX_ROWS_PER_HOUR: usize = 100;
/// Traces per month of the plan Starter.
const TRACES_PER_MONTH: i64 = 50_000;
const HOUR_SECONDS: i64 = 3_600;
const DAY_SECONDS: i64 = 24 * HOUR_SECONDS;

/// The resource of an SDK for Python.
const PYTHON_RESOURCE: [(&str, &str); 3] = [
    ("telemetry.sdk.name", "opentelemetry"),
    ("telemetry.sdk.language", "python"),
    ("telemetry.sdk.version", "1.27.0"),
];

/// Returns all rejections, page by page.
async fn all_rejections(caller: &Caller, query: &str) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = caller.get(&format!("{REJECTIONS_PATH}?limit=60{query}{cursor}")).await.ok();
        rows.extend(page["rejections"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => {
                assert_eq!(page["has_more"], false);
                return rows;
            }
        }
    }
}

/// Sends a batch with a valid item and an invalid one.
async fn send_bad_batch(key: &Caller) -> Value {
    key.post(BATCH_PATH, &json!({"traces": [{"name": "good"}, {"latency_ms": "x"}]})).await.ok()
}

/// The position of a span, and what makes it invalid.
type Fault = (usize, fn(&mut OtlpSpan));

/// Builds the request of 512 spans of one trace in two resources. 5 of them are invalid, each in another way.
fn export_of_512_spans() -> ExportTraceServiceRequest {
    let spans: Vec<Span> =
        (1..=512).map(|id| Span::new(7, id, "step", TEST_START_MICROS + id as i64)).collect();
    let mut first = request_of(&PYTHON_RESOURCE, &spans[..256]);
    let second = request_of(&[("telemetry.sdk.language", "go")], &spans[256..]);
    first["resourceSpans"].as_array_mut().unwrap().push(second["resourceSpans"][0].clone());
    let mut export: ExportTraceServiceRequest = serde_json::from_value(first).unwrap();
    let faults: [Fault; 5] = [
        (3, |it| it.trace_id.clear()),
        (100, |it| it.trace_id.fill(0)),
        (255, |it| it.span_id.truncate(7)),
        (256, |it| it.span_id.fill(0)),
        (511, |it| it.parent_span_id = vec![1; 3]),
    ];
    for (index, spoil) in faults {
        spoil(&mut export.resource_spans[index / 256].scope_spans[0].spans[index % 256]);
    }
    export
}

on_both_databases! {
    async fn batch_of_512_spans_with_5_invalid_ones_leaves_507_spans_and_5_reasons(app: TestApp) {
        let key = app.full_key();
        let sent = key.request(Method::POST, OTLP_PATH).header("content-type", PROTOBUF_TYPE)
            .header("x-request-id", "export-1").header(USER_AGENT, "exporter/9");
        let reply = key.send(sent.body(export_of_512_spans().encode_to_vec())).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let partial = ExportTraceServiceResponse::decode(reply.body.as_slice()).unwrap().partial_success.unwrap();
        assert_eq!((partial.rejected_spans, partial.error_message.as_str()),
            (5, "trace_id must be 16 bytes that are not all zero"));
        assert_eq!(key.get(&format!("/v1/traces/{:032x}", 7)).await.ok()["span_count"], 507);

        let rows = all_rejections(&key, "").await;
        let reason = |index: usize, message: &str| json!({"index": index, "code": "validation_failed", "message": message});
        let (trace_id, span_id) = ("trace_id must be 16 bytes that are not all zero", "span_id must be 8 bytes that are not all zero");
        assert_eq!(rows, [json!({
            "id": rows[0]["id"], "project_id": app.project, "source": "otlp", "sdk": "opentelemetry/python", "sdk_version": "1.27.0",
            "rejected": 5, "requests": 1,
            "reasons": [reason(3, trace_id), reason(100, trace_id), reason(255, span_id), reason(256, span_id),
                reason(511, "parent_span_id must be 8 bytes")],
            "request_id": rows[0]["request_id"], "received_at": "2026-06-15T12:00:00.000000Z", "last_at": "2026-06-15T12:00:00.000000Z",
        })]);
        assert_eq!(rows[0]["request_id"].as_str(), reply.headers["x-request-id"].to_str().ok());
    }

    async fn more_than_5_rejected_spans_are_counted_and_the_first_5_described(app: TestApp) {
        let key = app.full_key();
        let mut body = request([&Span::new(1, 1, "good", TEST_START_MICROS)]);
        let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array_mut().unwrap();
        let hostile = "a\u{0}\u{1b}[31mä".repeat(400);
        spans.extend((0..7).map(|_| json!({"traceId": "00", "spanId": "00", "startTimeUnixNano": hostile})));
        let reply = key.send(key.request(Method::POST, OTLP_PATH).header(USER_AGENT, "collector/0.9 (linux)").json(&body)).await.ok();
        assert_eq!(reply["partialSuccess"]["rejectedSpans"], "7");
        let row = all_rejections(&key, "").await.remove(0);
        assert_eq!((&row["rejected"], &row["sdk"], &row["sdk_version"]), (&json!(7), &json!("collector"), &json!("0.9")));
        let reasons = row["reasons"].as_array().unwrap();
        assert_eq!(reasons.iter().map(|it| it["index"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        for reason in reasons {
            let message = reason["message"].as_str().unwrap();
            assert!(message.starts_with("unreadable span") && !message.contains('\0'), "{message:?}");
            assert!(message.chars().count() <= 300, "{}", message.len());
        }
    }

    async fn rejected_items_of_json_batch_are_recorded_with_their_codes(app: TestApp) {
        let key = app.full_key();
        let items = json!({"traces": [{"name": "good"}, {"latency_ms": "x"}, {"id": "a"}, {"spans": 7}]});
        let reply = key.send(key.request(Method::POST, BATCH_PATH).header(USER_AGENT, "curl/8.5.0").json(&items)).await.ok();
        assert_eq!((&reply["accepted"], &reply["rejected"]), (&json!(2), &json!(2)));
        let row = all_rejections(&key, "").await.remove(0);
        assert_eq!((&row["source"], &row["rejected"], &row["sdk"], &row["sdk_version"]),
            (&json!("json"), &json!(2), &json!("curl"), &json!("8.5.0")));
        for (reason, index) in row["reasons"].as_array().unwrap().iter().zip([1, 3]) {
            let result = &reply["results"][index];
            assert_eq!((&reason["index"], &reason["code"], &reason["message"]), (&json!(index), &result["code"], &result["error"]));
        }
    }

    async fn request_without_rejected_items_and_refused_request_are_not_recorded(app: TestApp) {
        let key = app.full_key();
        key.post(OTLP_PATH, &request([&Span::new(1, 1, "good", TEST_START_MICROS)])).await.ok();
        let batch = json!({"traces": [{"id": "a"}, {"id": "a"}]});
        key.post(BATCH_PATH, &batch).await.ok();
        key.post(BATCH_PATH, &json!({"traces": 7})).await.is(400, "invalid_body");
        key.post("/v1/ingest", &json!({"latency_ms": "x"})).await.is(400, "invalid_body");
        key.post("/v1/otlp/v1/logs", &json!({})).await.ok();
        assert_eq!(all_rejections(&key, "").await, Vec::<Value>::new());
    }

    async fn traces_beyond_the_quota_are_recorded_if_others_are_stored(app: TestApp) {
        app.set_plan(Plan::Starter).await;
        app.use_traces(TRACES_PER_MONTH - 2).await;
        let key = app.full_key();
        let spans = [1, 2].map(|trace| Span::new(trace, 1, "s", TEST_START_MICROS));
        key.post(OTLP_PATH, &request(&spans[..1])).await.ok();
        key.post(BATCH_PATH, &json!({"traces": [{"id": "a"}, {"id": "b"}, {"latency_ms": "x"}]})).await.ok();
        app.advance(1);
        let reply = key.post(OTLP_PATH, &request([&spans[0], &spans[1], &Span::new(0, 1, "bad", TEST_START_MICROS)])).await.ok();
        assert_eq!(reply["partialSuccess"]["rejectedSpans"], "2");
        assert!(reply["partialSuccess"]["errorMessage"].as_str().unwrap().starts_with("ingest_quota_exceeded"));
        let rows = all_rejections(&key, "").await;
        let reasons = |row: &Value| -> Vec<(Value, Value)> {
            row["reasons"].as_array().unwrap().iter().map(|it| (it["index"].clone(), it["code"].clone())).collect()
        };
        assert_eq!(rows.len(), 2);
        assert_eq!((&rows[0]["rejected"], &rows[1]["rejected"]), (&json!(2), &json!(2)));
        assert_eq!(reasons(&rows[0]), [(Value::Null, json!("ingest_quota_exceeded")), (json!(2), json!("validation_failed"))]);
        assert_eq!(reasons(&rows[1]), [(json!(1), json!("ingest_quota_exceeded")), (json!(2), json!("invalid_body"))]);
        // A request is refused as a whole if nothing of it is stored.
        key.post(BATCH_PATH, &json!({"traces": [{"id": "c"}, {"latency_ms": "x"}]})).await.is(402, "ingest_quota_exceeded");
        assert_eq!(all_rejections(&key, "").await, rows);
    }

    async fn rejections_are_listed_by_tenant_project_and_page(app: TestApp) {
        let key = app.full_key();
        send_bad_batch(&key).await;
        app.advance(1);
        let named = key.request(Method::POST, BATCH_PATH).header("x-project-name", "shop");
        key.send(named.json(&json!({"traces": [{"latency_ms": "x"}]}))).await.ok();
        let (_, stranger) = app.other_tenant(Plan::Enterprise).await;
        assert_eq!(all_rejections(&stranger, "").await, Vec::<Value>::new());
        send_bad_batch(&stranger).await;
        assert_eq!(all_rejections(&stranger, "").await.len(), 1);

        let rows = all_rejections(&key, "").await;
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1]["project_id"], json!(app.project));
        assert_ne!(rows[0]["project_id"], rows[1]["project_id"]);
        for row in &rows {
            let query = format!("&project_id={}", row["project_id"].as_str().unwrap());
            assert_eq!(all_rejections(&key, &query).await, std::slice::from_ref(row));
            assert_eq!(all_rejections(&stranger, &query).await, Vec::<Value>::new());
        }
        let first = key.get(&format!("{REJECTIONS_PATH}?limit=1")).await.ok();
        assert_eq!((&first["rejections"], &first["has_more"]), (&json!([rows[0]]), &json!(true)));
        let cursor = first["next_cursor"].as_str().unwrap();
        let second = key.get(&format!("{REJECTIONS_PATH}?limit=1&cursor={cursor}")).await.ok();
        assert_eq!((&second["rejections"], &second["has_more"]), (&json!([rows[1]]), &json!(false)));
        stranger.get(&format!("{REJECTIONS_PATH}?cursor={cursor}")).await.is(400, "invalid_cursor");
        for reader in [app.session(Role::Viewer), app.new_key(Role::Member, &["query"]).await] {
            assert_eq!(all_rejections(&reader, "").await, rows);
        }
    }

    async fn client_in_a_loop_adds_100_rows_an_hour_and_all_items_are_counted(app: TestApp) {
        let key = app.full_key();
        for _ in 0..MAX_ROWS_PER_HOUR {
            send_bad_batch(&key).await;
        }
        app.advance(10);
        // Concurrent requests share statements, and none is lost.
        join_all((0..20).map(|_| send_bad_batch(&key))).await;
        app.advance(10);
        key.post(BATCH_PATH, &json!({"traces": [{"latency_ms": "x"}, {"latency_ms": "y"}]})).await.ok();
        let rows = all_rejections(&key, "").await;
        let ids: BTreeSet<&str> = rows.iter().map(|it| it["id"].as_str().unwrap()).collect();
        assert_eq!((rows.len(), ids.len()), (MAX_ROWS_PER_HOUR, MAX_ROWS_PER_HOUR));
        let counted = rows.iter().find(|it| it["requests"] != 1).unwrap();
        assert_eq!((&counted["requests"], &counted["rejected"]), (&json!(22), &json!(23)));
        assert_eq!((&counted["received_at"], &counted["last_at"]),
            (&json!("2026-06-15T12:00:00.000000Z"), &json!("2026-06-15T12:00:20.000000Z")));
        assert_eq!(counted["reasons"].as_array().unwrap().len(), 1);
        // Other tenants are not affected, and in the next hour there are new rows.
        let (_, other) = app.other_tenant(Plan::Enterprise).await;
        send_bad_batch(&other).await;
        assert_eq!(all_rejections(&other, "").await.len(), 1);
        app.advance(HOUR_SECONDS);
        send_bad_batch(&key).await;
        let later = all_rejections(&key, "").await;
        assert_eq!((later.len(), &later[0]["requests"]), (MAX_ROWS_PER_HOUR + 1, &json!(1)));
    }

    async fn rejections_are_purged_after_a_week(app: TestApp) {
        let key = app.full_key();
        send_bad_batch(&key).await;
        app.advance(DAY_SECONDS);
        send_bad_batch(&key).await;
        for (seconds, left) in [(6 * DAY_SECONDS - 1, 2), (2, 1), (DAY_SECONDS, 0)] {
            app.advance(seconds);
            housekeeping::run_round(&app.app, features::ALL).await.unwrap();
            assert_eq!(all_rejections(&key, "").await.len(), left, "after {seconds} seconds");
        }
    }

    async fn request_succeeds_when_its_rejections_cannot_be_recorded(app: TestApp) {
        let key = app.full_key();
        app.app.db.write.execute_unprepared("DROP TABLE rejected_input").await.unwrap();
        let reply = send_bad_batch(&key).await;
        assert_eq!((&reply["accepted"], &reply["rejected"]), (&json!(1), &json!(1)));
        let reply = key.post(OTLP_PATH, &request([&Span::new(0, 1, "bad", TEST_START_MICROS)])).await.ok();
        assert_eq!(reply["partialSuccess"]["rejectedSpans"], "1");
    }
}
