//! `GET /v1/anomalies`.

use api::{Plan, Role};
use entities::anomaly;
use serde_json::Value;
use tests::{Caller, TestApp, app::TEST_START_MICROS, on_both_databases};
use uuid::Uuid;

const ANOMALIES_PATH: &str = "/v1/anomalies";
const MINUTE: i64 = 60_000_000;

/// Stores an anomaly that was detected some minutes after the start of the test.
async fn store_anomaly(app: &TestApp, tenant: Uuid, project: Uuid, metric: &str, minute: i64) -> Uuid {
    let row = anomaly::Model {
        tenant_id: tenant,
        id: store::new_id(),
        project_id: project,
        metric: metric.to_owned(),
        direction: "up".to_owned(),
        severity: if minute % 2 == 0 { "low" } else { "high" }.to_owned(),
        status: "open".to_owned(),
        close_reason: None,
        observed: 0.5,
        expected: 0.01,
        expected_low: 0.0,
        expected_high: 0.1,
        score: 9.5,
        window_start: TEST_START_MICROS - MINUTE + minute,
        window_end: TEST_START_MICROS,
        created_at: TEST_START_MICROS + minute * MINUTE,
        updated_at: TEST_START_MICROS + minute * MINUTE,
    };
    let (stored, is_new) = store::anomalies::open(&app.app.db.write, row).await.unwrap();
    assert!(is_new);
    stored.id
}

fn ids(list: &Value) -> Vec<Uuid> {
    list["anomalies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap().parse().unwrap())
        .collect()
}

async fn all_pages(key: &Caller, query: &str) -> Vec<Uuid> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let list = key.get(&format!("{ANOMALIES_PATH}?{query}{cursor}")).await.ok();
        found.extend(ids(&list));
        assert_eq!(list["has_more"], Value::from(list["next_cursor"].is_string()));
        match list["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

on_both_databases! {
    async fn list_is_paged_newest_first(app: TestApp) {
        let key = app.full_key();
        let empty = key.get(ANOMALIES_PATH).await.ok();
        assert_eq!((ids(&empty).len(), &empty["has_more"], &empty["next_cursor"]), (0, &Value::from(false), &Value::Null));
        let mut stored = Vec::new();
        for minute in 0..7 {
            stored.push(store_anomaly(app, app.tenant, app.project, "cost", minute).await);
        }
        // Two anomalies that were detected at the same time.
        stored.push(store_anomaly(app, app.tenant, app.project, "tokens", 6).await);
        stored.reverse();
        for limit in [1, 3, 8, 200] {
            assert_eq!(all_pages(&key, &format!("limit={limit}")).await, stored, "limit {limit}");
        }
        assert_eq!(ids(&key.get(ANOMALIES_PATH).await.ok()), stored);
        // The former parameter is ignored, whatever its value.
        for offset in ["3", "-1", "x", ""] {
            assert_eq!(ids(&key.get(&format!("{ANOMALIES_PATH}?offset={offset}")).await.ok()), stored);
        }
        for limit in ["0", "201", "-1", "x", ""] {
            key.get(&format!("{ANOMALIES_PATH}?limit={limit}")).await.is(400, "invalid_query");
        }
    }

    async fn both_ends_of_a_period_are_inclusive(app: TestApp) {
        let key = app.full_key();
        let mut stored = Vec::new();
        for minute in 0..5 {
            stored.push(store_anomaly(app, app.tenant, app.project, "cost", minute).await);
        }
        let at = |minute: i64| api::Timestamp::from_micros(TEST_START_MICROS + minute * MINUTE).to_string();
        let of = |from: i64, to: i64| format!("from={}&to={}", at(from), at(to));
        for (from, to) in [(1, 3), (2, 2), (0, 4), (-5, 0), (4, 9)] {
            let mut expected: Vec<Uuid> =
                (0..5_i64).filter(|it| (from..=to).contains(it)).map(|it| stored[it as usize]).collect();
            expected.reverse();
            assert_eq!(all_pages(&key, &format!("limit=2&{}", of(from, to))).await, expected, "{from} to {to}");
        }
        key.get(&format!("{ANOMALIES_PATH}?{}", of(3, 2))).await.is(400, "invalid_query");
        key.get(&format!("{ANOMALIES_PATH}?from=yesterday")).await.is(400, "invalid_query");
    }

    async fn filters_select_matching_anomalies(app: TestApp) {
        let key = app.full_key();
        let other = Uuid::from_u128(9);
        let own = store_anomaly(app, app.tenant, app.project, "cost", 1).await;
        let elsewhere = store_anomaly(app, app.tenant, other, "error_rate", 2).await;
        let queries = [
            (format!("project_id={}", app.project), vec![own]),
            (format!("project_id={other}"), vec![elsewhere]),
            ("metric=cost".to_owned(), vec![own]),
            ("metric=".to_owned(), vec![]),
            ("severity=high".to_owned(), vec![own]),
            ("severity=low".to_owned(), vec![elsewhere]),
            ("severity=medium".to_owned(), vec![]),
            ("severity=low&metric=cost".to_owned(), vec![]),
        ];
        for (query, expected) in queries {
            assert_eq!(ids(&key.get(&format!("{ANOMALIES_PATH}?{query}")).await.ok()), expected, "{query}");
        }
        for query in ["project_id=x", "severity=", "severity=extreme"] {
            key.get(&format!("{ANOMALIES_PATH}?{query}")).await.is(400, "invalid_query");
        }
    }

    async fn anomalies_of_other_tenants_are_not_listed(app: TestApp) {
        let (other, theirs) = app.other_tenant(Plan::Starter).await;
        let own: Vec<Uuid> = vec![
            store_anomaly(app, app.tenant, app.project, "cost", 1).await,
            store_anomaly(app, app.tenant, app.project, "cost", 2).await,
        ];
        let foreign = store_anomaly(app, other, app.project, "cost", 1).await;
        let key = app.full_key();
        assert_eq!(ids(&theirs.get(ANOMALIES_PATH).await.ok()), [foreign]);
        assert_eq!(ids(&key.get(ANOMALIES_PATH).await.ok()), [own[1], own[0]]);
        let page = key.get(&format!("{ANOMALIES_PATH}?limit=1")).await.ok();
        let cursor = page["next_cursor"].as_str().unwrap();
        theirs.get(&format!("{ANOMALIES_PATH}?limit=1&cursor={cursor}")).await.is(400, "invalid_cursor");
        key.get(&format!("{ANOMALIES_PATH}?limit=1&metric=cost&cursor={cursor}")).await.is(400, "invalid_cursor");
        key.get(&format!("/v1/feedback?cursor={cursor}")).await.is(400, "invalid_cursor");
        assert_eq!(ids(&key.get(&format!("{ANOMALIES_PATH}?limit=1&cursor={cursor}")).await.ok()), [own[0]]);
    }

    async fn every_plan_and_reader_may_list(app: TestApp) {
        let id = store_anomaly(app, app.tenant, app.project, "cost", 1).await;
        let callers = [app.session(Role::Viewer), app.new_key(Role::Owner, &["query"]).await, app.full_key()];
        for plan in Plan::ALL {
            app.set_plan(*plan).await;
            for caller in &callers {
                assert_eq!(ids(&caller.get(ANOMALIES_PATH).await.ok()), [id], "{plan}");
            }
        }
        app.anonymous().get(ANOMALIES_PATH).await.is(401, "unauthorized");
    }
}
