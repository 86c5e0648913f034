//! What clusters show.

use serde_json::json;
use tests::on_both_databases;

use super::*;

on_both_databases! {
    /// Messages that differ in numbers and ids are one cluster; others and other types are not.
    async fn similar_messages_join_one_cluster(app: TestApp) {
        let messages = [
            "Rate limit reached for gpt-4o in organization org-q8Zr41Lk0bXw on tokens per min (TPM): Limit 30000, Used 29000",
            "Rate limit reached for gpt-4o in organization org-M2x9Tf77PaQd on tokens per min (TPM): Limit 10000, Used 9999",
            "Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-4o in organization org-0wK5yy31ZeHs on tokens per min (TPM): Limit 500, Used 1'}}",
        ];
        for message in messages {
            app.advance(60);
            fail(app, message).await;
        }
        fail(app, TIMEOUT_MESSAGE).await;
        let limited = clusters(app, "failure_type=rate_limit").await;
        assert_eq!(limited.len(), 1, "{limited:?}");
        let it = cluster(app, &limited[0]["id"]).await;
        assert_eq!((&it["count"], &it["trace_count"], &it["failure_type"], &it["status"]), (&json!(3), &json!(3), &json!("rate_limit"), &json!("open")));
        assert_eq!((&it["project_id"], &it["span_name"], &it["models"]), (&json!(app.project), &json!("call"), &json!(["gpt-4o"])));
        let signature = it["signature"].as_str().unwrap();
        assert!(signature.starts_with("Rate limit reached for gpt-4o in organization <*> on tokens per min (TPM): Limit <*>"), "{signature}");
        assert!(it["title"].as_str().unwrap().starts_with("Rate limit reached for gpt-4o"), "{it}");
        assert_eq!((&it["first_seen"], &it["last_seen"]), (&json!("2026-06-15T12:01:00.000000Z"), &json!("2026-06-15T12:03:00.000000Z")));
        let samples = it["samples"].as_array().unwrap();
        let shown: Vec<&str> = samples.iter().map(|it| it["message"].as_str().unwrap()).collect();
        assert_eq!(shown, messages);
        assert_eq!(samples.iter().map(|it| it["trace_id"].clone()).collect::<Vec<_>>(), *it["sample_trace_ids"].as_array().unwrap());
        // The list contains no samples, and begins with the newest cluster.
        let listed = clusters(app, "").await;
        assert_eq!((listed[0]["failure_type"].as_str(), listed[1]["id"] == it["id"]), (Some("timeout"), true));
        assert!(listed[0].get("samples").is_none());
        assert_eq!(failures(app, &format!("cluster_id={}", it["id"].as_str().unwrap())).await.len(), 3);
    }

    async fn trend_has_every_hour(app: TestApp) {
        // Failures occur at 12:00, 12:00, 13:00 and 15:00, and another one 25 hours later.
        for hours in [0, 0, 1, 2] {
            app.advance(hours * 3_600);
            fail(app, OTHER_MESSAGE).await;
        }
        let it = only_cluster(app).await;
        let points = it["trend"].as_array().unwrap();
        assert_eq!((points.len(), &points[23]), (24, &json!({"start": "2026-06-15T15:00:00.000000Z", "count": 1})));
        let counts: Vec<i64> = points[20..].iter().map(|it| it["count"].as_i64().unwrap()).collect();
        assert_eq!((counts, trend_sum(&it)), (vec![2, 1, 0, 1], 4));
        app.advance(25 * 3_600);
        fail(app, OTHER_MESSAGE).await;
        assert_eq!(trend_sum(&only_cluster(app).await), 1);
        let whole = cluster(app, &it["id"]).await;
        assert_eq!((whole["trend"].as_array().unwrap().len(), trend_sum(&whole), &whole["count"]), (168, 5, &json!(5)));
    }

    /// The samples are the first failure and the latest ones, each from a different trace.
    async fn samples_are_of_different_traces(app: TestApp) {
        let mut traces = Vec::new();
        for _ in 0..12 {
            app.advance(1);
            let spans: Vec<Value> = (0..3).map(|_| json!({"name": "call", "error": OTHER_MESSAGE})).collect();
            traces.push(ingest_item(&app.full_key(), json!({"name": "t", "spans": spans})).await);
            app.drain().await;
        }
        let it = only_cluster(app).await;
        let expected: Vec<&String> = traces[..1].iter().chain(&traces[5..]).collect();
        assert_eq!(it["sample_trace_ids"], json!(expected));
        assert_eq!((&it["count"], &it["trace_count"]), (&json!(36), &json!(12)));
    }

    /// Projects have clusters of their own.
    async fn projects_have_their_own_clusters(app: TestApp) {
        let key = app.full_key();
        let item = |project: &str| json!({"project_name": project, "name": "t", "spans": [{"name": "call", "error": TIMEOUT_MESSAGE}]});
        key.post("/v1/ingest/batch", &json!({"traces": [item("a"), item("b"), item("a")]})).await.ok();
        app.drain().await;
        let all = clusters(app, "").await;
        assert_eq!(all.len(), 2);
        for it in &all {
            let project = it["project_id"].as_str().unwrap();
            assert_eq!(clusters(app, &format!("project_id={project}")).await, std::slice::from_ref(it));
            let count = failures(app, &format!("project_id={project}")).await.len();
            assert_eq!(it["count"], json!(count));
        }
        assert_eq!(clusters(app, &format!("project_id={}", app.project)).await, Vec::<Value>::new());
    }
}
