//! Redaction before storage: values of 40 kinds, sent in every text of every door, are stored nowhere, and their counts are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use api::Role;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use reqwest::Method;
use sea_orm::{ConnectionTrait, EntityTrait, Statement};
use serde_json::{Map, Value, json};
use server::access::api_key::ApiKey;
use tests::{
    Caller, On, TestApp,
    app::TEST_START_MICROS,
    canaries::{Canary, assert_no_canary, canaries, redact_everything, redaction_settings},
    grpc::GrpcClient,
    on_both_databases,
    postgres::Database,
    process::Setup,
};

const OTLP_PATH: &str = "/v1/otlp/traces";
const GRPC_FLAGS: [&str; 2] = ["--otlp-grpc-listen", "127.0.0.1:0"];

/// Returns an item with the value in every text.
fn item(id: &str, canary: Canary) -> Value {
    let text = canary.text;
    let arguments = json!({"to": text, "list": [text]}).to_string();
    json!({
        "id": format!("{id} {text}"), "session_id": format!("s {text}"), "user_id": text, "name": format!("n {text}"),
        "input": format!("Hello,\nI am \"{text}\"."), "output": json!([{"role": "assistant", "content": text}]).to_string(),
        "error": format!("failed for {text}"), "model": format!("m {text}"),
        "tags": {"note": text, (text): "value"}, "metadata": {"note": text, (text): {"deep": [text]}, "arguments": arguments},
        "spans": [{
            "name": format!("span {text}"), "type": "tool", "id": format!("span {text}"), "input": arguments, "output": text,
            "error": text, "metadata": {"note": text, (text): 1}, "model": text,
        }, {"name": "step", "type": format!("custom {text}"), "parent_span_id": format!("span {text}")}],
        "events": [{"message": format!("event {text}"), "level": "warn", "metadata": {"note": text}, "span_id": format!("span {text}")}],
    })
}

fn attribute(key: &str, text: impl Into<Value>) -> Value {
    json!({"key": key, "value": {"stringValue": text.into()}})
}

/// Returns an OTLP request with a trace for each value. `first` is the number of the first trace.
fn export(first: u128) -> Value {
    let span = |(i, canary): (usize, Canary)| {
        let text = canary.text;
        let arguments = json!({"to": text, "nested": json!({"again": text}).to_string()}).to_string();
        let start = (TEST_START_MICROS * 1_000).to_string();
        json!({
            "traceId": format!("{:032x}", first + i as u128), "spanId": format!("{:016x}", i + 1), "name": format!("span {text}"),
            "traceState": format!("k={text}"), "startTimeUnixNano": start, "endTimeUnixNano": start,
            "status": {"code": 2, "message": format!("failed for {text}")},
            "attributes": [
                attribute("gen_ai.operation.name", "execute_tool"), attribute("gen_ai.tool.call.arguments", arguments),
                attribute("gen_ai.tool.call.result", text), attribute("session.id", format!("s {text}")), attribute("user.id", text),
                attribute("langfuse.trace.name", format!("trace {text}")), attribute(text, "a key"), attribute("note", text),
                json!({"key": "list", "value": {"arrayValue": {"values": [{"stringValue": text}]}}}),
                json!({"key": "map", "value": {"kvlistValue": {"values": [attribute(text, text)]}}}),
                json!({"key": "tag.tags", "value": {"arrayValue": {"values": [{"stringValue": format!("note:{text}")}]}}}),
            ],
            "events": [
                {"name": format!("event {text}"), "timeUnixNano": start, "attributes": [attribute("note", text), attribute(text, "key")]},
                {"name": "exception", "timeUnixNano": start, "attributes": [
                    attribute("exception.type", "Error"), attribute("exception.message", text), attribute("exception.stacktrace", text)]},
                {"name": "gen_ai.evaluation.result", "timeUnixNano": start, "attributes": [
                    attribute("gen_ai.evaluation.name", "judged"), attribute("gen_ai.evaluation.score.label", text),
                    attribute("gen_ai.evaluation.explanation", format!("because {text}"))]},
            ],
            "links": [{"traceId": format!("{:032x}", 9), "spanId": format!("{:016x}", 9), "attributes": [attribute("note", text)]}],
        })
    };
    let spans: Vec<Value> = canaries().into_iter().enumerate().map(span).collect();
    let texts: Vec<Value> = canaries().iter().map(|it| attribute("owner", it.text)).collect();
    let scope = json!({"name": format!("scope {}", canaries()[0].text), "attributes": [attribute("note", canaries()[1].text)]});
    json!({"resourceSpans": [{"resource": {"attributes": texts}, "scopeSpans": [{"scope": scope, "spans": spans}]}]})
}

/// Returns model calls without messages, one for each value, and their log records, which have the value in every text.
fn calls_and_log_records(first: u128) -> (Value, Value) {
    let start = (TEST_START_MICROS * 1_000).to_string();
    let ids = |i: usize| json!({"traceId": format!("{:032x}", first + i as u128), "spanId": format!("{:016x}", i + 1)});
    let with = |mut ids: Value, members: Value| {
        ids.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        ids
    };
    let call = |i: usize| {
        let attributes =
            [attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.response.model", "gpt-4o")];
        let times = json!({"startTimeUnixNano": start, "endTimeUnixNano": start});
        with(with(ids(i), times), json!({"name": "chat", "attributes": attributes, "status": {"code": 2}}))
    };
    let records = |(i, canary): (usize, Canary)| {
        let text = canary.text;
        let record = |name: &str, attributes: Vec<Value>, body: Value| {
            with(
                ids(i),
                json!({"eventName": name, "timeUnixNano": start, "attributes": attributes, "body": body, "severityText": text}),
            )
        };
        let content = json!({"kvlistValue": {"values": [attribute("content", format!("I am {text}")), attribute(text, text)]}});
        let exception = vec![
            attribute("exception.type", "Error"),
            attribute("exception.message", format!("for {text}")),
            attribute(text, text),
        ];
        let evaluation = vec![
            attribute("gen_ai.evaluation.name", "judged"),
            attribute("gen_ai.evaluation.explanation", text),
        ];
        [
            record("gen_ai.user.message", Vec::new(), content),
            record(
                "gen_ai.choice",
                vec![attribute("message", json!({"content": text}).to_string())],
                Value::Null,
            ),
            record("exception", exception, json!({"stringValue": format!("failed for {text}")})),
            record("gen_ai.evaluation.result", evaluation, Value::Null),
            json!({"timeUnixNano": text, "body": {"stringValue": text}}),
            json!({"body": {"stringValue": text}}),
        ]
    };
    let calls: Vec<Value> = (0..canaries().len()).map(call).collect();
    let records: Vec<Value> = canaries().into_iter().enumerate().flat_map(records).collect();
    let scope = json!({"name": "calls"});
    (
        json!({"resourceSpans": [{"scopeSpans": [{"scope": scope, "spans": calls}]}]}),
        json!({"resourceLogs": [{"scopeLogs": [{"scope": scope, "logRecords": records}]}]}),
    )
}

/// Asserts that the held input, which is compressed, has no value.
async fn assert_nothing_is_held(app: &TestApp) {
    let rows = entities::held_input::Entity::find().all(&app.app.db.write).await.unwrap();
    assert!(rows.len() >= 80, "{}", rows.len());
    for row in rows {
        let data = store::held_input::data(&row).unwrap();
        assert_no_canary("held input", &String::from_utf8_lossy(&data));
    }
}

/// Sends the values through JSON and OTLP over HTTP.
async fn send_everything(key: &Caller) {
    let items: Vec<Value> =
        canaries().into_iter().enumerate().map(|(i, it)| item(&format!("one {i}"), it)).collect();
    for (i, item) in items.iter().enumerate() {
        let request = key.request(Method::POST, "/v1/ingest").header("idempotency-key", format!("key-{i}"));
        key.send(request.json(item)).await.ok();
    }
    let mut batch: Vec<Value> =
        canaries().into_iter().enumerate().map(|(i, it)| item(&format!("batch {i}"), it)).collect();
    // Rejected items: their messages quote the sent values.
    batch.extend(canaries().iter().map(|it| json!({"latency_ms": it.text})));
    batch.extend(canaries().iter().map(|it| json!({"tags": {(it.text): [1]}})));
    let request = key.request(Method::POST, "/v1/ingest/batch").header("idempotency-key", "batch");
    let result = key.send(request.json(&json!({"traces": batch}))).await.ok();
    assert_eq!((&result["accepted"], &result["rejected"]), (&json!(40), &json!(80)), "{result}");
    assert_no_canary("result of the batch", &result.to_string());

    key.post(OTLP_PATH, &export(1_000)).await.ok();
    let protobuf: ExportTraceServiceRequest = serde_json::from_value(export(2_000)).unwrap();
    assert_eq!(
        key.post_bytes(OTLP_PATH, "application/x-protobuf", protobuf.encode_to_vec()).await.status,
        200
    );
    let mut unreadable = export(3_000);
    for (span, canary) in unreadable["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .zip(canaries())
    {
        span["startTimeUnixNano"] = json!(format!("at {}", canary.text));
    }
    let partial = key.post(OTLP_PATH, &unreadable).await.ok();
    assert_eq!(partial["partialSuccess"]["rejectedSpans"], "40", "{partial}");

    for (i, canary) in canaries().into_iter().enumerate() {
        let text = canary.text;
        let feedback = json!({
            "otel_trace_id": format!("{:032x}", 1_000 + i), "label": "bad", "comment": format!("ask {text}"), "user_id": text,
            "source": format!("app {text}"), "metadata": {"note": text, (text): 1},
        });
        let stored = key.post("/v1/feedback", &feedback).await.ok();
        assert!(stored["metadata"]["loupe.redactions"][canary.kind].as_u64() >= Some(3), "{text}: {stored}");
    }
}

/// Returns all that the API shows of stored traces.
async fn read_everything(key: &Caller) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let mut traces = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let page = key.get(&format!("/v1/traces?limit=100&preview=true{cursor}")).await.ok();
        traces.extend(
            page["traces"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()),
        );
        texts.push(("list".to_owned(), page.to_string()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    for id in &traces {
        for path in
            [format!("/v1/traces/{id}"), format!("/v1/traces/{id}/spans"), format!("/v1/eval?trace_id={id}")]
        {
            texts.push((path.clone(), key.get(&path).await.ok().to_string()));
        }
    }
    for path in [
        "/v1/traces/export?format=otlp",
        "/v1/traces/export?format=jsonl",
        "/v1/feedback?limit=200",
        "/v1/rejections",
        "/v1/sessions",
    ] {
        let reply = key.get(path).await;
        assert_eq!(reply.status, 200, "{path}");
        texts.push((path.to_owned(), reply.text()));
    }
    texts
}

/// Returns the rows of all tables of PostgreSQL as text; bytes are in hexadecimal digits.
async fn rows_as_text(app: &TestApp) -> Vec<(String, String)> {
    let db = &app.app.db.write;
    let backend = db.get_database_backend();
    let tables = "SELECT tablename::text AS name FROM pg_tables WHERE schemaname = 'public'";
    let mut texts = Vec::new();
    for row in db.query_all_raw(Statement::from_string(backend, tables)).await.unwrap() {
        let table: String = row.try_get("", "name").unwrap();
        let query = format!("SELECT t::text AS line FROM \"{table}\" t");
        for row in db.query_all_raw(Statement::from_string(backend, query)).await.unwrap() {
            texts.push((table.clone(), row.try_get("", "line").unwrap()));
        }
    }
    texts
}

/// Returns the files of a database of SQLite and of a backup.
async fn sqlite_files(app: &TestApp) -> Vec<PathBuf> {
    let db = &app.app.db.write;
    let row = db
        .query_one_raw(Statement::from_string(db.get_database_backend(), "PRAGMA database_list"))
        .await
        .unwrap()
        .unwrap();
    let path: String = row.try_get("", "file").unwrap();
    let backup = format!("{path}.backup");
    store::backup::copy_into(&app.app.db, &backup).await.unwrap();
    [path.clone(), format!("{path}-wal"), backup]
        .map(PathBuf::from)
        .into_iter()
        .filter(|it| it.exists())
        .collect()
}

/// Asserts that the stored bytes have no value, in any column of any table.
async fn assert_nothing_is_stored(app: &TestApp) {
    if matches!(app.app.db.dialect, entities::dialect::Dialect::Postgres) {
        let hex = |text: &str| text.bytes().map(|it| format!("{it:02x}")).collect::<String>();
        for (table, row) in rows_as_text(app).await {
            assert_no_canary(&table, &row);
            let found = canaries().into_iter().find(|it| row.contains(&hex(it.needle)));
            assert!(found.is_none(), "{table} has the bytes of {}", found.unwrap().needle);
        }
        return;
    }
    let files = sqlite_files(app).await;
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        assert_no_canary(&file.display().to_string(), &String::from_utf8_lossy(&bytes));
    }
}

/// Returns the counts in the metadata of a trace or of its spans.
fn all_counts(value: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                if let Some(counts) = members.get("loupe.redactions").and_then(Value::as_object) {
                    found.extend(counts.clone());
                }
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}

on_both_databases! {
    async fn values_of_40_kinds_are_stored_nowhere_and_counted(app: TestApp) {
        redact_everything(app).await;
        let key = app.full_key();
        send_everything(&key).await;
        let grpc = app.beside_with(&GRPC_FLAGS).await;
        let client = GrpcClient::connect(grpc.otlp_grpc_address.unwrap()).await;
        let message: ExportTraceServiceRequest = serde_json::from_value(export(4_000)).unwrap();
        let reply = client.export(app.key_text(), &message.encode_to_vec()).await;
        assert_eq!(reply.code, 0, "{}", reply.message);
        let (calls, records) = calls_and_log_records(5_000);
        let partial = key.post("/v1/logs", &records).await.ok();
        assert_eq!(partial["partialSuccess"]["rejectedLogRecords"], "80", "{partial}");
        key.post(OTLP_PATH, &calls).await.ok();
        app.drain().await;
        assert_nothing_is_held(app).await;
        app.advance(60);
        app.drain().await;

        for (what, text) in read_everything(&key).await {
            assert_no_canary(&what, &text);
        }
        assert_nothing_is_stored(app).await;
        for (first, count) in [(1_000, 10), (2_000, 10), (4_000, 10), (5_000, 5)] {
            for (i, canary) in canaries().into_iter().enumerate() {
                let spans = key.get(&format!("/v1/traces/{:032x}/spans", first + i)).await.ok();
                let counts = all_counts(&spans);
                assert!(counts[canary.kind].as_u64() >= Some(count), "{}: {spans}", canary.text);
            }
        }
        grpc.stop().await;
    }

    async fn repeated_request_replays_a_redacted_response(app: TestApp) {
        redact_everything(app).await;
        let key = app.full_key();
        for _ in 0..2 {
            let request = key.request(Method::POST, "/v1/ingest").header("idempotency-key", "again");
            let reply = key.send(request.json(&json!({"external_id": "jane.roe@acme-corp.io"}))).await.ok();
            assert_eq!(reply["external_id"], "[REDACTED:email]");
        }
    }

    async fn trace_with_a_masked_id_is_found_for_feedback(app: TestApp) {
        redact_everything(app).await;
        let key = app.full_key();
        let trace = key.post("/v1/ingest", &json!({"id": "jane.roe@acme-corp.io"})).await.ok();
        assert_eq!(trace["external_id"], "[REDACTED:email]");
        let feedback = key.post("/v1/feedback", &json!({"external_id": "jane.roe@acme-corp.io", "label": "good"})).await.ok();
        assert_eq!(feedback["trace_id"], trace["id"]);
        let again = key.post("/v1/ingest", &json!({"id": "jane.roe@acme-corp.io"})).await;
        again.is(409, "conflict");
    }

    async fn feedback_of_masked_users_is_added(app: TestApp) {
        redact_everything(app).await;
        let key = app.full_key();
        let trace = key.post("/v1/ingest", &json!({"input": "x"})).await.ok();
        let mut ids = std::collections::HashSet::new();
        for user in ["jane.roe@acme-corp.io", "john.poe@acme-corp.io", "jim.moe@acme-corp.io"] {
            let body = json!({"trace_id": trace["id"], "label": "good", "user_id": user});
            let stored = key.post("/v1/feedback", &body).await.ok();
            assert!(stored["user_id"].as_str().unwrap().starts_with("[REDACTED:email]"), "{stored}");
            ids.insert(stored["id"].to_string());
        }
        assert_eq!(ids.len(), 3);
    }

    async fn invalid_item_is_redacted_with_the_project_that_it_names(app: TestApp) {
        redact_everything(app).await;
        let owner = app.session(Role::Owner);
        let key = app.full_key();
        let named = key.post("/v1/ingest", &json!({"project_name": "strict", "input": "x"})).await.ok();
        let trace = key.get(&format!("/v1/traces/{}", named["id"].as_str().unwrap())).await.ok();
        let path = format!("/v1/projects/{}/redaction", trace["project_id"].as_str().unwrap());
        let settings = json!({"detectors": [], "patterns": [{"name": "case", "pattern": "CASE-[0-9]{4}"}]});
        owner.put(&path, &settings).await.ok();
        let body = json!({"traces": [{"project_name": "strict", "started_at": "CASE-1234"}]});
        let reply = key.post("/v1/ingest/batch", &body).await.ok();
        assert_eq!(reply["rejected"], 1);
        assert!(!reply.to_string().contains("CASE-1234"), "{reply}");
    }

    async fn settings_of_each_project_apply_to_its_traces_only(app: TestApp) {
        redact_everything(app).await;
        let key = app.full_key();
        let text = "write to jane.roe@acme-corp.io";
        let other = key.post("/v1/ingest", &json!({"project_name": "other", "input": text})).await.ok();
        let own = key.post("/v1/ingest", &json!({"input": text})).await.ok();
        let input = async |trace: &Value| key.get(&format!("/v1/traces/{}", trace["id"].as_str().unwrap())).await.ok()["input"].clone();
        assert_eq!((input(&other).await, input(&own).await), (json!(text), json!("write to [REDACTED:email]")));

        let mut export = export(1);
        let project = attribute("openinference.project.name", "other");
        export["resourceSpans"][0]["resource"]["attributes"].as_array_mut().unwrap().push(project);
        key.post(OTLP_PATH, &export).await.ok();
        let spans = key.get(&format!("/v1/traces/{:032x}/spans", 1)).await.ok().to_string();
        assert!(spans.contains("jane.roe@acme-corp.io") && !spans.contains("[REDACTED"), "{spans}");
    }

    async fn settings_apply_to_requests_after_the_response_and_end_when_switched_off(app: TestApp) {
        let (key, owner) = (app.full_key(), app.session(Role::Owner));
        let path = format!("/v1/projects/{}/redaction", app.project);
        assert_eq!(key.get(&path).await.ok(), json!({"detectors": [], "patterns": []}));
        let text = r#"{"mail": "jane.roe@acme-corp.io", "n" : 4111111111111111}"#;
        let metadata: Value = json!({"mail": "jane.roe@acme-corp.io"});
        let round = async || {
            let trace = key.post("/v1/ingest", &json!({"input": text, "metadata": metadata})).await.ok();
            let detail = key.get(&format!("/v1/traces/{}", trace["id"].as_str().unwrap())).await.ok();
            (detail["input"].as_str().unwrap().to_owned(), detail["metadata"].clone())
        };
        for _ in 0..3 {
            assert_eq!(round().await, (text.to_owned(), metadata.clone()));
            owner.put(&path, &redaction_settings()).await.ok();
            assert_eq!(key.get(&path).await.ok(), redaction_settings());
            let (input, redacted) = round().await;
            assert_eq!(input, r#"{"mail": "[REDACTED:email]", "n" : "[REDACTED:payment_card]"}"#);
            assert_eq!(redacted, json!({"mail": "[REDACTED:email]", "loupe.redactions": {"email": 2, "payment_card": 1}}));
            owner.put(&path, &json!({"detectors": []})).await.ok();
        }
        let log = owner.get("/v1/audit-log?action=project.set_redaction").await.ok();
        assert_eq!(log["audit_log"].as_array().map(Vec::len), Some(6), "{log}");
    }

    async fn invalid_settings_are_refused_and_change_nothing(app: TestApp) {
        let owner = app.session(Role::Owner);
        let path = format!("/v1/projects/{}/redaction", app.project);
        owner.put(&path, &redaction_settings()).await.ok();
        let pattern = |pattern: &str| json!({"detectors": [], "patterns": [{"name": "p", "pattern": pattern}]});
        let many: Vec<Value> = (0..21).map(|i| json!({"name": format!("p{i}"), "pattern": "abc"})).collect();
        for (body, field) in [
            (json!({"detectors": ["names"]}), "detectors[0]"),
            (json!({"detectors": [], "patterns": many}), "patterns"),
            (json!({"detectors": [], "patterns": [{"name": "email", "pattern": "abc"}]}), "patterns[0].name"),
            (pattern("(abc"), "patterns[0].pattern"),
            (pattern(".*"), "patterns[0].pattern"),
            (pattern(".+"), "patterns[0].pattern"),
            (pattern("[A-Z]*[0-9]{3}"), "patterns[0].pattern"),
            (pattern(r"(\w{100}){100}"), "patterns[0].pattern"),
            (pattern(&"a".repeat(501)), "patterns[0].pattern"),
        ] {
            let reply = owner.put(&path, &body).await;
            reply.is(422, "validation_failed");
            assert_eq!(reply.json()["fields"][0]["field"], field, "{}", reply.text());
        }
        owner.put(&path, &json!({})).await.is(400, "invalid_body");
        assert_eq!(owner.get(&path).await.ok(), redaction_settings());
        app.session(Role::Member).put(&path, &redaction_settings()).await.is(403, "forbidden_role");
    }

    async fn export_of_redacted_traces_is_imported_with_its_counts(app: TestApp) {
        redact_everything(app).await;
        let key = app.full_key();
        let sent = key.post("/v1/ingest", &item("export", canaries()[0])).await.ok();
        let path = format!("/v1/traces/{}/spans", sent["id"].as_str().unwrap());
        let before = key.get(&path).await.ok();
        let exported = key.get("/v1/traces/export?format=otlp").await.text();
        let (_, other) = app.other_tenant(api::Plan::Enterprise).await;
        for line in exported.lines() {
            other.post_bytes(OTLP_PATH, "application/json", line.as_bytes().to_vec()).await;
        }
        let after = other.get(&path).await.ok();
        assert_eq!(all_counts(&after), all_counts(&before));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn setting_reaches_other_processes_within_a_second() {
    let app = TestApp::on(On::Sqlite).await;
    let beside = app.beside().await;
    let key = Caller::new(&beside.url, Some(app.key_text()));
    key.post("/v1/ingest", &json!({"input": "warm up"})).await.ok();
    redact_everything(&app).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let reply = key.post("/v1/ingest", &json!({"external_id": "jane.roe@acme-corp.io"})).await.ok();
    assert_eq!(reply["external_id"], "[REDACTED:email]");
    beside.stop().await;
    app.stop().await;
}

async fn log_has_no_masked_value(database: On) {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create_for(database).await;
    let key = ApiKey::generate().unwrap().reveal().to_owned();
    let mut setup =
        Setup::new(folder.path()).with("LOUPE_BOOTSTRAP_API_KEY", &key).with("LOUPE_LOG", "debug");
    if let Some(database) = &database {
        setup = setup.with_postgres(&database.url());
    }
    let mut server = setup.start();
    let key = Caller::new(&server.url, Some(&key));
    let projects = key.get("/v1/projects").await.ok();
    let path = format!("/v1/projects/{}/redaction", projects["projects"][0]["id"].as_str().unwrap());
    key.put(&path, &redaction_settings()).await.ok();
    send_everything(&key).await;
    let (calls, records) = calls_and_log_records(5_000);
    key.post("/v1/logs", &records).await.ok();
    key.post(OTLP_PATH, &calls).await.ok();
    // The log records are joined by a job.
    let joined = format!("/v1/traces/{:032x}", 5_000);
    while !key.get(&joined).await.ok().to_string().contains("[REDACTED:") {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.terminate();
    server.wait(Duration::from_secs(30));
    assert_no_canary("the log", &server.wait_for_log("\"stopped\""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_has_no_masked_value_on_sqlite() {
    log_has_no_masked_value(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_has_no_masked_value_on_postgres() {
    log_has_no_masked_value(On::Postgres).await;
}
