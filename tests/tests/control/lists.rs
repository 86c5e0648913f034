//! Lists of actions: filters, cursors and invalid values.

use serde_json::{Value, json};

use crate::{scene::all, with_provider};

with_provider! {
    async fn list_is_filtered_by_every_field(scene: Scene) {
        let policy = scene.policy(json!({"require_approval": true})).await;
        let (one, other) = (scene.trace().await, scene.trace().await);
        let executed = scene.execute(&one, "retry", json!({})).await;
        scene.app.advance(10);
        let fallback = scene.execute(&other, "fallback_model", json!({"action_config": {"model": "gpt-4o-mini"}})).await;
        scene.app.advance(10);
        let waiting = scene.request(&one, "retry", json!({"policy_id": policy})).await.ok();
        let project = scene.app.project;
        for (query, expected) in [
            (String::new(), vec![&waiting, &fallback, &executed]),
            (format!("trace_id={one}"), vec![&waiting, &executed]),
            (format!("policy_id={policy}"), vec![&waiting]),
            (format!("project_id={project}&status=succeeded"), vec![&fallback, &executed]),
            ("project_id=0190a000-0000-7000-8000-000000000000".to_owned(), vec![]),
            ("action_type=fallback_model".to_owned(), vec![&fallback]),
            ("status=pending_approval".to_owned(), vec![&waiting]),
            (format!("status=pending_approval&trace_id={other}"), vec![]),
            (format!("status=pending_approval&project_id={project}&policy_id={policy}&action_type=retry"), vec![&waiting]),
            ("status=rejected".to_owned(), vec![]),
            ("from=2026-06-15T12:00:10Z".to_owned(), vec![&waiting, &fallback]),
            ("from=2026-06-15T12:00:10.000001Z".to_owned(), vec![&waiting]),
            ("to=2026-06-15T12:00:10Z".to_owned(), vec![&fallback, &executed]),
            ("from=2026-06-15T12:00:10Z&to=2026-06-15T12:00:10Z".to_owned(), vec![&fallback]),
            ("to=2026-06-15T12:00:09.999999Z".to_owned(), vec![&executed]),
        ] {
            let expected: Vec<&Value> = expected.iter().map(|it| &it["id"]).collect();
            assert_eq!(all(&scene.actions(&query).await, "id"), expected, "{query}");
        }
    }

    async fn pages_cover_all_actions_once(scene: Scene) {
        let trace = scene.trace().await;
        for n in 0..7 {
            scene.app.advance(i64::from(n % 2 == 0));
            scene.retry(&trace).await;
        }
        let expected: Vec<Value> = scene.actions("").await.iter().map(|it| it["id"].clone()).collect();
        for filter in [format!("trace_id={trace}"), String::new()] {
            let (mut found, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = scene.get(&format!("/v1/control/actions?limit=2&{filter}{cursor}")).await;
                found.extend(page["actions"].as_array().unwrap().iter().map(|it| it["id"].clone()));
                assert_eq!(page["has_more"], !page["next_cursor"].is_null());
                let Value::String(next) = &page["next_cursor"] else { break };
                scene.viewer().get(&format!("/v1/control/actions?status=failed&cursor={next}")).await.is(400, "invalid_cursor");
                scene.viewer().get(&format!("/v1/policies?cursor={next}")).await.is(400, "invalid_cursor");
                cursor = format!("&cursor={next}");
            }
            assert_eq!((found.len(), &found), (7, &expected));
        }
    }

    async fn invalid_filter_is_a_bad_request(scene: Scene) {
        for query in [
            "status=gone", "status=", "status=Queued", "action_type=none", "trace_id=x", "policy_id=1", "project_id=",
            "from=yesterday", "from=2026-06-15T12:00:01Z&to=2026-06-15T12:00:00Z", "limit=0", "limit=201", "limit=x",
        ] {
            scene.viewer().get(&format!("/v1/control/actions?{query}")).await.is(400, "invalid_query");
        }
        for cursor in ["x", "", "AAAA"] {
            scene.viewer().get(&format!("/v1/control/actions?cursor={cursor}")).await.is(400, "invalid_cursor");
        }
        scene.viewer().get("/v1/control/actions/no-uuid").await.is(400, "invalid_query");
        scene.viewer().get("/v1/control/actions/0190a000-0000-7000-8000-000000000000").await.is(404, "not_found");
    }

    async fn invalid_request_for_an_action_is_rejected(scene: Scene) {
        let trace = scene.trace().await;
        for (kind, config) in [
            ("escalate", json!({})), ("none", json!({})), ("fallback_model", json!({})), ("prompt_modification", json!({})),
            ("retry", json!({"model": "m"})), ("retry", json!({"temperature": -0.1})),
        ] {
            scene.request(&trace, kind, json!({"action_config": config})).await.is(422, "validation_failed");
        }
        for body in [json!({}), json!({"trace_id": trace}), json!({"trace_id": "x", "action_type": "retry"}), json!({"trace_id": trace, "action_type": "retry", "action_config": []})] {
            scene.member().post("/v1/control/actions", &body).await.is(400, "invalid_body");
        }
        scene.request("0190a000-0000-7000-8000-000000000000", "retry", json!({})).await.is(404, "not_found");
        assert_eq!(scene.actions("").await, Vec::<Value>::new());
    }
}
