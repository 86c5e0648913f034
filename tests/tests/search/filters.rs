//! Filters restrict the compared vectors and never lose a span that passes them.

use api::Plan;
use serde_json::{Value, json};
use store::vectors::{self, UnitVector};
use tests::{TestApp, app::TEST_START_MICROS, on_both_databases};
use uuid::Uuid;

use super::{distance, item, names, search, store, vector};

/// Adds vectors of an embedding model to all spans without one. Returns their number.
async fn embed(app: &TestApp, model: &str, random: &mut fastrand::Rng) -> usize {
    let list = app.full_key().get("/v1/traces?limit=200").await.ok();
    let traces: Vec<Uuid> = list["traces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap().parse().unwrap())
        .collect();
    let missing = vectors::missing(&app.app.db, app.tenant, &traces, 0, None, 1_000).await.unwrap();
    let rows: Vec<_> =
        missing.into_iter().map(|it| (it, UnitVector::of(&vector(random)[..384]).unwrap())).collect();
    let stored = vectors::insert(&app.app.db, app.tenant, model, &rows).await.unwrap();
    assert_eq!(
        vectors::insert(&app.app.db, app.tenant, "another", &rows).await.unwrap(),
        0,
        "existing vectors were replaced"
    );
    stored
}

on_both_databases! {
    async fn every_search_filter_selects_matching_spans(app: TestApp) {
        let mut random = fastrand::Rng::with_seed(3);
        let mut spans = Vec::new();
        for i in 0..40_i64 {
            let kind = ["llm", "tool", "retrieval", "other"][i as usize % 4];
            let start = api::Timestamp::from_micros(TEST_START_MICROS + i * 1_000_000);
            spans.push(json!({"name": format!("s{i}"), "type": kind, "model": (i % 3 == 0).then_some("m1"),
                "start_time": start, "embedding": vector(&mut random)}));
        }
        let elsewhere = json!({"project_name": "elsewhere", "spans": [
            {"name": "far", "embedding": vector(&mut random)}]});
        store(app, &[json!({"spans": spans}), elsewhere]).await;
        let question = vector(&mut random);
        let told = async |filter: Value| -> Vec<String> {
            let mut body = json!({"vector": question, "limit": 200});
            body.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
            let page = search(app, &body).await.ok();
            assert_eq!(page["searched"].as_u64().unwrap() as usize, names(&page).len(), "{filter}");
            let mut names = names(&page);
            names.sort();
            names
        };
        let expected = |is_meant: &dyn Fn(i64) -> bool| {
            let mut names: Vec<String> = (0..40).filter(|it| is_meant(*it)).map(|it| format!("s{it}")).collect();
            names.sort();
            names
        };
        let at = |i: i64| api::Timestamp::from_micros(TEST_START_MICROS + i * 1_000_000);
        let project = app.project;
        assert_eq!(told(json!({})).await.len(), 41);
        assert_eq!(told(json!({"project_id": project})).await, expected(&|_| true));
        assert_eq!(told(json!({"project_id": project, "type": "tool"})).await, expected(&|i| i % 4 == 1));
        assert_eq!(told(json!({"model": "m1"})).await, expected(&|i| i % 3 == 0));
        assert_eq!(told(json!({"from": at(10), "to": at(19), "project_id": project})).await, expected(&|i| (10..=19).contains(&i)));
        assert_eq!(told(json!({"from": at(5), "type": "llm", "model": "m1"})).await, expected(&|i| i >= 5 && i % 12 == 0));
        for nothing in [json!({"type": "no"}), json!({"model": "m"}), json!({"from": at(1_000_000)}), json!({"embedding_model": "no"})] {
            assert_eq!(told(nothing).await, [""; 0]);
        }
    }

    async fn embedding_model_filter_excludes_other_models(app: TestApp) {
        let mut random = fastrand::Rng::with_seed(4);
        store(app, &(0..5).map(|i| item(&format!("own{i}"), &vector(&mut random))).collect::<Vec<_>>()).await;
        let bare: Vec<Value> = (0..8).map(|i| json!({"id": format!("bare{i}"), "spans": [{"name": "bare", "input": "x"}]})).collect();
        store(app, &bare).await;
        let question = vector(&mut random);
        let counts = async |body: Value| {
            let page = search(app, &body).await.ok();
            (names(&page).len(), page["searched"].as_i64().unwrap(), page["not_searched"].as_i64().unwrap())
        };
        assert_eq!(counts(json!({"vector": question})).await, (5, 5, 0));
        assert_eq!(embed(app, "small", &mut random).await, 8);
        assert_eq!(counts(json!({"vector": question})).await, (13, 13, 0), "late vectors are missing");
        assert_eq!(counts(json!({"vector": question, "embedding_model": "small"})).await, (8, 8, 5));
        assert_eq!(counts(json!({"vector": question, "embedding_model": "small", "limit": 3})).await, (3, 8, 5));
        assert_eq!(counts(json!({"vector": question, "embedding_model": "large"})).await, (0, 0, 13));
    }

    async fn selective_filter_finds_all_matching_spans(app: TestApp) {
        let mut random = fastrand::Rng::with_seed(5);
        let mut meant = Vec::new();
        let mut items = Vec::new();
        for trace in 0..10 {
            let mut spans = Vec::new();
            for i in 0..100 {
                let (rare, vector) = (i % 100 == trace, vector(&mut random));
                let name = format!("{trace}-{i}");
                spans.push(json!({"name": name, "model": if rare { "rare" } else { "common" }, "embedding": vector}));
                if rare {
                    meant.push((name, vector));
                }
            }
            items.push(json!({"spans": spans}));
        }
        for item in items {
            store(app, &[item]).await;
        }
        for _ in 0..5 {
            let question = vector(&mut random);
            meant.sort_by(|a, b| distance(&question, &a.1).total_cmp(&distance(&question, &b.1)));
            let page = search(app, &json!({"vector": question, "model": "rare", "limit": 20})).await.ok();
            assert_eq!(names(&page), meant.iter().map(|it| it.0.clone()).collect::<Vec<_>>());
        }
    }

    async fn search_excludes_other_tenants_and_projects(app: TestApp) {
        let mut random = fastrand::Rng::with_seed(6);
        let one = vector(&mut random);
        store(app, &[item("mine", &one)]).await;
        let (_, other) = app.other_tenant(Plan::Enterprise).await;
        other.post("/v1/ingest", &item("theirs", &one)).await.ok();
        let projects = other.get("/v1/projects").await.ok();
        let theirs: Uuid = projects["projects"][0]["id"].as_str().unwrap().parse().unwrap();
        let found = search(app, &json!({"vector": one})).await.ok();
        assert_eq!(names(&found), ["mine"]);
        assert_eq!(found["searched"], 1);
        for project in [theirs, Uuid::nil()] {
            search(app, &json!({"vector": one, "project_id": project})).await.is(404, "not_found");
        }
    }
}
