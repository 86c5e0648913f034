//! Spans that form no tree, invalid ids, and very many of both.

use serde_json::{Value, json};
use tests::on_both_databases;
use uuid::Uuid;

use super::{NotAllowed, Stored, check_all, check_health};

on_both_databases! {
    async fn spans_without_a_tree_are_stored_completely(app: TestApp) {
        let span = |id: &str, parent: &str| json!({"id": id, "parent_span_id": parent, "name": id});
        let trees = [
            json!([span("a", "a")]),
            json!([span("a", "b"), span("b", "a")]),
            json!([span("a", "b"), span("b", "c"), span("c", "a"), span("d", "a")]),
            json!([span("a", "gone")]),
            json!([span("a", "gone"), span("b", "gone too")]),
            json!([span("a", ""), span("b", ""), span("c", "a")]),
            json!([{"name": "r"}, span("a", "a"), span("b", "c"), span("c", "b")]),
        ];
        let key = app.full_key();
        for spans in trees {
            let item = json!({"spans": spans, "events": [{"message": "m", "span_id": "nowhere"}]});
            let made = key.post("/v1/ingest", &item).await.ok();
            let shown = key.get(&format!("/v1/traces/{}", made["id"].as_str().unwrap())).await.ok();
            assert_eq!(shown["spans"].as_array().unwrap().len(), spans.as_array().unwrap().len(), "{spans}");
            assert_eq!(made["span_count"], shown["spans"].as_array().unwrap().len());
            let page = key.get(&format!("/v1/traces/{}/spans", made["id"].as_str().unwrap())).await.ok();
            assert_eq!(page["spans"], shown["spans"]);
        }
        check_health(app).await;
    }

    async fn duplicate_span_id_is_rejected_and_unusual_ids_stored(app: TestApp) {
        let uuid = Uuid::from_u128(5).to_string();
        let cases = [
            (json!({"spans": [{"id": "a", "name": "s"}, {"id": "a", "name": "t"}]}), NotAllowed),
            (json!({"spans": [{"id": uuid, "name": "s"}, {"id": uuid.to_uppercase(), "name": "t"}]}), NotAllowed),
            (json!({"spans": [{"id": uuid, "name": "s"}, {"id": uuid.replace('-', ""), "name": "t"}]}), NotAllowed),
            (json!({"events": [{"id": "a", "message": "m"}, {"id": "a", "message": "m"}]}), NotAllowed),
            (json!({"spans": [{"id": "a", "name": "s"}], "events": [{"id": "a", "message": "m"}]}), Stored),
            (json!({"spans": [{"id": "", "name": "s"}, {"id": " ", "name": "s"}, {"id": "\u{feff}", "name": "s"}]}), Stored),
            (json!({"id": ""}), Stored), (json!({"id": ""}), Stored), (json!({"id": " "}), Stored), (json!({"id": "/../%00"}), Stored),
            (json!({"id": Uuid::nil()}), Stored), (json!({"id": Uuid::max()}), Stored), (json!({"id": format!("{{{}}}", Uuid::from_u128(6))}), Stored),
            (json!({"id": format!("urn:uuid:{}", Uuid::from_u128(7))}), Stored),
            (json!({"id": "x".repeat(100_000)}), Stored),
        ];
        check_all(app, cases.map(|(body, verdict)| (body.to_string(), verdict)).to_vec()).await;
    }

    async fn trace_with_very_many_spans_is_stored(app: TestApp) {
        let key = app.full_key();
        let spans: Vec<Value> = (0..25_000)
            .map(|i| match i {
                0 => json!({"id": "s0", "name": "root", "prompt_tokens": 1}),
                i => json!({"id": format!("s{i}"), "parent_span_id": format!("s{}", i - 1), "name": "n", "prompt_tokens": 1}),
            })
            .collect();
        let events: Vec<Value> = (0..5_000).map(|i| json!({"message": format!("m{i}"), "span_id": "s0"})).collect();
        let made = key.post("/v1/ingest", &json!({"id": "deep", "spans": spans, "events": events})).await.ok();
        assert_eq!((&made["span_count"], &made["total_token_count"]), (&json!(25_000), &json!(25_000)));
        let shown = key.get(&format!("/v1/traces/{}", made["id"].as_str().unwrap())).await.ok();
        assert_eq!(shown["spans"].as_array().unwrap().len(), 2_000);
        assert!(shown["spans_next_cursor"].is_string());
        // One invalid span causes the rejection of the whole trace.
        let mut wrong = spans.clone();
        wrong[24_999] = json!({"name": "n", "latency_ms": -1});
        let refused = key.post("/v1/ingest", &json!({"id": "wide", "spans": wrong})).await;
        assert_eq!(refused.is(422, "validation_failed").json()["fields"][0]["field"], "spans[24999].latency_ms");
        let list = key.get("/v1/traces?preview=true").await.ok();
        assert_eq!(list["traces"].as_array().unwrap().len(), 1);
        check_health(app).await;
    }
}
