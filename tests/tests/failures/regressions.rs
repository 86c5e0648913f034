//! Remediation regressions in the pipeline of failures.

use serde_json::json;
use server::failures::recorder::{RemediationRegression, record_regression};
use tests::on_both_databases;

use super::*;

fn regression(trace: &str, evaluation: u128) -> RemediationRegression {
    RemediationRegression {
        trace_id: trace.parse().unwrap(),
        span_id: Uuid::from_u128(5),
        evaluation_id: Uuid::from_u128(evaluation),
        message: format!("faithfulness fell from 0.9 to 0.{evaluation}"),
        model: Some("gpt-4o".to_owned()),
        span_name: "call".to_owned(),
    }
}

on_both_databases! {
    /// A regression is recorded once for each evaluation, joins a cluster, and matches the rules for its
    /// failure type.
    async fn regression_is_a_failure_with_a_cluster(app: TestApp) {
        subscribe(app, app.tenant).await;
        let trace = ingest_item(&app.full_key(), json!({"name": "t", "spans": [{"name": "call"}]})).await;
        assert!(record_regression(&app.app, app.tenant, regression(&trace, 1)).await.unwrap());
        assert!(!record_regression(&app.app, app.tenant, regression(&trace, 1)).await.unwrap());
        assert_eq!(events(app).await.len(), 0, "the default rule does not match regressions");
        let id = rule(app, json!({"failure_types": ["RemediationRegression"]})).await;
        assert!(record_regression(&app.app, app.tenant, regression(&trace, 2)).await.unwrap());
        let found = failures(app, "type=RemediationRegression").await;
        assert_eq!((found.len(), &found[0]["type"], &found[0]["span_id"]), (2, &json!("RemediationRegression"), &json!(Uuid::from_u128(5))));
        let all = clusters(app, "failure_type=RemediationRegression").await;
        assert_eq!((all.len(), &all[0]["count"], &all[0]["trace_count"]), (1, &json!(2), &json!(1)), "{all:?}");
        let sent = events(app).await;
        assert_eq!((sent.len(), &sent[0]["data"]["rules"][0]["id"]), (1, &json!(id)));
        let unknown = Uuid::from_u128(9).to_string();
        assert!(!record_regression(&app.app, app.tenant, regression(&unknown, 3)).await.unwrap());
        assert_eq!(app.full_key().delete(&format!("/v1/traces/{trace}")).await.status, 204);
        assert_eq!(failures(app, "").await.len(), 0);
    }
}
