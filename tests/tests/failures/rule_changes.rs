//! Creating, changing and deleting failure rules.

use api::{Plan, Role};
use sea_orm::ConnectionTrait;
use serde_json::json;
use tests::{On, TestApp, on_both_databases};

use super::*;

const START_TEXT: &str = "2026-06-15T12:00:00.000000Z";

on_both_databases! {
    async fn every_tenant_has_the_default_rule(app: TestApp) {
        let (_, theirs) = app.other_tenant(Plan::Pro).await;
        for key in [app.full_key(), theirs] {
            let rules = key.get("/v1/failure-rules").await.ok();
            let rule = rules["failure_rules"][0].clone();
            assert_eq!(rules["failure_rules"].as_array().unwrap().len(), 1);
            assert_eq!(rule, json!({"id": rule["id"], "name": "Any failure", "enabled": true, "project_id": null,
                "failure_types": ["timeout", "rate_limit", "invalid_response", "context_length"], "metric_name": null, "max_score": null,
                "filter": {}, "min_count": 1, "window_minutes": 60, "created_at": START_TEXT, "updated_at": START_TEXT, "last_fired_at": null}));
        }
    }

    async fn created_rule_has_defaults_and_is_listed(app: TestApp) {
        let key = app.full_key();
        app.advance(1);
        let made = key.post("/v1/failure-rules", &json!({"name": "mine"})).await;
        assert_eq!(made.status, 201);
        let made = made.ok();
        let at = "2026-06-15T12:00:01.000000Z";
        assert_eq!(made, json!({"id": made["id"], "name": "mine", "enabled": true, "project_id": null,
            "failure_types": ["timeout", "rate_limit", "invalid_response", "context_length"], "metric_name": null, "max_score": null,
            "filter": {}, "min_count": 1, "window_minutes": 60, "created_at": at, "updated_at": at, "last_fired_at": null}));
        let path = format!("/v1/failure-rules/{}", made["id"].as_str().unwrap());
        assert_eq!(key.get(&path).await.ok(), made);
        app.advance(1);
        let body = json!({"name": "scores", "enabled": false, "project_id": app.project, "metric_name": "latency_threshold", "max_score": 0.5,
            "filter": {"model": "m", "error": true}, "min_count": 5, "window_minutes": 10});
        let scores = key.post("/v1/failure-rules", &body).await.ok();
        assert_eq!((&scores["failure_types"], &scores["max_score"], &scores["filter"]), (&json!([]), &json!(0.5), &json!({"model": "m", "error": true})));
        app.advance(1);
        let types = json!({"name": "types", "failure_types": ["RemediationRegression", "other", "other"]});
        let types = key.post("/v1/failure-rules", &types).await.ok();
        assert_eq!(types["failure_types"], json!(["other", "RemediationRegression"]));
        let list = key.get("/v1/failure-rules?limit=2").await.ok();
        assert_eq!((&list["failure_rules"], &list["has_more"]), (&json!([types, scores]), &json!(true)));
        let next = key.get(&format!("/v1/failure-rules?limit=2&cursor={}", list["next_cursor"].as_str().unwrap())).await.ok();
        assert_eq!((&next["failure_rules"][0], next["failure_rules"].as_array().unwrap().len(), &next["has_more"]), (&made, 2, &json!(false)));
        let elsewhere = key.get(&format!("/v1/failure-rules?project_id={}", app.tenant)).await.ok();
        assert_eq!(elsewhere["failure_rules"].as_array().unwrap().len(), 3, "rules of all projects concern each one");
    }

    async fn changed_rule_keeps_absent_fields(app: TestApp) {
        let key = app.full_key();
        let body = json!({"name": "r", "project_id": app.project, "metric_name": "latency_threshold", "max_score": 0.5, "failure_types": ["other"],
            "filter": {"model": "m"}, "min_count": 5});
        let made = key.post("/v1/failure-rules", &body).await.ok();
        let path = format!("/v1/failure-rules/{}", made["id"].as_str().unwrap());
        app.advance(1);
        assert_eq!(patch(&key, &path, &json!({})).await.ok(), made);
        assert_eq!(patch(&key, &path, &json!({"min_count": 5, "of_later": 1})).await.ok(), made);
        let changes = [
            (json!({"name": "new"}), "name", json!("new")),
            (json!({"enabled": false}), "enabled", json!(false)),
            (json!({"project_id": null}), "project_id", Value::Null),
            (json!({"failure_types": ["timeout"]}), "failure_types", json!(["timeout"])),
            (json!({"max_score": 0.25}), "max_score", json!(0.25)),
            (json!({"filter": null}), "filter", json!({})),
            (json!({"window_minutes": 1}), "window_minutes", json!(1)),
        ];
        let mut expected = made.clone();
        for (change, field, value) in changes {
            expected[field] = value;
            expected["updated_at"] = json!("2026-06-15T12:00:01.000000Z");
            assert_eq!(patch(&key, &path, &change).await.ok(), expected, "{change}");
        }
        // A maximum score is invalid without a metric.
        let cleared = patch(&key, &path, &json!({"metric_name": null})).await.ok();
        assert_eq!((&cleared["metric_name"], &cleared["max_score"]), (&Value::Null, &Value::Null));
        assert_eq!(key.get(&path).await.ok(), cleared);
    }

    async fn invalid_rule_is_rejected(app: TestApp) {
        let key = app.full_key();
        let made = key.post("/v1/failure-rules", &json!({"name": "r"})).await.ok();
        let path = format!("/v1/failure-rules/{}", made["id"].as_str().unwrap());
        for (fields, field) in [
            (json!({"name": ""}), "name"), (json!({"name": "x".repeat(201)}), "name"), (json!({"name": "a\0b"}), "name"),
            (json!({"failure_types": ["sloth"]}), "failure_types"), (json!({"failure_types": []}), "failure_types"),
            (json!({"metric_name": "latency_threshold"}), "max_score"), (json!({"max_score": 1}), "metric_name"),
            (json!({"metric_name": "nonsense", "max_score": 1}), "metric_name"),
            (json!({"filter": {"tag": ""}}), "filter.tag"), (json!({"filter": {"project": "p"}}), "filter.project"),
            (json!({"min_count": 0}), "min_count"), (json!({"min_count": 1_001}), "min_count"), (json!({"min_count": i64::MAX}), "min_count"),
            (json!({"window_minutes": -1}), "window_minutes"), (json!({"window_minutes": 10_081}), "window_minutes"),
        ] {
            let mut new = json!({"name": "r"});
            new.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            for reply in [key.post("/v1/failure-rules", &new).await, patch(&key, &path, &fields).await] {
                reply.is(422, "validation_failed");
                assert_eq!(reply.json()["fields"][0]["field"], field, "{fields}");
            }
        }
        for fields in [json!({"failure_types": "timeout"}), json!({"failure_types": [7]}), json!({"max_score": "low"}), json!({"filter": []}),
            json!({"project_id": "x"}), json!({"min_count": 1.5}), json!({"enabled": "yes"})] {
            let mut new = json!({"name": "r"});
            new.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            key.post("/v1/failure-rules", &new).await.is(400, "invalid_body");
            patch(&key, &path, &fields).await.is(400, "invalid_body");
        }
        key.post("/v1/failure-rules", &json!({})).await.is(400, "invalid_body");
        key.post("/v1/failure-rules", &json!({"name": "r", "project_id": app.tenant})).await.is(404, "not_found");
        patch(&key, &path, &json!({"project_id": app.tenant})).await.is(404, "not_found");
        assert_eq!(key.get(&path).await.ok(), made);
    }

    async fn number_of_rules_is_limited(app: TestApp) {
        let key = app.full_key();
        let txn = app.app.db.begin().await.unwrap();
        let first = store::failure_rules::enabled(&txn, app.tenant).await.unwrap().remove(0);
        for _ in 0..198 {
            let row = entities::failure_rule::Model { id: store::new_id(), ..first.clone() };
            store::failure_rules::add(&txn, row).await.unwrap();
        }
        txn.commit().await.unwrap();
        let body = json!({"name": "r"});
        let replies = futures::future::join_all((0..4).map(|_| key.post("/v1/failure-rules", &body))).await;
        assert_eq!(replies.iter().filter(|it| it.status == 201).count(), 1);
        replies.iter().filter(|it| it.status != 201).for_each(|it| _ = it.is(409, "conflict"));
    }

    /// A lowered plan keeps the rules, which can be deleted and not used.
    async fn lowered_plan_keeps_rules(app: TestApp) {
        let key = app.full_key();
        let id = key.get("/v1/failure-rules").await.ok()["failure_rules"][0]["id"].clone();
        let path = format!("/v1/failure-rules/{}", id.as_str().unwrap());
        app.set_plan(Plan::Starter).await;
        let reply = key.get("/v1/failure-rules").await;
        reply.is(402, "plan_upgrade_required");
        assert_eq!(reply.json()["required_plan"], "pro");
        key.get(&path).await.is(402, "plan_upgrade_required");
        patch(&key, &path, &json!({"enabled": false})).await.is(402, "plan_upgrade_required");
        app.session(Role::Member).delete(&path).await.is(403, "forbidden_role");
        assert_eq!(key.delete(&path).await.status, 204);
        key.delete(&path).await.is(404, "not_found");
    }

    async fn changes_of_rules_are_audited(app: TestApp) {
        let key = app.full_key();
        let id = rule(app, json!({})).await;
        let path = format!("/v1/failure-rules/{id}");
        patch(&key, &path, &json!({"enabled": false})).await.ok();
        key.delete(&path).await.ok();
        for action in ["create", "update", "delete"] {
            let log = key.get(&format!("/v1/audit-log?action=failure_rule.{action}")).await.ok();
            let records = log["audit_log"].as_array().unwrap();
            assert_eq!((records.len(), &records[0]["target"]["id"], &records[0]["result"]), (1, &json!(id), &json!("ok")), "{action}");
        }
    }

    /// Another process applies a change within a second.
    async fn rule_of_another_process_is_used(app: TestApp) {
        subscribe(app, app.tenant).await;
        without_rules(app).await;
        let second = app.beside().await;
        fail(&second, TIMEOUT_MESSAGE).await;
        assert_eq!(events(app).await.len(), 0);
        rule(app, json!({})).await;
        tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
        fail(&second, TIMEOUT_MESSAGE).await;
        assert_eq!(events(app).await.len(), 1);
        second.stop().await;
    }
}

/// Tenants of an older version get the rule by the migration.
#[tokio::test]
async fn migration_adds_the_default_rule_to_existing_tenants() {
    for database in [On::Sqlite, On::Postgres] {
        let app = TestApp::on(database).await;
        let db = &app.app.db.write;
        for table in [
            "failure",
            "failure_cluster",
            "failure_clustering",
            "failure_trend",
            "failure_rule",
            "failure_rule_match",
        ] {
            db.execute_unprepared(&format!("DROP TABLE {table}")).await.unwrap();
        }
        db.execute_unprepared("DELETE FROM seaql_migrations WHERE version = 'm0014_failures'").await.unwrap();
        app.app.db.migrate().await.unwrap();
        let rules = app.full_key().get("/v1/failure-rules").await.ok();
        let rule = &rules["failure_rules"][0];
        assert_eq!(rules["failure_rules"].as_array().unwrap().len(), 1);
        assert_eq!(
            (&rule["name"], &rule["failure_types"], &rule["min_count"], &rule["enabled"]),
            (
                &json!("Any failure"),
                &json!(["timeout", "rate_limit", "invalid_response", "context_length"]),
                &json!(1),
                &json!(true)
            )
        );
        app.stop().await;
    }
}
