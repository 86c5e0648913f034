//! Metrics of a project.

use serde_json::json;
use tests::on_both_databases;

on_both_databases! {
    async fn retry_cap_hit_is_a_number_for_both_windows(app: TestApp) {
        let (query, viewer) = (app.new_key(api::Role::Owner, &["query"]).await, app.session(api::Role::Viewer));
        for window in ["7d", "30d"] {
            let path = format!("/v1/projects/{}/metrics?metric=retry_cap_hit&window={window}", app.project);
            for caller in [&query, &viewer] {
                let right = json!({"metric": "retry_cap_hit", "value": 0, "window": window});
                assert_eq!(caller.get(&path).await.ok(), right);
            }
        }
    }

    async fn invalid_project_metrics_query_is_rejected(app: TestApp) {
        let key = app.full_key();
        let path = |query: &str| format!("/v1/projects/{}/metrics?{query}", app.project);
        for query in [
            "", "metric=retry_cap_hit", "window=7d", "metric=error_rate&window=7d", "metric=retry_cap_hit&window=24h",
            "metric=retry_cap_hit&window=7", "metric=&window=7d", "metric=retry_cap_hit&window=P7D",
        ] {
            key.get(&path(query)).await.is(400, "invalid_query");
        }
        let (_, theirs) = app.other_tenant(api::Plan::Pro).await;
        theirs.get(&path("metric=retry_cap_hit&window=7d")).await.is(404, "not_found");
        key.get("/v1/projects/x/metrics?metric=retry_cap_hit&window=7d").await.is(400, "invalid_query");
    }
}
