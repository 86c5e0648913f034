//! Automatic shipping.

use serde_json::json;
use tests::on_both_databases;

use super::*;

on_both_databases! {
    async fn passed_version_ships_at_once_with_autoship(app: TestApp) {
        evaluate_traces(app).await;
        change_project(app, json!({"prompt_autoship_enabled": true})).await;
        let first = created(app, json!({})).await;
        assert_eq!((&first["status"], &first["decided_by"]), (&json!("shipped"), &json!("autoship")));
        let test = tested(app, 5).await;
        scores(app, 1, &outputs(0, 5)).await;
        scores(app, 2, &outputs(5, 0)).await;
        let done = shown(app, &test).await;
        assert_eq!((&done["status"], &done["decided_by"], &done["baseline_id"]), (&json!("shipped"), &json!("autoship"), &first["id"]));
        assert_eq!((status(app, &first).await, &served(app, "").await["version"]), ("superseded".to_owned(), &json!(2)));
        let expected = ["create", "autoship", "create", "autoship"].map(|it| format!("prompt_deployment.{it}"));
        let mut found = audited(app).await;
        // The records of one transaction have the same time.
        found[..2].sort_unstable_by(|one, two| two.cmp(one));
        assert_eq!(found, expected);
        let failing = tested(app, 5).await;
        scores(app, 2, &outputs(5, 0)).await;
        scores(app, 3, &outputs(0, 5)).await;
        assert_eq!(status(app, &failing).await, "ab_failed");
        decide(app, &test, "rollback").await.ok();
        assert_eq!(status(app, &first).await, "shipped");
    }

    async fn switching_autoship_on_ships_the_newest_waiting_version(app: TestApp) {
        let (old, new) = (created(app, json!({})).await, created(app, json!({})).await);
        let other = created(app, json!({"prompt_name": "other"})).await;
        change_project(app, json!({"name": "renamed"})).await;
        app.drain().await;
        assert_eq!(status(app, &new).await, "ab_passed");
        change_project(app, json!({"prompt_autoship_enabled": true})).await;
        app.drain().await;
        assert_eq!((status(app, &old).await, status(app, &new).await, status(app, &other).await),
            ("ab_passed".to_owned(), "shipped".to_owned(), "shipped".to_owned()));
        assert_eq!(shown(app, &new).await["decided_by"], "autoship");
        assert_eq!(served(app, "").await["version"], 2);
        // Switching it on again ships no older version over the newer one.
        change_project(app, json!({"prompt_autoship_enabled": false})).await;
        change_project(app, json!({"prompt_autoship_enabled": true})).await;
        app.drain().await;
        assert_eq!((status(app, &old).await, status(app, &new).await), ("ab_passed".to_owned(), "shipped".to_owned()));
    }

    async fn autoship_that_was_switched_on_with_a_lower_plan_ships_after_the_upgrade(app: TestApp) {
        let made = created(app, json!({})).await;
        app.set_plan(api::Plan::Starter).await;
        change_project(app, json!({"prompt_autoship_enabled": true})).await;
        app.drain().await;
        app.set_plan(api::Plan::Team).await;
        assert_eq!(status(app, &made).await, "ab_passed");
        app.advance(600);
        app.drain().await;
        assert_eq!(status(app, &made).await, "shipped");
    }

    async fn waiting_version_is_not_shipped_after_autoship_was_switched_off_again(app: TestApp) {
        let made = created(app, json!({})).await;
        change_project(app, json!({"prompt_autoship_enabled": true})).await;
        change_project(app, json!({"prompt_autoship_enabled": false})).await;
        app.drain().await;
        assert_eq!(status(app, &made).await, "ab_passed");
    }
}
