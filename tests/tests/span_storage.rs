//! The spans of a trace are in a span block, or in rows if they are too many or too large, or if an earlier version stored
//! them. Responses do not depend on the form.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use api::Role;
use serde_json::{Value, json};
use store::span_block::MAX_BLOCK_SPANS;
use tests::{
    Caller, TestApp,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
    stored_spans,
};
use uuid::Uuid;

const TRACE_ID: u128 = 0xb10c;

/// Returns span `i` of the trace: a call below the first span, with two tokens.
fn call(i: u64) -> Span {
    let span =
        Span::new(TRACE_ID, i + 1, &format!("step {i}"), TEST_START_MICROS + i64::try_from(i).unwrap());
    if i == 0 { span } else { span.under(1).calls("gpt-4o", 1, 1).with("input.value", format!("text {i}")) }
}

async fn send(key: &Caller, spans: &[Span]) {
    key.post("/v1/otlp/traces", &request(spans)).await.ok();
}

/// Returns the bodies of responses that contain spans.
async fn responses(app: &TestApp, vector: &[f32]) -> Vec<String> {
    let viewer = app.session(Role::Viewer);
    let list = viewer.get("/v1/traces").await.ok();
    let mut bodies = vec![list.to_string()];
    for trace in list["traces"].as_array().unwrap() {
        let id = trace["id"].as_str().unwrap();
        bodies.push(viewer.get(&format!("/v1/traces/{id}")).await.ok().to_string());
        let mut path = format!("/v1/traces/{id}?spans_limit=2");
        loop {
            let page = viewer.get(&path).await.ok();
            bodies.push(page["spans"].to_string());
            let Some(cursor) = page["spans_next_cursor"].as_str() else { break };
            path = format!("/v1/traces/{id}?spans_limit=2&spans_cursor={cursor}");
        }
    }
    for format in ["jsonl", "otlp"] {
        bodies.push(viewer.get(&format!("/v1/traces/export?format={format}")).await.text());
    }
    let found = viewer.post("/v1/search/spans", &json!({"vector": vector})).await.ok();
    assert_eq!(found["results"].as_array().unwrap().len(), 2);
    bodies.push(found.to_string());
    bodies
}

on_both_databases! {
    async fn responses_are_the_same_from_blocks_and_from_rows(app: TestApp) {
        let key = app.full_key();
        let vector: Vec<f32> = (0..1_536_u16).map(f32::from).collect();
        send(&key, &[call(0), call(1).failed("Request timed out"), call(2).noting("first"), call(2).noting("again")]).await;
        // The parent and the event's span never arrive.
        send(&key, &[Span::new(TRACE_ID + 1, 1, "orphan", TEST_START_MICROS).under(9).noting("noted").with("input.value", "in")]).await;
        let items = json!({"traces": [
            {"id": "empty"},
            {"id": "t", "events": [{"message": "stray"}], "spans": [
                {"id": "a", "name": "a", "input": "ä", "embedding": vector, "start_time": "2026-06-15T12:00:02Z"},
                {"id": "b", "parent_span_id": "a", "name": "b", "embedding": vector, "error": "it broke", "metadata": {"k": 1}}]}]});
        assert_eq!(key.post("/v1/ingest/batch", &items).await.ok()["accepted"], 2);
        app.advance(60);
        app.drain().await;
        assert_eq!(stored_spans::blocks(app, app.tenant).await.len(), 3);
        let from_blocks = responses(app, &vector).await;
        assert!(from_blocks.iter().any(|it| it.contains("it broke")));

        stored_spans::move_into_rows(app, app.tenant).await;
        assert!(stored_spans::blocks(app, app.tenant).await.is_empty());
        assert_eq!(responses(app, &vector).await, from_blocks);
    }

    async fn spans_move_into_rows_when_they_are_too_many_for_a_block(app: TestApp) {
        let key = app.full_key();
        let most = u64::try_from(MAX_BLOCK_SPANS).unwrap();
        send(&key, &(0..most - 1).map(call).collect::<Vec<_>>()).await;
        for (sent, blocks) in [(most - 1, 1), (most, 1), (most + 1, 0), (most + 2, 0)] {
            // The last two spans are sent again.
            send(&key, &[call(sent - 2), call(sent - 1)]).await;
            assert_eq!(stored_spans::blocks(app, app.tenant).await.len(), blocks, "{sent} spans");
            let stored = stored_spans::all(app, app.tenant).await;
            let names: BTreeSet<String> = stored.iter().map(|it| it.name.clone()).collect();
            assert_eq!(names, (0..sent).map(|it| format!("step {it}")).collect());
            assert_eq!(stored.len(), names.len(), "each span is stored once");
            let listed = &key.get("/v1/traces").await.ok()["traces"][0];
            assert_eq!((listed["span_count"].as_u64(), listed["total_token_count"].as_u64()), (Some(sent), Some(2 * (sent - 1))));
        }
        let id = Uuid::from_u128(TRACE_ID);
        let path = format!("/v1/traces/{id}");
        let texts = key.get(&path).await.ok()["spans"].as_array().unwrap().iter().filter(|it| it["input"].is_string()).count();
        assert!(texts > 1);
        assert_eq!(app.session(Role::Owner).delete(&path).await.status, 204);
        assert!(stored_spans::all(app, app.tenant).await.is_empty());
    }

    async fn readers_find_every_span_during_the_move_into_rows(app: TestApp) {
        let (key, db, id) = (app.full_key(), &app.app.db, Uuid::from_u128(TRACE_ID));
        send(&key, &(0..120).map(call).collect::<Vec<_>>()).await;
        let write = async {
            for i in (120..140).step_by(4) {
                let (first, second) = ([call(i), call(i + 1), call(0)], [call(i + 2), call(i + 1), call(i + 3)]);
                tokio::join!(send(&key, &first), send(&key, &second));
            }
        };
        let read = async {
            let mut known = 120;
            while known < 140 {
                for spans in [
                    store::traces::spans(db, app.tenant, id, None, 1_000).await.unwrap(),
                    store::traces::spans_of(db, app.tenant, &[id]).await.unwrap(),
                ] {
                    let ids: BTreeSet<Uuid> = spans.iter().map(|it| it.id).collect();
                    assert_eq!(ids.len(), spans.len(), "a span was returned twice");
                    assert!(ids.len() >= known, "{} of {known} spans", ids.len());
                    known = ids.len();
                }
            }
        };
        tokio::join!(write, read);
        assert!(stored_spans::blocks(app, app.tenant).await.is_empty());
        assert_eq!(stored_spans::all(app, app.tenant).await.len(), 140);
    }

    async fn pages_of_spans_without_vectors_are_complete(app: TestApp) {
        let key = app.full_key();
        let items = |range: std::ops::Range<usize>| -> Vec<Value> {
            range.map(|i| json!({"id": format!("t{i}"), "spans": [{"name": "a"}, {"name": "b"}]})).collect()
        };
        key.post("/v1/ingest/batch", &json!({"traces": items(0..20)})).await.ok();
        stored_spans::move_into_rows(app, app.tenant).await;
        key.post("/v1/ingest/batch", &json!({"traces": items(20..100)})).await.ok();
        send(&key, &(0..130).map(call).collect::<Vec<_>>()).await;
        let boundary = app.app.clock.now() + 1;
        app.advance(1);
        key.post("/v1/ingest/batch", &json!({"traces": items(100..110)})).await.ok();
        assert_eq!(stored_spans::blocks(app, app.tenant).await.len(), 90);

        let stored = stored_spans::all(app, app.tenant).await;
        let traces: Vec<Uuid> = stored.iter().map(|it| it.trace_id).collect::<BTreeSet<_>>().into_iter().collect();
        for since in [0, boundary] {
            let mut expected: Vec<(i64, Uuid)> =
                stored.iter().filter(|it| it.created_at >= since).map(|it| (it.trace_key, it.id)).collect();
            expected.sort_unstable();
            assert!(expected.len() == if since == 0 { 350 } else { 20 });
            for limit in [1, 7, 64, 1_000] {
                let (mut found, mut after) = (Vec::new(), None);
                loop {
                    let page = store::vectors::missing(&app.app.db, app.tenant, &traces, since, after, limit).await.unwrap();
                    found.extend(page.iter().map(|it| (it.trace_key, it.id)));
                    let Some(last) = page.last() else { break };
                    after = Some((last.trace_id, last.id));
                }
                assert_eq!(found, expected, "pages of {limit}");
            }
        }
    }

    /// Large error messages take more space than a block has.
    async fn large_spans_are_stored_in_rows(app: TestApp) {
        let key = app.full_key();
        let failed = |i| call(i).failed(&"x".repeat(40_000));
        send(&key, &[call(0), failed(1)]).await;
        assert_eq!(stored_spans::blocks(app, app.tenant).await.len(), 1);
        send(&key, &[failed(2)]).await;
        assert_eq!(stored_spans::blocks(app, app.tenant).await.len(), 0);
        send(&key, &[call(3)]).await;
        let detail = key.get(&format!("/v1/traces/{}", Uuid::from_u128(TRACE_ID))).await.ok();
        let errors: Vec<usize> = detail["spans"].as_array().unwrap().iter().map(|it| it["error"].as_str().map_or(0, str::len)).collect();
        assert_eq!(errors, [0, 40_000, 40_000, 0]);
    }

    async fn look_ups_find_spans_in_blocks_and_in_rows(app: TestApp) {
        let key = app.full_key();
        send(&key, &[call(0), Span::new(TRACE_ID, 2, "failed", TEST_START_MICROS + 1).failed("it broke")]).await;
        let failed: Vec<(Uuid, Uuid)> =
            stored_spans::all(app, app.tenant).await.iter().map(|it| (it.trace_id, it.id)).collect();
        let detail = key.get(&format!("/v1/traces/{}", Uuid::from_u128(TRACE_ID))).await.ok();
        let feedback = |span: &Value| json!({"trace_id": detail["id"], "span_id": span, "label": "bad"});
        let unknown = json!(Uuid::from_u128(3));
        for _ in 0..2 {
            assert!(matches!(key.post("/v1/feedback", &feedback(&detail["spans"][0]["id"])).await.status, 200 | 201));
            key.post("/v1/feedback", &feedback(&unknown)).await.is(404, "not_found");
            let kinds = store::traces::span_kinds(&app.app.db, app.tenant, &[Uuid::from_u128(TRACE_ID)]).await.unwrap();
            assert_eq!(kinds[&Uuid::from_u128(TRACE_ID)].len(), 1);
            let failing = store::failures::failing_spans(&app.app.db, app.tenant, &failed).await.unwrap();
            assert_eq!(failing.iter().map(|it| it.error.as_deref()).collect::<Vec<_>>(), [Some("it broke")]);
            stored_spans::move_into_rows(app, app.tenant).await;
        }
    }
}
