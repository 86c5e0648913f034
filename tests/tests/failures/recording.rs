//! Which failures are recorded, and when.

use api::{Role, trace_filter::TraceConditions};
use serde_json::{Value, json};
use tests::{
    TestApp,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};
use uuid::Uuid;

use super::*;

const TRACE_ID: u128 = 0x5b8e_fff7_9803_8103_d269_b633_813f_c60c;

async fn send(app: &TestApp, body: &Value) {
    app.full_key().post("/v1/otlp/traces", body).await.ok();
}

/// Returns the number of jobs of a kind.
async fn waiting(app: &TestApp, kind: &str) -> usize {
    let jobs = entities::job::Entity::find().all(&app.app.db.write).await.unwrap();
    jobs.iter().filter(|it| it.kind == kind).count()
}

on_both_databases! {
    async fn failing_spans_of_each_type_are_recorded(app: TestApp) {
        let messages = [("timeout", TIMEOUT_MESSAGE), ("rate_limit", RATE_LIMIT_MESSAGE), ("invalid_response", INVALID_RESPONSE_MESSAGE),
            ("context_length", CONTEXT_LENGTH_MESSAGE), ("other", OTHER_MESSAGE)];
        for (failure_type, message) in messages {
            app.advance(1);
            let trace = fail(app, message).await;
            let found = failures(app, &format!("type={failure_type}")).await;
            assert_eq!(found.len(), 1, "{failure_type}: {found:?}");
            let span = app.full_key().get(&format!("/v1/traces/{trace}")).await.ok()["spans"][0].clone();
            assert_eq!(found[0], json!({"id": found[0]["id"], "project_id": app.project, "trace_id": trace, "span_id": span["id"],
                "span_name": "call", "type": failure_type, "message": message, "model": "gpt-4o",
                "cluster_id": found[0]["cluster_id"], "created_at": span["created_at"]}));
        }
        let all = failures(app, "").await;
        let types: Vec<&Value> = all.iter().map(|it| &it["type"]).collect();
        assert_eq!(types, ["other", "context_length", "invalid_response", "rate_limit", "timeout"]);
    }

    /// Commits without failing spans cost nothing, and those with failing spans one job for each tenant.
    async fn commit_enqueues_one_job_only_for_failing_spans(app: TestApp) {
        let key = app.full_key();
        ingest_item(&key, json!({"name": "fine", "spans": [{"name": "s"}, {"name": "t"}]})).await;
        assert_eq!(waiting(app, "record_failures").await, 0);
        let item = json!({"name": "t", "spans": [{"name": "s", "error": TIMEOUT_MESSAGE}, {"name": "u", "error": OTHER_MESSAGE}]});
        let good = json!({"name": "t", "spans": [{"name": "s"}]});
        key.post("/v1/ingest/batch", &json!({"traces": [item, good, item, good]})).await.ok();
        assert_eq!(waiting(app, "record_failures").await, 1);
        app.drain().await;
        assert_eq!(failures(app, "").await.len(), 4);
        assert_eq!(waiting(app, "record_failures").await, 0);
    }

    /// The error of a trace without spans is recorded as a failure.
    async fn error_of_a_trace_without_spans_is_recorded(app: TestApp) {
        let key = app.full_key();
        let trace = ingest_item(&key, json!({"name": "bare", "model": "m", "error": RATE_LIMIT_MESSAGE})).await;
        ingest_item(&key, json!({"name": "recovered", "error": "the whole failed", "spans": [{"name": "s"}]})).await;
        app.drain().await;
        let found = failures(app, "").await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((&found[0]["trace_id"], &found[0]["span_id"], &found[0]["type"], &found[0]["span_name"], &found[0]["model"]),
            (&json!(trace), &Value::Null, &json!("rate_limit"), &json!("bare"), &json!("m")));
    }

    /// Replays of the same request change nothing: neither failures, nor counts, nor trends.
    async fn replayed_request_is_counted_once(app: TestApp) {
        let spans = [
            Span::new(TRACE_ID, 1, "root", TEST_START_MICROS).failed(TIMEOUT_MESSAGE),
            Span::new(TRACE_ID, 2, "call", TEST_START_MICROS).under(1).calls("gpt-4o", 1, 1).failed("Rate limit reached: try again in 7s"),
            Span::new(TRACE_ID, 3, "call", TEST_START_MICROS).under(1).calls("gpt-4o-mini", 1, 1).failed("Rate limit reached: try again in 9s"),
        ];
        for round in 0..4 {
            send(app, &request(&spans)).await;
            // In one round, no job runs between the replays.
            if round != 1 {
                app.drain().await;
            }
            app.advance(3_600);
        }
        assert_eq!(failures(app, "").await.len(), 3);
        let clusters = clusters(app, "failure_type=rate_limit").await;
        assert_eq!(clusters.len(), 1, "{clusters:?}");
        let it = &clusters[0];
        assert_eq!((&it["count"], &it["trace_count"], trend_sum(it)), (&json!(2), &json!(1), 2));
        assert_eq!((&it["models"], &it["sample_trace_ids"]), (&json!(["gpt-4o", "gpt-4o-mini"]), &json!([Uuid::from_u128(TRACE_ID)])));
        assert_eq!((&it["first_seen"], &it["last_seen"]), (&json!("2026-06-15T12:00:00.000000Z"), &json!("2026-06-15T12:00:00.000000Z")));
    }

    /// Each late span is recorded when it arrives, and its trace is counted once in each cluster.
    async fn late_failing_spans_are_recorded(app: TestApp) {
        let failing = |id: u64, message: &str| Span::new(TRACE_ID, id, "call", TEST_START_MICROS).under(1).failed(message);
        send(app, &request(&[failing(2, TIMEOUT_MESSAGE)])).await;
        app.drain().await;
        assert_eq!(failures(app, "").await.len(), 1);
        app.advance(60);
        send(app, &request(&[Span::new(TRACE_ID, 1, "root", TEST_START_MICROS), failing(2, TIMEOUT_MESSAGE), failing(3, TIMEOUT_MESSAGE), failing(4, OTHER_MESSAGE)])).await;
        app.drain().await;
        let found = failures(app, &format!("trace_id={}", Uuid::from_u128(TRACE_ID))).await;
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0]["created_at"], "2026-06-15T12:01:00.000000Z");
        let timeouts = clusters(app, "failure_type=timeout").await;
        assert_eq!((&timeouts[0]["count"], &timeouts[0]["trace_count"]), (&json!(2), &json!(1)));
        let others = clusters(app, "failure_type=other").await;
        assert_eq!((&others[0]["count"], &others[0]["trace_count"]), (&json!(1), &json!(1)));
    }

    /// A group has more failures than one job records, and a message is longer than the list shows.
    async fn many_and_long_failures_are_recorded(app: TestApp) {
        let long = format!("the disk is on fire {}", "é".repeat(5_000));
        let spans: Vec<Value> = (0..700).map(|it| json!({"name": "call", "error": if it == 0 { long.as_str() } else { OTHER_MESSAGE }})).collect();
        ingest_item(&app.full_key(), json!({"name": "wide", "spans": spans})).await;
        assert_eq!(waiting(app, "record_failures").await, 3);
        app.drain().await;
        let counts: i64 = clusters(app, "").await.iter().map(|it| it["count"].as_i64().unwrap()).sum();
        assert_eq!(counts, 700);
        assert!(clusters(app, "").await.iter().all(|it| it["trace_count"] == 1));
        let shown = app.app.db.primary();
        let rows = store::failures::page(&shown, app.tenant, &api::failure::FailureFilter::default(), None, 1_000).await.unwrap();
        assert_eq!(rows.len(), 700);
        assert_eq!(rows.iter().map(|it| it.message.chars().count()).max(), Some(2_000));
    }

    /// The trace is gone before the job runs.
    async fn failure_of_a_deleted_trace_is_not_recorded(app: TestApp) {
        let trace = ingest(&app.full_key(), TIMEOUT_MESSAGE).await;
        assert_eq!(app.full_key().delete(&format!("/v1/traces/{trace}")).await.status, 204);
        app.drain().await;
        assert_eq!((failures(app, "").await.len(), clusters(app, "").await.len()), (0, 0));
        // The same trace, sent again after its deletion, counts as another trace.
        let item = json!({"id": trace, "name": "again", "spans": [{"name": "call", "error": TIMEOUT_MESSAGE}]});
        ingest_item(&app.full_key(), item).await;
        app.drain().await;
        assert_eq!(failures(app, "").await.len(), 1);
    }

    async fn deleting_a_trace_deletes_its_failures(app: TestApp) {
        let (first, second) = (fail(app, TIMEOUT_MESSAGE).await, fail(app, TIMEOUT_MESSAGE).await);
        let id = only_cluster(app).await["id"].clone();
        assert_eq!(cluster(app, &id).await["sample_trace_ids"], json!([first, second]));
        assert_eq!(app.full_key().delete(&format!("/v1/traces/{first}")).await.status, 204);
        assert_eq!(failures(app, &format!("trace_id={first}")).await, Vec::<Value>::new());
        assert_eq!(failures(app, "").await.len(), 1);
        let left = cluster(app, &id).await;
        assert_eq!((&left["sample_trace_ids"], &left["count"], &left["samples"][0]["trace_id"]), (&json!([second]), &json!(2), &json!(second)));
        assert_eq!(left["samples"].as_array().unwrap().len(), 1);
        assert_eq!(app.full_key().delete(&format!("/v1/traces/{second}")).await.status, 204);
        let empty = only_cluster(app).await;
        assert_eq!((&empty["sample_trace_ids"], failures(app, "").await.len()), (&json!([]), 0));
        for table in ["failure", "failure_rule_match"] {
            let sql = format!("SELECT trace_id FROM {table}");
            let left = sea_orm::ConnectionTrait::query_all_raw(&app.app.db.write,
                sea_orm::Statement::from_string(app.app.db.dialect.backend(), sql)).await.unwrap();
            assert!(left.is_empty(), "{table}");
        }
    }

    /// Failures of a tenant are invisible to others, and so are its clusters, even with the same messages.
    async fn tenants_have_their_own_failures(app: TestApp) {
        let (other, theirs) = app.other_tenant(api::Plan::Enterprise).await;
        ingest(&theirs, TIMEOUT_MESSAGE).await;
        fail(app, TIMEOUT_MESSAGE).await;
        let (mine, session) = (only_cluster(app).await, app.session_of(other, Role::Owner));
        let others = session.get("/v1/failures/clusters").await.ok();
        assert_eq!((&mine["count"], &others["clusters"][0]["count"]), (&json!(1), &json!(1)));
        assert!(mine["id"] != others["clusters"][0]["id"]);
        let their_cluster = others["clusters"][0]["id"].as_str().unwrap();
        assert_eq!(failures(app, &format!("cluster_id={their_cluster}")).await, Vec::<Value>::new());
        let path = format!("/v1/failures/clusters/{their_cluster}");
        app.session(Role::Owner).get(&path).await.is(404, "not_found");
        patch(&app.session(Role::Owner), &path, &json!({"status": "muted"})).await.is(404, "not_found");
        assert_eq!(session.get(&path).await.ok()["status"], "open");
        let cursor = session.get("/v1/failures?limit=1").await.ok()["next_cursor"].clone();
        assert_eq!(cursor, Value::Null);
    }

    /// Traces with failures are found by the filter of traces too.
    async fn failure_types_of_traces_are_unchanged(app: TestApp) {
        let trace = fail(app, TIMEOUT_MESSAGE).await;
        let listed = app.full_key().get("/v1/traces?failure_type=timeout").await.ok();
        assert_eq!(listed["traces"][0]["id"], json!(trace));
        for word in ["other", "RemediationRegression"] {
            app.full_key().get(&format!("/v1/traces?failure_type={word}")).await.is(400, "invalid_query");
        }
        assert!(TraceConditions::default().failure_type.is_none());
    }
}
