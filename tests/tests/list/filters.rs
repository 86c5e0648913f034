//! Every filter, alone and combined, compared with the model.

use std::collections::BTreeMap;

use serde_json::json;
use tests::{Caller, TestApp, app::TEST_START_MICROS, on_both_databases};
use uuid::Uuid;

use super::model::{Condition, Row, expected, in_list_order, page, pages, store};

/// Compares lists with all kinds of conditions, alone and combined, with the rows of the model.
pub async fn compare_lists(
    key: &Caller,
    rows: &[Row],
    project_ids: &BTreeMap<&str, Uuid>,
    rng: &mut fastrand::Rng,
) {
    // Each kind of condition is tested alone several times, and then in combinations.
    let alone = (0..Condition::KIND_COUNT * 6).map(|i| vec![i % Condition::KIND_COUNT]);
    let mixed: Vec<Vec<usize>> = (0..150)
        .map(|_| {
            let mut kinds: Vec<_> = (0..Condition::KIND_COUNT).collect();
            rng.shuffle(&mut kinds);
            kinds.truncate(rng.usize(2..5));
            kinds
        })
        .collect();
    let mut selected = 0;
    for kinds in [vec![]].into_iter().chain(alone).chain(mixed) {
        let mut conditions: Vec<_> = kinds.iter().map(|kind| Condition::random(rng, rows, *kind)).collect();
        drop_contradictions(&mut conditions);
        let parameters: Vec<_> = conditions.iter().flat_map(|it| it.parameters(project_ids)).collect();
        let limit = [7, 20, 200][rng.usize(..3)];
        let (listed, wanted) = (pages(key, &parameters, limit).await, expected(rows, &conditions));
        assert_eq!(listed, wanted, "{conditions:?}");
        selected += wanted.len();
    }
    assert!(selected > 3_000, "the conditions select too few traces: {selected}");
}

/// Returns the ids of the projects by name.
pub async fn project_ids(app: &TestApp) -> BTreeMap<&'static str, Uuid> {
    let list = app.full_key().get("/v1/projects").await.ok();
    let rows = list["projects"].as_array().unwrap();
    let id = |name| Some(rows.iter().find(|it| it["name"] == name)?["id"].as_str()?.parse().unwrap());
    ["default", "second"].into_iter().filter_map(|it| Some((it, id(it)?))).collect()
}

on_both_databases! {
    async fn filters_select_the_traces_of_the_model(app: TestApp) {
        let mut rng = fastrand::Rng::with_seed(20_260_615);
        let key = app.full_key();
        let items: Vec<_> = (0..300).map(|_| Row::random(&mut rng)).collect();
        let spans: Vec<_> = (0..20).map(|_| Row::random_otlp(&mut rng)).collect();
        store(&key, &items, &spans).await;
        // No response contains the traces of another tenant.
        let (_, other) = app.other_tenant(api::Plan::Enterprise).await;
        let theirs: Vec<_> = (0..50).map(|_| Row::random(&mut rng)).collect();
        store(&other, &theirs, &[]).await;

        let rows = in_list_order(&key, items.into_iter().chain(spans).collect()).await;
        let project_ids = project_ids(app).await;
        compare_lists(&key, &rows, &project_ids, &mut rng).await;
        // For another tenant, the ids of these projects select nothing.
        for id in project_ids.values() {
            assert_eq!(page(&other, &[("project_id", id.to_string())]).await, (Vec::new(), None));
        }
    }

    async fn tag_filter_accepts_both_notations(app: TestApp) {
        let key = app.full_key();
        let tagged = [
            ("both", json!({"env": "prod", "vip": ""})),
            ("dev", json!({"env": "dev"})),
            ("word", json!({"vip": ""})),
            ("colon", json!({"url": "http://x:1", "a:b": "c"})),
            ("typed", json!({"n": 1, "ok": true, "none": null})),
            ("lookalike", json!({"x\"env": "prod", "y": "\"env\":\"prod\""})),
        ];
        for (name, tags) in tagged {
            key.post("/v1/ingest", &json!({"name": name, "tags": tags})).await.ok();
        }
        let cases = [
            ("tag=env", vec!["both", "dev"]),
            ("tag=env:prod", vec!["both"]),
            ("tag=env:", vec![]),
            ("tag=vip", vec!["both", "word"]),
            ("tag=vip:", vec!["both", "word"]),
            ("tag=env&tag=vip", vec!["both"]),
            ("tag=env:prod&tag=env:dev", vec![]),
            ("tag=vip&session_id=none", vec![]),
            ("tag=vip&tag=env&tag_key=env&tag_value=prod", vec!["both"]),
            ("tag_key=env&tag_value=dev", vec!["dev"]),
            ("tag_key=vip&tag_value=", vec!["both", "word"]),
            ("tag_key=env&tag_value=", vec![]),
            ("tag_key=a:b&tag_value=c", vec!["colon"]),
            ("tag=a:b:c", vec![]),
            ("tag=url:http://x:1", vec!["colon"]),
            ("tag=n:1&tag=ok:true", vec!["typed"]),
            ("tag=none", vec![]),
            ("tag=ENV", vec![]),
            ("tag=e", vec![]),
        ];
        for (query, wanted) in cases {
            let list = key.get(&format!("/v1/traces?{query}")).await.ok();
            let mut names: Vec<_> = list["traces"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
            names.sort_unstable();
            assert_eq!(names, wanted, "{query}");
        }
        for query in ["tag_key=env", "tag_value=prod", "tag_value=", "tag_key=&tag_value=x", "tag_key=env&tag=env:prod"] {
            key.get(&format!("/v1/traces?{query}")).await.is(400, "error.tags_filter_incomplete");
            key.get(&format!("/v1/traces/stream?{query}")).await.is(400, "error.tags_filter_incomplete");
        }
        key.get("/v1/traces?tag=").await.is(400, "invalid_query");
        let many = vec!["tag=env"; 20].join("&");
        assert_eq!(key.get(&format!("/v1/traces?{many}")).await.ok()["traces"].as_array().unwrap().len(), 2);
        let pairs = vec!["tag=env:prod"; 20].join("&");
        assert_eq!(key.get(&format!("/v1/traces?{pairs}&session_id=x")).await.ok()["traces"], json!([]));
        key.get(&format!("/v1/traces?{many}&tag=vip")).await.is(400, "invalid_query");
    }

    async fn filter_bounds_are_inclusive(app: TestApp) {
        let key = app.full_key();
        let item = json!({"started_at": "2026-06-15T10:00:00.000001Z", "latency_ms": 250, "cost": 0.3,
            "spans": [{"name": "s", "prompt_tokens": 60, "completion_tokens": 40}]});
        key.post("/v1/ingest", &item).await.ok();
        key.post("/v1/ingest", &json!({"started_at": "2026-06-15T10:00:00Z", "name": "nothing known"})).await.ok();
        let cases = [
            ("from=2026-06-15T10:00:00.000001Z", 1), ("from=2026-06-15T10:00:00Z", 2), ("from=2026-06-15T10:00:00.000002Z", 0),
            ("to=2026-06-15T10:00:00.000001Z", 2), ("to=2026-06-15T10:00:00Z", 1), ("to=2026-06-15T09:59:59.999999Z", 0),
            ("from=2026-06-15T12:00:00%2B02:00&to=2026-06-15T12:00:00%2B02:00", 1),
            ("from=2026-06-15T12:00:00+02:00&to=2026-06-15T12:00:00+02:00", 1),
            ("from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59.999999Z", 2),
            ("latency_min=250", 1), ("latency_min=251", 0), ("latency_max=250", 1), ("latency_max=249", 0), ("latency_min=0", 1),
            ("latency_min=250&latency_max=250", 1), ("latency_max=9223372036854775807", 1),
            // A trace without tokens counts as 0; any other minimum excludes it.
            ("token_count_min=100", 1), ("token_count_min=101", 0), ("token_count_max=100", 2), ("token_count_max=99", 1),
            ("token_count_min=0", 2), ("token_count_min=1", 1), ("token_count_max=0", 1), ("token_count_min=0&token_count_max=0", 1),
            ("min_cost=0.3", 1), ("min_cost=0.300000000001", 0), ("max_cost=0.3", 1), ("max_cost=0.299999999999", 0), ("min_cost=0", 1),
            ("min_cost=3e-1&max_cost=0.30", 1), ("max_cost=1000000", 1),
        ];
        for (query, count) in cases {
            let list = key.get(&format!("/v1/traces?{query}")).await.ok();
            assert_eq!(list["traces"].as_array().unwrap().len(), count, "{query}");
        }
        let reversed = [
            "from=2026-06-15T10:00:01Z&to=2026-06-15T10:00:00Z", "latency_min=2&latency_max=1",
            "token_count_min=2&token_count_max=1", "min_cost=0.2&max_cost=0.1",
        ];
        for query in reversed {
            key.get(&format!("/v1/traces?{query}")).await.is(400, "invalid_query");
        }
    }

    /// A page searches a bounded number of traces for words; the next page continues.
    async fn word_search_continues_over_pages(app: TestApp) {
        let key = app.full_key();
        let at = |i: i64| api::Timestamp::from_micros(TEST_START_MICROS - i * 1_000_000);
        for block in 0..3 {
            let items: Vec<_> = (0..900)
                .map(|i| block * 900 + i)
                .map(|i| json!({"started_at": at(i), "name": if i == 2_600 { "the NEEDLE" } else { "hay" }}))
                .collect();
            key.post("/v1/ingest/batch", &json!({"traces": items})).await.ok();
        }
        let (found, next) = page(&key, &[("q", "needle".to_owned())]).await;
        assert!(found.is_empty());
        let next = next.expect("the first page completes the search");
        let (found, next) = page(&key, &[("q", "needle".to_owned()), ("cursor", next)]).await;
        assert_eq!((found.len(), next), (1, None));
        let from = at(2_650).to_string();
        let (found, next) = page(&key, &[("q", "needle".to_owned()), ("to", at(2_500).to_string()), ("from", from)]).await;
        assert_eq!((found.len(), next), (1, None), "a search limited to the range");
    }
}

/// Keeps one condition of each kind, because a query has one value per parameter, and lower bounds below
/// upper ones.
fn drop_contradictions(conditions: &mut Vec<Condition>) {
    let parts = |it: &Condition| matches!(it, Condition::TagParts(..));
    if conditions.iter().filter(|it| parts(it)).count() > 1 {
        let first = conditions.iter().position(parts).unwrap();
        conditions.remove(first);
    }
    let from = conditions.iter().find_map(|it| if let Condition::From(at) = it { Some(*at) } else { None });
    if let Some(from) = from {
        conditions.retain(|it| !matches!(it, Condition::To(to) if *to < from));
    }
}
