//! Log records that belong to spans: messages, exceptions and evaluations, which may also be events of their spans.

use std::{collections::BTreeSet, time::Duration};

use api::Plan;
use axum::body::Bytes;
use entities::{
    body,
    held_input::{self, HeldKind},
    job,
};
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use prost::Message;
use reqwest::Method;
use sea_orm::EntityTrait;
use serde_json::{Value, json};
use server::{features, housekeeping};
use store::check;
use tests::{
    Caller, TestApp,
    app::TEST_START_MICROS,
    grpc::framed,
    on_both_databases,
    otlp::{Span, request},
};

use crate::{
    grpc::{GRPC_FLAGS, connect},
    protocol::{PROTOBUF_TYPE, encoded},
};

const TRACE_ID: u128 = 0xabc;
const SECOND: i64 = 1_000_000;
const LOGS_PATH: &str = "/v1/logs";
const EXPORT_LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// A GenAI event of a span: the span's ID, the name, the time in seconds after the start, and the attributes.
type Note = (u64, &'static str, i64, Vec<(&'static str, &'static str)>);

/// The events of the trace: the messages of a call, the exception of another, and an evaluation.
fn notes() -> Vec<Note> {
    vec![
        (2, "gen_ai.system.message", 1, vec![("content", "Be terse")]),
        (2, "gen_ai.user.message", 2, vec![("content", "Name the capital of France")]),
        (2, "gen_ai.assistant.message", 3, vec![("content", "A question")]),
        (2, "gen_ai.user.message", 4, vec![("content", "Answer it")]),
        (2, "gen_ai.choice", 5, vec![("message", "{\"role\":\"assistant\",\"content\":\"Paris\"}")]),
        (
            3,
            "exception",
            6,
            vec![("exception.type", "RateLimitError"), ("exception.message", "429 Too Many Requests")],
        ),
        (
            4,
            "gen_ai.client.inference.operation.details",
            7,
            vec![
                (
                    "gen_ai.input.messages",
                    "[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"Hi\"}]}]",
                ),
                (
                    "gen_ai.output.messages",
                    "[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"Hello\"}]}]",
                ),
                ("gen_ai.system_instructions", "[{\"type\":\"text\",\"content\":\"Be kind\"}]"),
                ("gen_ai.request.model", "gpt-4o"),
            ],
        ),
        (
            4,
            "gen_ai.evaluation.result",
            8,
            vec![("gen_ai.evaluation.name", "tone"), ("gen_ai.evaluation.score.label", "friendly")],
        ),
        (1, "exception", 9, vec![("exception.type", "Warning"), ("exception.message", "slow")]),
    ]
}

fn attributes(pairs: &[(&str, &str)]) -> Vec<Value> {
    pairs.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect()
}

fn nanos(seconds: i64) -> String {
    format!("{}000", TEST_START_MICROS + seconds * SECOND)
}

/// The spans of the trace. They contain no messages.
fn spans() -> Vec<Span> {
    vec![
        Span::new(TRACE_ID, 1, "answer", TEST_START_MICROS)
            .until(Some(TEST_START_MICROS + 10 * SECOND))
            .with("input.value", "Question")
            .with("output.value", "Paris"),
        Span::new(TRACE_ID, 2, "chat", TEST_START_MICROS)
            .under(1)
            .calls("gpt-4o", 10, 5)
            .with("gen_ai.response.id", "r-2"),
        Span::new(TRACE_ID, 3, "chat", TEST_START_MICROS).under(1).calls("gpt-4o", 7, 0).failed(""),
        Span::new(TRACE_ID, 4, "chat", TEST_START_MICROS).under(1).calls("gpt-4o", 8, 3),
    ]
}

/// The request with all spans; with their events, if wanted.
fn trace_request(with_events: bool) -> Value {
    let mut body = request(&spans());
    if with_events {
        for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array_mut().unwrap() {
            let id = span["spanId"].as_str().unwrap().to_owned();
            let events: Vec<Value> = notes().into_iter().filter(|it| format!("{:016x}", it.0) == id)
                .map(|(_, name, at, pairs)| json!({"name": name, "timeUnixNano": nanos(at), "attributes": attributes(&pairs)}))
                .collect();
            span["events"] = events.into();
        }
    }
    body
}

fn record((span, name, at, pairs): &Note) -> Value {
    let mut record = json!({"traceId": format!("{TRACE_ID:032x}"), "spanId": format!("{span:016x}"), "timeUnixNano": nanos(*at)});
    if name.ends_with(".message") {
        // The conventions of 2024: the name is an attribute, and the content is in the body.
        record["attributes"] = attributes(&[("event.name", name)]).into();
        record["body"] = json!({"kvlistValue": {"values": attributes(pairs)}});
    } else {
        record["eventName"] = (*name).into();
        record["attributes"] = attributes(pairs).into();
    }
    record
}

fn logs_request(records: Vec<Value>) -> Value {
    json!({"resourceLogs": [{"resource": {"attributes": attributes(&[("telemetry.sdk.language", "python")])},
        "scopeLogs": [{"scope": {"name": "test"}, "logRecords": records}]}]})
}

async fn send_spans(caller: &Caller, body: &Value) {
    assert_eq!(caller.post("/v1/otlp/traces", body).await.ok(), json!({}));
}

async fn send_logs(caller: &Caller, records: Vec<Value>) {
    assert_eq!(caller.post(LOGS_PATH, &logs_request(records)).await.ok(), json!({}));
}

/// Returns the trace with its events and evaluations, without the members that differ between tenants.
async fn read(caller: &Caller) -> Value {
    let mut detail = caller.get(&format!("/v1/traces/{TRACE_ID:032x}")).await.ok();
    let evaluations =
        caller.get(&format!("/v1/eval?limit=200&trace_id={}", detail["id"].as_str().unwrap())).await.ok();
    remove_members_of_tenants(&mut detail);
    let evaluations: Vec<Value> = evaluations["evaluations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["id"], it["metric_name"], it["label"], it["span_id"]]))
        .collect();
    json!({"trace": detail, "evaluations": evaluations})
}

/// Removes the members that differ between tenants and times of receipt.
fn remove_members_of_tenants(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(remove_members_of_tenants),
        Value::Object(members) => {
            for name in ["tenant_id", "project_id", "project_name", "created_at", "updated_at", "ready"] {
                members.remove(name);
            }
            members.values_mut().for_each(remove_members_of_tenants);
        }
        _ => {}
    }
}

/// Returns the number of rows of held input, and of rows with texts.
async fn row_counts(app: &TestApp) -> (usize, usize) {
    let held = held_input::Entity::find().all(&app.app.db.write).await.unwrap();
    let bodies = body::Entity::find().all(&app.app.db.write).await.unwrap();
    (held.len(), bodies.len())
}

/// Runs the jobs that are due, and those that wait for up to a minute.
async fn settle(app: &TestApp) {
    for _ in 0..7 {
        app.drain().await;
        app.advance(10);
    }
    app.drain().await;
}

on_both_databases! {
    async fn trace_is_the_same_with_span_events_and_log_records_in_any_order(app: TestApp) {
        let records: Vec<Value> = notes().iter().map(record).collect();
        let mut reversed = records.clone();
        reversed.reverse();
        let (_, with_events) = app.other_tenant(Plan::Enterprise).await;
        send_spans(&with_events, &trace_request(true)).await;
        settle(app).await;
        let expected = read(&with_events).await;
        let found = &expected["trace"]["spans"];
        let outputs: BTreeSet<&str> =
            found.as_array().unwrap().iter().filter_map(|it| it["output"].as_str()).collect();
        assert_eq!(outputs, BTreeSet::from(["Hello", "Paris"]), "{found}");
        assert!(found.to_string().contains("429 Too Many Requests"), "{found}");
        assert_eq!(expected["evaluations"].as_array().unwrap().len(), 1);

        // Log records first.
        let (_, before) = app.other_tenant(Plan::Enterprise).await;
        send_logs(&before, records.clone()).await;
        app.drain().await;
        send_spans(&before, &trace_request(false)).await;
        settle(app).await;
        assert_eq!(read(&before).await, expected);

        // Log records first, each alone, so that some are joined before the spans are stored, and others by the job.
        let (_, alone) = app.other_tenant(Plan::Enterprise).await;
        for record in &reversed {
            send_logs(&alone, vec![record.clone()]).await;
        }
        send_spans(&alone, &trace_request(false)).await;
        settle(app).await;
        assert_eq!(read(&alone).await, expected);

        // Spans first, and each log record alone, the last one first, all of them twice.
        let (_, after) = app.other_tenant(Plan::Enterprise).await;
        send_spans(&after, &trace_request(false)).await;
        app.drain().await;
        for record in reversed.iter().chain(&records) {
            send_logs(&after, vec![record.clone()]).await;
            app.drain().await;
        }
        settle(app).await;
        assert_eq!(read(&after).await, expected);

        // Between spans, in parts, in protobuf.
        let (_, between) = app.other_tenant(Plan::Enterprise).await;
        for (i, span) in spans().iter().enumerate() {
            send_spans(&between, &request([span])).await;
            let part: Vec<Value> = records.iter().skip(i).step_by(4).cloned().collect();
            let part: ExportLogsServiceRequest = serde_json::from_value(logs_request(part)).unwrap();
            let reply = between.post_bytes(LOGS_PATH, PROTOBUF_TYPE, part.encode_to_vec()).await;
            assert_eq!((reply.status, reply.body.len()), (200, 0));
            app.drain().await;
        }
        settle(app).await;
        assert_eq!(read(&between).await, expected);

        // On both ways.
        let (_, twice) = app.other_tenant(Plan::Enterprise).await;
        send_spans(&twice, &trace_request(true)).await;
        send_logs(&twice, records).await;
        settle(app).await;
        assert_eq!(read(&twice).await, expected);
    }

    async fn log_records_over_grpc_give_the_same_trace(app: TestApp) {
        let served = app.beside_with(&GRPC_FLAGS).await;
        let (_, over_http) = served.other_tenant(Plan::Enterprise).await;
        send_spans(&over_http, &trace_request(true)).await;
        let client = connect(&served).await;
        let authorization = format!("Bearer {}", served.key_text());
        let metadata = [("authorization", authorization.as_str())];
        let records: Vec<Value> = notes().iter().map(record).collect();
        let logs: ExportLogsServiceRequest = serde_json::from_value(logs_request(records)).unwrap();
        let reply = client.call(EXPORT_LOGS, &metadata, framed(0, &logs.encode_to_vec())).await;
        assert_eq!((reply.code, reply.body), (0, Some(Bytes::new())), "{}", reply.message);
        let reply = client.export(served.key_text(), &encoded(PROTOBUF_TYPE, &trace_request(false))).await;
        assert_eq!(reply.code, 0, "{}", reply.message);
        settle(&served).await;
        assert_eq!(read(&served.full_key()).await, read(&over_http).await);
        let other = client.call(EXPORT_LOGS, &metadata, framed(0, &[10, 0, 10, 9, 18, 7, 18, 5, 42, 3, 10, 1, b'x'])).await;
        let response = ExportLogsServiceResponse::decode(other.body.unwrap()).unwrap();
        assert_eq!(response.partial_success.unwrap().rejected_log_records, 1);
        served.stop().await;
    }

    async fn span_with_own_messages_keeps_them(app: TestApp) {
        let key = app.full_key();
        let span = Span::new(TRACE_ID, 2, "chat", TEST_START_MICROS).calls("gpt-4o", 10, 5)
            .with("gen_ai.input.messages", "[{\"role\":\"user\",\"content\":\"own\"}]")
            .with("gen_ai.output.messages", "[{\"role\":\"assistant\",\"content\":\"own answer\"}]");
        send_spans(&key, &request([&span])).await;
        send_logs(&key, notes().iter().filter(|it| it.0 == 2).map(record).collect()).await;
        send_logs(&key, vec![record(&(2, "exception", 9, vec![("exception.type", "Warning")]))]).await;
        settle(app).await;
        let trace = read(&key).await;
        let span = &trace["trace"]["spans"][0];
        assert_eq!((&span["output"], span.to_string().contains("Paris")), (&json!("own answer"), false));
        assert_eq!(trace["trace"]["events"].as_array().unwrap().len(), 1, "{trace}");
        assert_eq!(key.get("/v1/rejections").await.ok()["rejections"], json!([]));
    }

    async fn evaluation_is_found_by_the_response_id(app: TestApp) {
        let key = app.full_key();
        let mut sent = record(&(2, "gen_ai.evaluation.result", 9, vec![
            ("gen_ai.evaluation.name", "tone"), ("gen_ai.evaluation.score.label", "friendly"), ("gen_ai.response.id", "r-2")]));
        sent.as_object_mut().unwrap().remove("spanId");
        send_logs(&key, vec![sent]).await;
        app.drain().await;
        send_spans(&key, &trace_request(false)).await;
        settle(app).await;
        let trace = read(&key).await;
        let call = trace["trace"]["spans"].as_array().unwrap().iter().find(|it| it["metadata"]["response_id"] == "r-2").unwrap().clone();
        assert_eq!(trace["evaluations"][0][3], call["id"], "{trace}");
    }

    async fn other_log_records_are_counted_and_not_stored(app: TestApp) {
        let key = app.full_key();
        let mut records = vec![
            json!({"traceId": format!("{TRACE_ID:032x}"), "spanId": "0000000000000002", "body": {"stringValue": "GET /"}, "severityText": "ПАМЫЛКА"}),
            record(&(2, "gen_ai.user.message", 1, vec![("content", "Hi")])),
            json!({"eventName": "gen_ai.user.message", "body": {"stringValue": "no trace"}}),
            json!({"eventName": "gen_ai.user.message", "traceId": format!("{TRACE_ID:032x}"), "body": {"intValue": "7"}}),
            json!("no record"),
            json!({"severityNumber": "SEVERITY_NUMBER_INFO", "timeUnixNano": 1.0e18, "body": {"boolValue": true}}),
        ];
        let reply = key.post("/v1/otlp/v1/logs", &logs_request(records.clone())).await.ok();
        assert_eq!(reply["partialSuccess"]["rejectedLogRecords"], "5", "{reply}");
        let rejections = key.get("/v1/rejections").await.ok();
        let rejection = &rejections["rejections"][0];
        assert_eq!((&rejection["source"], &rejection["rejected"], &rejection["sdk"]), (&json!("otlp_logs"), &json!(5), &json!("python")));
        let messages: Vec<&str> = rejection["reasons"].as_array().unwrap().iter().map(|it| it["message"].as_str().unwrap()).collect();
        assert_eq!(rejection["reasons"].as_array().unwrap().iter().map(|it| it["index"].as_i64().unwrap()).collect::<Vec<_>>(), [0, 2, 3, 4, 5]);
        assert!(messages[0].contains("neither a GenAI event nor an exception") && messages[1].contains("trace_id") && messages[2].contains("span_id"), "{messages:?}");

        // In protobuf, the same without the record that has no protobuf form.
        records.remove(4);
        records.pop();
        let body: ExportLogsServiceRequest = serde_json::from_value(logs_request(records)).unwrap();
        let reply = key.post_bytes(LOGS_PATH, PROTOBUF_TYPE, body.encode_to_vec()).await;
        let partial = ExportLogsServiceResponse::decode(reply.body.as_slice()).unwrap().partial_success.unwrap();
        assert_eq!(partial.rejected_log_records, 3);
    }

    async fn log_records_whose_span_never_comes_are_rejected_after_an_hour(app: TestApp) {
        let key = app.full_key();
        send_logs(&key, notes().iter().map(record).collect()).await;
        send_spans(&key, &request(&spans()[..1])).await;
        for _ in 0..13 {
            app.drain().await;
            app.advance(300);
            housekeeping::run_round(&app.app, features::ALL).await.unwrap();
        }
        app.drain().await;
        let rejections = key.get("/v1/rejections").await.ok();
        assert_eq!(rejections["rejections"].as_array().unwrap().len(), 1, "{rejections}");
        let rejection = &rejections["rejections"][0];
        // The exception of the root was joined.
        assert_eq!((&rejection["source"], &rejection["rejected"], &rejection["requests"]), (&json!("otlp_logs"), &json!(8), &json!(1)), "{rejections}");
        assert!(rejection["reasons"][0]["message"].as_str().unwrap().contains("within an hour"), "{rejections}");
        assert_eq!(row_counts(app).await, (0, 1));
        assert_eq!(read(&key).await["trace"]["events"].as_array().unwrap().len(), 1);
        assert_eq!(app.drain().await, 0);
    }

    async fn missing_span_does_not_convert_the_others_again(app: TestApp) {
        let key = app.full_key();
        send_spans(&key, &request(&spans()[..2])).await;
        send_logs(&key, notes().iter().map(record).collect()).await;
        settle(app).await;
        let detail = async || key.get(&format!("/v1/traces/{TRACE_ID:032x}")).await.ok();
        let before = detail().await;
        assert!(before["spans"].to_string().contains("Paris"), "{before}");
        app.advance(300);
        settle(app).await;
        assert_eq!(detail().await, before);
        // The other spans come later.
        send_spans(&key, &request(&spans()[2..])).await;
        settle(app).await;
        let (_, at_once) = app.other_tenant(Plan::Enterprise).await;
        send_spans(&at_once, &trace_request(true)).await;
        settle(app).await;
        assert_eq!(read(&key).await, read(&at_once).await);
    }

    async fn replaced_root_leaves_no_texts_behind(app: TestApp) {
        let key = app.full_key();
        let root = Span::new(TRACE_ID, 2, "chat", TEST_START_MICROS).calls("gpt-4o", 10, 5);
        send_spans(&key, &request([&root])).await;
        for note in notes().iter().filter(|it| it.0 == 2) {
            send_logs(&key, vec![record(note)]).await;
            settle(app).await;
        }
        assert_eq!(read(&key).await["trace"]["output"], "Paris");
        assert_eq!(row_counts(app).await.1, 1);
        let findings = check::run(&app.app.db, 202_606, ["", ""]).await.unwrap();
        assert_eq!(findings.problems(), 0, "{findings:?}");
    }

    async fn span_has_earlier_log_records_when_it_is_stored(app: TestApp) {
        let key = app.full_key();
        let root = Span::new(TRACE_ID, 2, "chat", TEST_START_MICROS).calls("gpt-4o", 10, 5);
        for note in notes().iter().filter(|it| it.0 == 2) {
            send_logs(&key, vec![record(note)]).await;
        }
        send_spans(&key, &request([&root])).await;
        // No job has run.
        let stored = read(&key).await;
        assert_eq!(stored["trace"]["output"], "Paris");
        let rows = held_input::Entity::find().all(&app.app.db.write).await.unwrap();
        let is_open = |it: &&held_input::Model| it.kind == HeldKind::LogRecords.code() && !it.joined;
        assert_eq!((rows.len() > 1, rows.iter().filter(is_open).count()), (true, 0), "{rows:?}");
        settle(app).await;
        assert_eq!(read(&key).await["trace"], stored["trace"]);
        let findings = check::run(&app.app.db, 202_606, ["", ""]).await.unwrap();
        assert_eq!(findings.problems(), 0, "{findings:?}");
    }

    async fn copies_of_a_span_in_a_request_do_not_lose_its_log_records(app: TestApp) {
        let records: Vec<Value> = notes().iter().filter(|it| it.0 == 2 || it.0 == 4).map(record).collect();
        let mut body = request(&spans()[1..2]);
        let other = request([&spans()[1], &spans()[3]]);
        body["resourceSpans"].as_array_mut().unwrap().push(other["resourceSpans"][0].clone());
        for is_known in [true, false] {
            let (_, key) = app.other_tenant(Plan::Enterprise).await;
            if is_known {
                send_spans(&key, &request(&spans()[..1])).await;
            }
            send_logs(&key, records.clone()).await;
            send_spans(&key, &body).await;
            settle(app).await;
            let found = read(&key).await["trace"]["spans"].to_string();
            assert!(found.contains("capital of France") && found.contains("Hello"), "{is_known}: {found}");
        }
    }

    async fn repeated_span_of_a_request_gets_its_log_records(app: TestApp) {
        let key = app.full_key();
        send_spans(&key, &request([&spans()[1], &spans()[1]])).await;
        send_logs(&key, notes().iter().filter(|it| it.0 == 2).map(record).collect()).await;
        settle(app).await;
        assert_eq!(read(&key).await["trace"]["output"], "Paris");
    }

    async fn complete_span_is_not_replaced_by_its_copy(app: TestApp) {
        let key = app.full_key();
        let bare = Span::new(TRACE_ID, 2, "chat", TEST_START_MICROS).calls("gpt-4o", 10, 5);
        let complete = bare.clone()
            .with("gen_ai.input.messages", "[{\"role\":\"user\",\"content\":\"own\"}]")
            .with("gen_ai.output.messages", "[{\"role\":\"assistant\",\"content\":\"own answer\"}]");
        send_spans(&key, &request([&complete, &bare])).await;
        send_logs(&key, notes().iter().filter(|it| it.0 == 2).map(record).collect()).await;
        settle(app).await;
        assert_eq!(read(&key).await["trace"]["output"], "own answer");
    }

    async fn log_records_of_two_processes_are_joined_without_a_delay(app: TestApp) {
        let other = app.beside().await;
        let root = Span::new(TRACE_ID, 2, "chat", TEST_START_MICROS).calls("gpt-4o", 10, 5);
        for (i, note) in notes().iter().filter(|it| it.0 == 2).enumerate() {
            let process = if i % 2 == 0 { app } else { &other };
            send_logs(&process.full_key(), vec![record(note)]).await;
        }
        let key = app.full_key();
        // The jobs of the log records wait for the span.
        app.drain().await;
        send_spans(&key, &request([&root])).await;
        app.drain().await;
        let found = &read(&key).await["trace"];
        assert_eq!(found["output"], "Paris", "{found}");
        assert!(found["spans"].to_string().contains("capital of France"), "{found}");
        other.stop().await;
    }

    async fn log_records_of_a_stored_span_are_not_lost_when_it_is_sent_again(app: TestApp) {
        let key = app.full_key();
        let root = Span::new(TRACE_ID, 2, "chat", TEST_START_MICROS).calls("gpt-4o", 10, 5);
        let next = Span::new(TRACE_ID, 4, "chat", TEST_START_MICROS).under(2).calls("gpt-4o", 8, 3);
        send_spans(&key, &request([&root])).await;
        send_logs(&key, notes().iter().filter(|it| it.0 == 2 || it.0 == 4).map(record).collect()).await;
        send_spans(&key, &request([&root, &next])).await;
        settle(app).await;
        let trace = &read(&key).await["trace"];
        assert_eq!(trace["output"], "Paris", "{trace}");
        assert!(trace["spans"].to_string().contains("Hello"), "{trace}");
    }

    async fn stored_span_is_not_replaced_by_another_one_with_its_id(app: TestApp) {
        let key = app.full_key();
        let complete = Span::new(TRACE_ID, 2, "chat", TEST_START_MICROS).calls("gpt-4o", 10, 5)
            .with("gen_ai.input.messages", "[{\"role\":\"user\",\"content\":\"own\"}]")
            .with("gen_ai.output.messages", "[{\"role\":\"assistant\",\"content\":\"own answer\"}]");
        send_spans(&key, &request([&complete])).await;
        let copy = Span::new(TRACE_ID, 2, "copy", TEST_START_MICROS).calls("gpt-4o", 1, 1);
        let other = Span::new(TRACE_ID, 4, "chat", TEST_START_MICROS).under(2).calls("gpt-4o", 8, 3);
        send_spans(&key, &request([&copy, &other])).await;
        send_logs(&key, notes().iter().filter(|it| it.0 == 2 || it.0 == 4).map(record).collect()).await;
        settle(app).await;
        let trace = &read(&key).await["trace"];
        assert_eq!((&trace["name"], &trace["output"], &trace["total_token_count"]), (&json!("chat"), &json!("own answer"), &json!(11)), "{trace}");
        assert!(trace["spans"].to_string().contains("Hello"), "{trace}");
    }

    async fn body_with_many_members_takes_linear_time(app: TestApp) {
        let key = app.full_key();
        let members: Vec<Value> = (0..60_000).map(|i| json!({"key": format!("k{i}"), "value": {"intValue": "1"}})).collect();
        let mut sent = record(&(2, "gen_ai.user.message", 1, Vec::new()));
        sent["body"] = json!({"kvlistValue": {"values": members}});
        let body: ExportLogsServiceRequest = serde_json::from_value(logs_request(vec![sent])).unwrap();
        let reply = tokio::time::timeout(Duration::from_secs(60), key.post_bytes(LOGS_PATH, PROTOBUF_TYPE, body.encode_to_vec()));
        assert_eq!(reply.await.unwrap().status, 200);
        send_spans(&key, &trace_request(false)).await;
        settle(app).await;
        assert!(read(&key).await["trace"]["spans"].to_string().len() < 20_000);
    }

    async fn waiting_log_record_has_one_job(app: TestApp) {
        let key = app.full_key();
        send_logs(&key, notes().iter().filter(|it| it.0 == 2).map(record).collect()).await;
        for span in 10..14 {
            let child = Span::new(TRACE_ID, span, "chat", TEST_START_MICROS).under(2).calls("gpt-4o", 8, 3);
            send_spans(&key, &request([&child])).await;
            app.drain().await;
        }
        let jobs = job::Entity::find().all(&app.app.db.write).await.unwrap();
        assert_eq!(jobs.iter().filter(|it| it.kind == "join_logs").count(), 1, "{jobs:?}");
        send_spans(&key, &request(&spans()[1..2])).await;
        app.drain().await;
        assert!(read(&key).await["trace"]["spans"].to_string().contains("Paris"));
    }

    async fn removed_trace_takes_its_held_input_along(app: TestApp) {
        let key = app.full_key();
        send_spans(&key, &trace_request(false)).await;
        send_logs(&key, notes().iter().filter(|it| it.0 == 4).map(record).collect()).await;
        app.drain().await;
        assert!(row_counts(app).await.0 > 0);
        assert_eq!(key.delete(&format!("/v1/traces/{TRACE_ID:032x}")).await.status, 204);
        app.drain().await;
        assert_eq!(row_counts(app).await, (0, 0));
        send_spans(&key, &trace_request(false)).await;
        settle(app).await;
        assert!(!read(&key).await.to_string().contains("Hello"));
    }

    async fn joined_trace_has_no_unused_rows(app: TestApp) {
        let key = app.full_key();
        // Traces of one request share a text page.
        let mut body = trace_request(false);
        let other = request([&Span::new(0xdef, 1, "other", TEST_START_MICROS).with("input.value", "kept")]);
        body["resourceSpans"].as_array_mut().unwrap().push(other["resourceSpans"][0].clone());
        send_spans(&key, &body).await;
        send_logs(&key, notes().iter().map(record).collect()).await;
        settle(app).await;
        let findings = check::run(&app.app.db, 202_606, ["", ""]).await.unwrap();
        assert_eq!(findings.problems(), 0, "{findings:?}");
        assert_eq!(key.get(&format!("/v1/traces/{:032x}", 0xdef)).await.ok()["spans"][0]["input"], "kept");
    }

    async fn log_export_of_another_form_is_refused(app: TestApp) {
        let key = app.full_key();
        for body in ["[]", "{\"resourceLogs\":7}", "{", "7"] {
            key.post_bytes(LOGS_PATH, "application/json", body.as_bytes().to_vec()).await.is(400, "invalid_body");
        }
        let damaged = key.post_bytes(LOGS_PATH, PROTOBUF_TYPE, vec![1, 2, 3]).await;
        assert_eq!((damaged.status, damaged.headers["x-error-code"].as_bytes()), (400, b"invalid_body".as_slice()));
        key.post_bytes(LOGS_PATH, "text/plain", Vec::new()).await.is(415, "unsupported_media_type");
        let empty = key.send(key.request(Method::POST, LOGS_PATH).header("content-type", PROTOBUF_TYPE)).await;
        assert_eq!(empty.status, 200);
    }
}
