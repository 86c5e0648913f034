//! Pages: order, size, and changes between two pages.

use serde_json::{Value, json};
use tests::{app::TEST_START_MICROS, on_both_databases};
use uuid::Uuid;

use super::model::{Row, expected, in_list_order, page, pages, store};

/// Returns a row that starts `seconds` before the start of the test.
fn row(rng: &mut fastrand::Rng, seconds: i64) -> Row {
    Row {
        id: Uuid::from_u128(rng.u128(..)),
        started_at: TEST_START_MICROS - seconds * 1_000_000,
        ..Row::default()
    }
}

on_both_databases! {
    async fn every_limit_gives_the_same_list(app: TestApp) {
        let mut rng = fastrand::Rng::with_seed(1);
        let key = app.full_key();
        // Ten rows per second, so that the arrival decides the order.
        let rows: Vec<_> = (0..210).map(|i| row(&mut rng, i / 10)).collect();
        store(&key, &rows, &[]).await;
        let rows = in_list_order(&key, rows).await;
        let wanted = expected(&rows, &[]);
        for limit in [1, 2, 10, 50, 70, 199] {
            assert_eq!(pages(&key, &[], limit).await, wanted, "{limit}");
        }
        let (first, next) = page(&key, &[]).await;
        assert_eq!(first, wanted[..50], "the default page size is 50");
        assert!(next.is_some());
        // Exactly as many rows as the limit: there is no empty next page.
        let (all, next) = page(&key, &[("limit", "200".to_owned()), ("to", api::Timestamp::from_micros(TEST_START_MICROS - 1_000_000).to_string())]).await;
        assert_eq!((all.len(), next), (200, None));
    }

    async fn rows_stored_between_pages_hide_no_others(app: TestApp) {
        let mut rng = fastrand::Rng::with_seed(2);
        let key = app.full_key();
        let rows: Vec<_> = (0..60).map(|i| row(&mut rng, i)).collect();
        store(&key, &rows, &[]).await;
        let (mut listed, mut parameters) = (Vec::new(), vec![("limit", "7".to_owned())]);
        loop {
            let (ids, next) = page(&key, &parameters).await;
            listed.extend(ids);
            // The new rows are newer than all others, among the listed ones, at the cursor, among the
            // following ones, and older than all others.
            let place = listed.len() as i64 - 1;
            let arriving: Vec<_> = [-5, place / 2, place, place + 3, 1_000].map(|it| row(&mut rng, it)).to_vec();
            store(&key, &arriving, &[]).await;
            let Some(next) = next else { break };
            parameters.truncate(1);
            parameters.push(("cursor", next));
            if listed.len() > 500 {
                panic!("the list does not end");
            }
        }
        let mut unique = listed.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), listed.len(), "a row is listed twice");
        let of_the_first: Vec<_> = listed.into_iter().filter(|id| rows.iter().any(|it| it.id == *id)).collect();
        assert_eq!(of_the_first, expected(&rows, &[]));
    }

    async fn previews_are_truncated_by_characters(app: TestApp) {
        let key = app.full_key();
        let long = "\u{e4}\u{1F600}".repeat(2_000);
        let exact = "x".repeat(2_048);
        let made = key.post("/v1/ingest", &json!({"input": long, "output": exact, "error": long})).await.ok();
        let cut = &key.get("/v1/traces?preview=true").await.ok()["traces"][0];
        assert_eq!(cut["input"], "\u{e4}\u{1F600}".repeat(1_024));
        assert_eq!((cut["output"].as_str(), cut["error"].as_str()), (Some(exact.as_str()), Some(long.as_str())));
        for path in ["/v1/traces", "/v1/traces?preview=false"] {
            assert_eq!(key.get(path).await.ok()["traces"][0]["input"], long, "{path}");
        }
        key.get("/v1/traces?preview=").await.is(400, "invalid_query");
        let detail = key.get(&format!("/v1/traces/{}", made["id"].as_str().unwrap())).await.ok();
        assert_eq!(detail["input"], long);
    }

    async fn page_of_large_texts_is_shortened(app: TestApp) {
        let key = app.full_key();
        for i in 0..6 {
            let text = char::from(b'a' + i).to_string().repeat(3 << 20);
            key.post("/v1/ingest", &json!({"name": format!("t{i}"), "input": text})).await.ok();
            app.advance(1);
        }
        let (mut names, mut cursor, mut sizes) = (Vec::new(), String::new(), Vec::new());
        loop {
            let body = key.get(&format!("/v1/traces?limit=50{cursor}")).await.ok();
            let traces = body["traces"].as_array().unwrap();
            sizes.push(traces.len());
            names.extend(traces.iter().map(|it| it["name"].as_str().unwrap().to_owned()));
            match &body["next_cursor"] {
                Value::String(next) => cursor = format!("&cursor={next}"),
                _ => break,
            }
        }
        assert_eq!(names, ["t5", "t4", "t3", "t2", "t1", "t0"]);
        assert_eq!(sizes, [2, 2, 2], "a third trace would exceed 8 MiB");
    }

    async fn spans_of_a_trace_are_paged(app: TestApp) {
        let key = app.full_key();
        let spans: Vec<_> = (0..2_300)
            .map(|i| json!({"id": format!("s{i}"), "name": format!("n{i}"), "start_time": api::Timestamp::from_micros(TEST_START_MICROS + i64::from(i % 700))}))
            .collect();
        let made = key.post("/v1/ingest", &json!({"spans": spans})).await.ok();
        assert_eq!(made["span_count"], 2_300);
        let path = format!("/v1/traces/{}", made["id"].as_str().unwrap());
        let detail = key.get(&path).await.ok();
        let mut rows = detail["spans"].as_array().unwrap().clone();
        assert_eq!(rows.len(), 2_000);
        let mut next = detail["spans_next_cursor"].clone();
        while let Value::String(cursor) = next {
            let page = key.get(&format!("{path}/spans?limit=150&cursor={cursor}")).await.ok();
            rows.extend(page["spans"].as_array().unwrap().iter().cloned());
            assert_eq!(page["has_more"], page["next_cursor"].is_string());
            next = page["next_cursor"].clone();
        }
        assert_eq!(rows.len(), 2_300);
        let order: Vec<_> = rows.iter().map(|it| (it["start_time"].as_str().unwrap(), it["id"].as_str().unwrap())).collect();
        assert!(order.is_sorted_by(|a, b| a < b), "not sorted by start and ID, or listed twice");
        let first = key.get(&format!("{path}/spans")).await.ok();
        assert_eq!(first["spans"].as_array().unwrap()[..], rows[..50]);
    }
}
