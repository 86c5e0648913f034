//! Feedback: by every identifier of a trace, repeated, in lists, and on traces that are removed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use api::{Plan, Role};
use futures::future::join_all;
use serde_json::{Value, json};
use tests::{Caller, Reply, TestApp, on_both_databases};
use uuid::Uuid;

const FEEDBACK_PATH: &str = "/v1/feedback";

/// Stores a trace. Returns its id.
async fn store_trace(key: &Caller, item: Value) -> String {
    key.post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned()
}

/// Returns the rows of a list, page by page.
async fn all_feedback(caller: &Caller, query: &str) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = caller.get(&format!("{FEEDBACK_PATH}?limit=3{query}{cursor}")).await.ok();
        let count = page["feedback"].as_array().unwrap().len();
        rows.extend(page["feedback"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => {
                assert_eq!(page["has_more"], false);
                return rows;
            }
        }
        assert_eq!((count, &page["has_more"]), (3, &json!(true)));
    }
}

/// Builds an export of one span.
fn span(trace: &str, id: u64) -> Value {
    let at = (tests::app::TEST_START_MICROS + id as i64) * 1_000;
    let span = json!({"traceId": trace, "spanId": format!("{id:016x}"), "name": "s", "startTimeUnixNano": at.to_string(),
        "endTimeUnixNano": (at + 5_000_000).to_string()});
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
}

/// Returns the feedback label in the trace's row.
async fn trace_label(app: &TestApp, id: &str) -> Option<i16> {
    let id: Uuid = id.parse().unwrap();
    let row = store::traces::by_id(&app.app.db.write, app.tenant, id).one(&app.app.db.write).await;
    row.unwrap().unwrap().feedback
}

/// Returns the stored label of the newest of these rows.
fn newest_label(rows: &[Value]) -> Option<i16> {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let row = rows.iter().max_by_key(|it| (text(it, "updated_at"), text(it, "id")))?;
    ["neutral", "good", "bad"].iter().position(|it| row["label"] == *it).map(|it| it as i16)
}

/// Returns whether a row belongs to a list.
type Fits<'a> = Box<dyn Fn(&Value) -> bool + 'a>;

on_both_databases! {
    async fn feedback_names_trace_by_three_kinds_of_id(app: TestApp) {
        let key = app.full_key();
        let id = store_trace(&key, json!({"name": "t", "external_id": "order 7", "spans": [{"name": "s", "id": "a"}]})).await;
        let detail = key.get(&format!("/v1/traces/{id}")).await.ok();
        let span = &detail["spans"][0]["id"];
        let body = json!({"trace_id": id, "label": "good", "comment": "right \u{0}answer", "user_id": "u-1", "source": "thumbs",
            "span_id": span, "metadata": {"k": ["v\u{0}", 1]}});
        let reply = key.post(FEEDBACK_PATH, &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        let said = reply.ok();
        assert_eq!(said, json!({"id": said["id"], "trace_id": id, "project_id": app.project, "span_id": span, "label": "good",
            "comment": "right \u{fffd}answer", "user_id": "u-1", "source": "thumbs", "metadata": {"k": ["v\u{fffd}", 1]},
            "created_at": "2026-06-15T12:00:00.000000Z", "updated_at": "2026-06-15T12:00:00.000000Z"}));
        app.advance(1);
        // Of two traces with one external ID, the feedback belongs to the one that started last.
        store_trace(&key, json!({"external_id": "order 7", "started_at": "2026-06-01T00:00:00Z"})).await;
        let by_name = key.post(FEEDBACK_PATH, &json!({"external_id": "order 7", "label": "bad"})).await.ok();
        let digits = id.replace('-', "").to_uppercase();
        let by_digits = key.post(FEEDBACK_PATH, &json!({"otel_trace_id": digits, "label": "neutral"})).await.ok();
        for said in [&by_name, &by_digits] {
            assert_eq!((&said["trace_id"], &said["user_id"], &said["source"]), (&json!(id), &Value::Null, &Value::Null));
        }
        let rows = all_feedback(&key, "").await;
        assert_eq!(rows.len(), 3);
        assert!(rows.contains(&said) && rows.contains(&by_name) && rows.contains(&by_digits));
        assert_eq!(trace_label(app, &id).await, newest_label(&rows));
    }

    async fn feedback_of_same_user_is_replaced(app: TestApp) {
        let key = app.full_key();
        let id = store_trace(&key, json!({})).await;
        let say = |label: &str, user: Option<&str>, source: Option<&str>| {
            app.advance(1);
            let body = json!({"trace_id": id, "label": label, "user_id": user, "source": source, "comment": label});
            let key = key.clone();
            async move { key.post(FEEDBACK_PATH, &body).await }
        };
        assert_eq!(trace_label(app, &id).await, None);
        let first = say("bad", Some("u"), None).await;
        assert_eq!((first.status, trace_label(app, &id).await), (201, Some(2)));
        let again = say("good", Some("u"), None).await;
        assert_eq!((again.status, trace_label(app, &id).await), (200, Some(1)));
        let (first, again) = (first.ok(), again.ok());
        assert_eq!((&again["id"], &again["created_at"]), (&first["id"], &first["created_at"]));
        assert_ne!(again["updated_at"], first["updated_at"]);
        assert_eq!((&again["label"], &again["comment"]), (&json!("good"), &json!("good")));
        // Feedback of another source or user is added; without a user, each feedback is added.
        assert_eq!(say("neutral", Some("u"), Some("review")).await.status, 201);
        assert_eq!(trace_label(app, &id).await, Some(0));
        assert_eq!(say("bad", Some("v"), None).await.status, 201);
        for _ in 0..2 {
            assert_eq!(say("bad", None, None).await.status, 201);
            assert_eq!(say("bad", Some(""), Some("")).await.status, 201);
        }
        let rows = all_feedback(&key, "").await;
        assert_eq!(rows.len(), 7);
        // Repeated feedback becomes the newest, whatever its position in the list.
        assert_eq!(say("good", Some("u"), Some("")).await.status, 200);
        assert_eq!(trace_label(app, &id).await, Some(1));
        assert_eq!(all_feedback(&key, "").await.len(), 7);
    }

    async fn feedback_list_is_filtered_and_paged(app: TestApp) {
        let (key, owner) = (app.full_key(), app.session(Role::Owner));
        owner.post("/v1/projects", &json!({"name": "second"})).await.ok();
        let mut traces = Vec::new();
        for i in 0..4 {
            let project = if i < 2 { "default" } else { "second" };
            traces.push(store_trace(&key, json!({"project_name": project})).await);
        }
        let mut rows = Vec::new();
        for i in 0..40usize {
            // Three at the same time, so that ids decide the order.
            app.advance(i64::from(i % 3 == 0));
            let label = ["good", "bad", "neutral"][i % 3];
            rows.push(key.post(FEEDBACK_PATH, &json!({"trace_id": traces[i % 4], "label": label, "user_id": format!("u{i}")})).await.ok());
        }
        let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
        rows.sort_by_key(|it| (text(it, "created_at"), text(it, "id")));
        rows.reverse();
        let (from, to) = (text(&rows[30], "created_at"), text(&rows[8], "created_at"));
        let second = text(rows.iter().find(|it| it["trace_id"] == *traces[3]).unwrap(), "project_id");
        assert_ne!(second, app.project.to_string());
        let within = |it: &Value| (&from..=&to).contains(&&text(it, "created_at"));
        let cases: [(String, Fits); 7] = [
            (String::new(), Box::new(|_| true)),
            (format!("&project_id={second}"), Box::new(|it| it["project_id"] == *second)),
            (format!("&trace_id={}", traces[1]), Box::new(|it| it["trace_id"] == *traces[1])),
            ("&label=bad".to_owned(), Box::new(|it| it["label"] == "bad")),
            (format!("&from={from}&to={to}"), Box::new(within)),
            (format!("&project_id={second}&label=good&from={from}"), Box::new(|it| it["project_id"] == *second && it["label"] == "good" && text(it, "created_at") >= from)),
            (format!("&trace_id={}&project_id={second}", traces[1]), Box::new(|_| false)),
        ];
        for (query, fits) in &cases {
            let wanted: Vec<Value> = rows.iter().filter(|it| fits(it)).cloned().collect();
            assert_eq!(all_feedback(&key, query).await, wanted, "{query}");
        }
        let query_key = app.new_key(Role::Owner, &["query"]).await;
        assert_eq!(all_feedback(&query_key, "").await.len(), 40);
        // A cursor is valid for its list only.
        let page = key.get(&format!("{FEEDBACK_PATH}?limit=1")).await.ok();
        let cursor = page["next_cursor"].as_str().unwrap();
        key.get(&format!("{FEEDBACK_PATH}?label=bad&cursor={cursor}")).await.is(400, "invalid_cursor");
        key.get(&format!("/v1/traces?cursor={cursor}")).await.is(400, "invalid_cursor");
        for query in ["project_id=x", "trace_id=x", "label=great", "from=then", "limit=0", "limit=201", "label=%00",
            "from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z"] {
            key.get(&format!("{FEEDBACK_PATH}?{query}")).await.is(400, "invalid_query");
        }
        key.get(&format!("{FEEDBACK_PATH}?cursor=x")).await.is(400, "invalid_cursor");
    }

    async fn hostile_feedback_body_is_rejected(app: TestApp) {
        let key = app.full_key();
        let id = store_trace(&key, json!({"external_id": "e"})).await;
        let with = |member: &str, value: Value| {
            let mut body = json!({"trace_id": id, "label": "good"});
            body[member] = value;
            body
        };
        let deep = "[".repeat(200) + &"]".repeat(200);
        for body in [json!([]), json!({"trace_id": id}), json!({"label": "good"}), json!({"label": "good", "trace_id": null}), with("label", json!(1)), with("trace_id", json!("x")),
            with("span_id", json!("x")), with("comment", json!(["x"])), with("metadata", json!("x")), with("metadata", json!([1]))] {
            key.post(FEEDBACK_PATH, &body).await.is(400, "invalid_body");
        }
        key.post_bytes(FEEDBACK_PATH, "application/json", b"{".to_vec()).await.is(400, "invalid_json");
        key.post_bytes(FEEDBACK_PATH, "text/plain", b"{}".to_vec()).await.is(415, "unsupported_media_type");
        let nested = format!("{{\"trace_id\":\"{id}\",\"label\":\"good\",\"metadata\":{{\"a\":{deep}}}}}");
        assert_eq!(key.post_bytes(FEEDBACK_PATH, "application/json", nested.into_bytes()).await.status, 400);
        let no_digits = "é".repeat(16);
        for body in [with("label", json!("great")), with("label", json!("")), with("label", json!("Good")),
            with("external_id", json!("e")), with("otel_trace_id", json!("0".repeat(32))),
            json!({"label": "good", "otel_trace_id": "12"}),
            json!({"label": "good", "otel_trace_id": "g".repeat(32)}), json!({"label": "good", "otel_trace_id": no_digits}),
            with("comment", json!("x".repeat(10_001))), with("user_id", json!("x".repeat(501))), with("source", json!("x".repeat(501))),
            with("user_id", json!("🙂".repeat(321))), with("metadata", json!({"a": "x".repeat(16 * 1024)}))] {
            let reply = key.post(FEEDBACK_PATH, &body).await;
            reply.is(422, "validation_failed");
            assert!(reply.json()["fields"][0]["field"].is_string(), "{}", reply.text());
        }
        for body in [with("span_id", json!(Uuid::from_u128(7))), json!({"label": "bad", "trace_id": Uuid::from_u128(7)}),
            json!({"label": "bad", "external_id": "x".repeat(5_000)}), json!({"label": "bad", "external_id": ""}),
            json!({"label": "bad", "external_id": "\u{0}"}), json!({"label": "bad", "otel_trace_id": "7".repeat(32)})] {
            key.post(FEEDBACK_PATH, &body).await.is(404, "not_found");
        }
        assert_eq!(all_feedback(&key, "").await.len(), 0);
        assert_eq!(trace_label(app, &id).await, None);
        // The maximum of every field is accepted, even if it cannot be compressed.
        let most: String = (0..320).map(|i| char::from_u32(0x20000 + i * 97 % 40_000).unwrap()).collect();
        assert_eq!(most.len(), 1_280);
        let mut body = with("comment", json!("🙂".repeat(10_000)));
        (body["user_id"], body["source"]) = (json!(most), json!(most.chars().rev().collect::<String>()));
        body["metadata"] = json!({"a": "x".repeat(16 * 1024 - 8)});
        assert_eq!(key.post(FEEDBACK_PATH, &body).await.status, 201);
        assert_eq!(key.post(FEEDBACK_PATH, &body).await.status, 200);
        // A null field counts as absent.
        let nulls = json!({"trace_id": id, "label": "good", "comment": null, "metadata": null, "otel_trace_id": null, "unknown": 1});
        let said = key.post(FEEDBACK_PATH, &nulls).await.ok();
        assert_eq!((&said["comment"], &said["metadata"]), (&Value::Null, &json!({})));
    }

    async fn feedback_on_trace_of_another_tenant_is_404(app: TestApp) {
        let (key, (_, theirs)) = (app.full_key(), app.other_tenant(Plan::Starter).await);
        let id = store_trace(&theirs, json!({"external_id": "e", "spans": [{"name": "s"}]})).await;
        let body = json!({"trace_id": id, "label": "good"});
        key.post(FEEDBACK_PATH, &body).await.is(404, "not_found");
        key.post(FEEDBACK_PATH, &json!({"external_id": "e", "label": "good"})).await.is(404, "not_found");
        key.post(FEEDBACK_PATH, &json!({"otel_trace_id": id.replace('-', ""), "label": "good"})).await.is(404, "not_found");
        let said = theirs.post(FEEDBACK_PATH, &body).await.ok();
        assert_eq!(all_feedback(&theirs, "").await, [said]);
        // Two tenants may have traces with the same id; feedback belongs to one of them.
        store_trace(&key, json!({"id": id})).await;
        assert_eq!(all_feedback(&key, &format!("&trace_id={id}")).await.len(), 0);
        key.post(FEEDBACK_PATH, &json!({"trace_id": id, "label": "bad"})).await.ok();
        let theirs: Vec<Value> = all_feedback(&theirs, "").await;
        assert_eq!((theirs.len(), &theirs[0]["label"]), (1, &json!("good")));
        // A span of another trace of the tenant is rejected too.
        let (own, spans) = (store_trace(&key, json!({"spans": [{"name": "s"}]})).await, store_trace(&key, json!({"spans": [{"name": "s"}]})).await);
        let span = key.get(&format!("/v1/traces/{spans}")).await.ok()["spans"][0]["id"].clone();
        key.post(FEEDBACK_PATH, &json!({"trace_id": own, "span_id": span, "label": "bad"})).await.is(404, "not_found");
    }

    async fn archived_project_accepts_feedback(app: TestApp) {
        let (key, owner) = (app.full_key(), app.session(Role::Owner));
        let made = owner.post("/v1/projects", &json!({"name": "old"})).await.ok();
        let id = store_trace(&key, json!({"project_name": "old"})).await;
        owner.post(&format!("/v1/projects/{}/archive", made["id"].as_str().unwrap()), &json!({})).await.ok();
        let said = key.post(FEEDBACK_PATH, &json!({"trace_id": id, "label": "good"})).await.ok();
        assert_eq!(said["project_id"], made["id"]);
        assert_eq!(all_feedback(&key, "").await.len(), 1);
    }

    async fn removed_trace_removes_its_feedback(app: TestApp) {
        let key = app.full_key();
        let (gone, kept) = (store_trace(&key, json!({})).await, store_trace(&key, json!({})).await);
        for id in [&gone, &kept] {
            for _ in 0..3 {
                key.post(FEEDBACK_PATH, &json!({"trace_id": id, "label": "good"})).await.ok();
            }
        }
        assert_eq!(key.delete(&format!("/v1/traces/{gone}")).await.status, 204);
        key.post(FEEDBACK_PATH, &json!({"trace_id": gone, "label": "good"})).await.is(404, "not_found");
        let rows = all_feedback(&key, "").await;
        assert!(rows.len() == 3 && rows.iter().all(|it| it["trace_id"] == *kept), "{rows:?}");
        // A new trace with the same id starts without feedback.
        store_trace(&key, json!({"id": gone})).await;
        assert_eq!((all_feedback(&key, "").await.len(), trace_label(app, &gone).await), (3, None));
    }

    async fn concurrent_feedback_keeps_one_row_per_user(app: TestApp) {
        let key = app.full_key();
        let id = store_trace(&key, json!({"spans": [{"name": "s"}]})).await;
        for round in 0..tests::rounds(4) {
            app.advance(i64::from(round % 2 == 0));
            let replies: Vec<Reply> = join_all((0..20).map(|i| {
                let label = ["good", "bad", "neutral"][i % 3];
                let user = (i % 2 == 0).then(|| format!("u{}", i % 4));
                let body = json!({"trace_id": id, "label": label, "user_id": user});
                let key = key.clone();
                async move { key.post(FEEDBACK_PATH, &body).await }
            }))
            .await;
            assert!(replies.iter().all(|it| matches!(it.status, 200 | 201)), "{:?}", replies.iter().map(Reply::text).collect::<Vec<_>>());
            let rows = all_feedback(&key, "").await;
            assert_eq!(rows.len(), 2 + 10 * (round + 1));
            assert_eq!(trace_label(app, &id).await, newest_label(&rows));
        }
    }

    async fn feedback_during_deletion_is_deleted_with_the_trace(app: TestApp) {
        let key = app.full_key();
        for _ in 0..tests::rounds(5) {
            let id = store_trace(&key, json!({})).await;
            let said = join_all((0..6).map(|_| {
                let (key, id) = (key.clone(), id.clone());
                async move { key.post(FEEDBACK_PATH, &json!({"trace_id": id, "label": "bad"})).await.status }
            }));
            let path = format!("/v1/traces/{id}");
            let (said, gone) = futures::join!(said, key.delete(&path));
            assert_eq!(gone.status, 204);
            assert!(said.iter().all(|it| matches!(it, 201 | 404)), "{said:?}");
            assert_eq!(all_feedback(&key, "").await, Vec::<Value>::new());
        }
    }

    /// The metrics count a trace by its newest feedback, after late spans, new feedback and removal.
    async fn metrics_count_only_the_newest_feedback(app: TestApp) {
        let key = app.full_key();
        let rate = || async { key.get("/v1/metrics").await.ok()["metrics"]["feedback_good_rate"].clone() };
        let mut ids = Vec::new();
        for n in 1..=4u128 {
            let id = Uuid::from_u128(n).simple().to_string();
            key.post("/v1/traces", &span(&id, 1)).await.ok();
            ids.push(id);
        }
        assert_eq!(rate().await, Value::Null);
        let say = |n: usize, label: &str, user: Option<&str>| {
            app.advance(1);
            let body = json!({"otel_trace_id": ids[n], "label": label, "user_id": user});
            let key = key.clone();
            async move { key.post(FEEDBACK_PATH, &body).await.ok() }
        };
        say(0, "good", Some("u")).await;
        say(1, "bad", None).await;
        assert_eq!(rate().await, json!(0.5));
        say(2, "neutral", None).await;
        say(3, "good", None).await;
        assert_eq!(rate().await, json!(0.5));
        // A late span changes the trace's row and keeps the feedback.
        key.post("/v1/traces", &span(&ids[0], 2)).await.ok();
        assert_eq!((rate().await, trace_label(app, &ids[0]).await), (json!(0.5), Some(1)));
        say(0, "bad", Some("u")).await;
        assert_eq!(rate().await, json!(0.25));
        // The same label again counts the trace once.
        say(3, "good", None).await;
        assert_eq!(rate().await, json!(0.25));
        key.delete(&format!("/v1/traces/{}", ids[1])).await.ok();
        key.delete(&format!("/v1/traces/{}", ids[2])).await.ok();
        assert_eq!(rate().await, json!(0.5));
        // Folding does not change the result.
        app.advance(600);
        app.drain().await;
        assert_eq!(rate().await, json!(0.5));
    }

    async fn feedback_with_idempotency_key_is_stored_once(app: TestApp) {
        let key = app.full_key();
        let id = store_trace(&key, json!({})).await;
        let say = || key.request(reqwest::Method::POST, FEEDBACK_PATH).header("idempotency-key", "k").json(&json!({"trace_id": id, "label": "bad"}));
        let (first, second) = (key.send(say()).await, key.send(say()).await);
        assert_eq!((first.status, second.status, first.ok()), (201, 201, second.ok()));
        assert_eq!(all_feedback(&key, "").await.len(), 1);
    }
}
