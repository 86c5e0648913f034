//! Filters and pages of failures and clusters.

use std::collections::HashSet;

use api::Role;
use serde_json::json;
use tests::on_both_databases;

use super::*;

/// Returns all rows of a list, page by page.
async fn pages(caller: &Caller, path: &str, name: &str) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = caller.get(&format!("{path}{cursor}")).await.ok();
        rows.extend(page[name].as_array().unwrap().clone());
        assert_eq!(page["has_more"], json!(page["next_cursor"].is_string()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return rows,
        }
    }
}

on_both_databases! {
    async fn listed_failures_match_all_filters(app: TestApp) {
        for (at, (message, model)) in [(TIMEOUT_MESSAGE, "a"), (TIMEOUT_MESSAGE, "b"), (OTHER_MESSAGE, "a")].into_iter().enumerate() {
            if at > 0 {
                app.advance(60);
            }
            ingest_item(&app.full_key(), json!({"name": "t", "spans": [{"name": "s", "model": model, "error": message}]})).await;
            app.drain().await;
        }
        let all = failures(app, "").await;
        let timeout = all[2]["cluster_id"].as_str().unwrap().to_owned();
        for (query, expected) in [
            ("type=timeout".to_owned(), 2), ("type=RemediationRegression".to_owned(), 0), ("model=a".to_owned(), 2), ("model=".to_owned(), 0),
            ("type=timeout&model=a".to_owned(), 1), (format!("cluster_id={timeout}"), 2), (format!("cluster_id={timeout}&model=b"), 1),
            (format!("trace_id={}", all[0]["trace_id"].as_str().unwrap()), 1), (format!("project_id={}", app.project), 3),
            (format!("project_id={}", app.tenant), 0), ("from=2026-06-15T12:01:00Z".to_owned(), 2), ("to=2026-06-15T12:01:00Z".to_owned(), 2),
            ("from=2026-06-15T12:00:00.000001Z&to=2026-06-15T12:01:59.999999Z".to_owned(), 1),
            ("from=2026-06-15T12:01:00Z&to=2026-06-15T12:01:00Z".to_owned(), 1), ("to=1900-01-01T00:00:00Z".to_owned(), 0),
            ("from=9999-01-01T00:00:00Z".to_owned(), 0), ("to=9999-12-31T23:59:59.999999Z".to_owned(), 3),
        ] {
            assert_eq!(failures(app, &query).await.len(), expected, "{query}");
        }
        let viewer = app.session(Role::Viewer);
        for query in ["type=", "type=sloth", "type=Timeout", "from=x", "project_id=1", "from=2026-06-15T12:01:00Z&to=2026-06-15T12:00:00Z"] {
            viewer.get(&format!("/v1/failures?{query}")).await.is(400, "invalid_query");
        }
    }

    async fn clusters_are_filtered_and_ordered_by_last_seen(app: TestApp) {
        for (at, message) in [TIMEOUT_MESSAGE, OTHER_MESSAGE, RATE_LIMIT_MESSAGE, TIMEOUT_MESSAGE].into_iter().enumerate() {
            if at > 0 {
                app.advance(60);
            }
            fail(app, message).await;
        }
        let types: Vec<Value> = clusters(app, "").await.iter().map(|it| it["failure_type"].clone()).collect();
        assert_eq!(types, ["timeout", "rate_limit", "other"]);
        for (query, expected) in [("failure_type=timeout", 1), ("failure_type=context_length", 0), ("status=open", 3), ("status=muted", 0),
            ("from=2026-06-15T12:02:00Z", 2), ("to=2026-06-15T12:02:00Z", 2), ("status=open&failure_type=other", 1)] {
            assert_eq!(clusters(app, query).await.len(), expected, "{query}");
        }
        let viewer = app.session(Role::Viewer);
        for query in ["status=", "status=gone", "failure_type=x", "from=x", "limit=0", "from=2026-06-15T12:01:00Z&to=2026-06-15T12:00:00Z"] {
            viewer.get(&format!("/v1/failures/clusters?{query}")).await.is(400, "invalid_query");
        }
        let paged = pages(&viewer, "/v1/failures/clusters?limit=1", "clusters").await;
        assert_eq!(paged, clusters(app, "").await);
    }

    /// Cursors are bound to the tenant, the list and the filters.
    async fn cursors_of_others_are_rejected(app: TestApp) {
        for message in [TIMEOUT_MESSAGE, OTHER_MESSAGE] {
            fail(app, message).await;
        }
        let (other, _) = app.other_tenant(api::Plan::Enterprise).await;
        let (mine, theirs) = (app.session(Role::Viewer), app.session_of(other, Role::Viewer));
        let cursor = async |path: &str| mine.get(path).await.ok()["next_cursor"].as_str().unwrap().to_owned();
        let failures = cursor("/v1/failures?limit=1").await;
        let clusters = cursor("/v1/failures/clusters?limit=1").await;
        for (caller, path) in [(&theirs, format!("/v1/failures?cursor={failures}")), (&mine, format!("/v1/failures?cursor={clusters}")),
            (&mine, format!("/v1/failures?type=timeout&cursor={failures}")), (&mine, format!("/v1/failures/clusters?cursor={failures}")),
            (&theirs, format!("/v1/failures/clusters?cursor={clusters}")), (&mine, format!("/v1/failures/clusters?status=open&cursor={clusters}")),
            (&mine, format!("/v1/failures?cursor={}x", failures))] {
            caller.get(&path).await.is(400, "invalid_cursor");
        }
        mine.get(&format!("/v1/failures?cursor={failures}")).await.ok();
    }

    /// Pages of a long list contain each failure once, also while others arrive.
    async fn ten_thousand_failures_are_paged(app: TestApp) {
        let spans: Vec<Value> = (0..100).map(|it| json!({"name": "call", "model": format!("m{}", it % 7), "error": if it % 2 == 0 { TIMEOUT_MESSAGE } else { OTHER_MESSAGE }})).collect();
        for _ in 0..10 {
            let item = json!({"name": "t", "spans": spans});
            app.full_key().post("/v1/ingest/batch", &json!({"traces": vec![item; 10]})).await.ok();
            app.advance(1);
        }
        app.drain().await;
        let viewer = app.session(Role::Viewer);
        let first = viewer.get("/v1/failures?limit=200").await.ok();
        fail(app, TIMEOUT_MESSAGE).await;
        let mut all = first["failures"].as_array().unwrap().clone();
        let next = first["next_cursor"].as_str().unwrap().to_owned();
        all.extend(pages(&viewer, &format!("/v1/failures?limit=200&cursor={next}"), "failures").await);
        assert_eq!(all.len(), 10_000);
        assert_eq!(all.iter().map(|it| it["id"].as_str().unwrap()).collect::<HashSet<_>>().len(), 10_000);
        let times: Vec<&str> = all.iter().map(|it| it["created_at"].as_str().unwrap()).collect();
        assert!(times.is_sorted_by(|newer, older| newer >= older));
        let cluster = all[0]["cluster_id"].as_str().unwrap();
        for (query, expected) in [(format!("project_id={}", app.project), 10_001), (format!("cluster_id={cluster}"), 5_000), ("type=timeout&model=m3".to_owned(), 700)] {
            let rows = pages(&viewer, &format!("/v1/failures?limit=200&{query}"), "failures").await;
            assert!(rows.len() >= expected && rows.len() <= expected + 100, "{query}: {}", rows.len());
        }
        let counts: i64 = clusters(app, "").await.iter().map(|it| it["count"].as_i64().unwrap()).sum();
        let trends: i64 = clusters(app, "").await.iter().map(trend_sum).sum();
        assert_eq!((counts, trends), (10_001, 10_001));
    }
}
