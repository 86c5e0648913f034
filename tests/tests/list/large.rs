//! Large texts: pages are bounded by the bytes that are sent, and every trace can be read.

use serde_json::{Value, json};
use tests::{Caller, on_both_databases};

/// Limits a page with more than one trace, in bytes.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Returns the names of the traces on all pages, each with the size of its page.
async fn pages(caller: &Caller, path: &str) -> Vec<(Vec<String>, usize)> {
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let reply = caller.get(&format!("{path}{cursor}")).await;
        let body = reply.ok();
        let names =
            body["traces"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned());
        pages.push((names.collect(), reply.body.len()));
        let Some(next) = body["next_cursor"].as_str() else { return pages };
        cursor = format!("&cursor={next}");
    }
}

async fn store(caller: &Caller, count: usize, input: &str) {
    for n in 0..count {
        caller.post("/v1/ingest", &json!({"name": format!("t{n}"), "input": input})).await.ok();
    }
}

on_both_databases! {
    async fn previews_of_large_texts_fill_a_page(app: TestApp) {
        let key = app.full_key();
        store(&key, 12, &"x".repeat(1_000_000)).await;
        let previews = pages(&key, "/v1/traces?limit=200&preview=true").await;
        assert_eq!(previews.len(), 1);
        assert_eq!(previews[0].0.len(), 12);
        let whole = pages(&key, "/v1/traces?limit=200").await;
        assert_eq!(whole.iter().map(|it| it.0.len()).collect::<Vec<_>>(), [8, 4]);
    }

    async fn page_size_is_bounded_after_escaping(app: TestApp) {
        let key = app.full_key();
        // Each text takes 1.2 MB as JSON.
        store(&key, 10, &"\u{1}".repeat(200_000)).await;
        let pages = pages(&key, "/v1/traces?limit=200").await;
        assert!(pages.iter().all(|it| it.1 <= MAX_PAGE_BYTES), "{pages:?}");
        assert_eq!(pages.iter().map(|it| it.0.len()).collect::<Vec<_>>(), [6, 4]);
    }

    async fn trace_larger_than_a_page_can_be_read(app: TestApp) {
        let key = app.full_key();
        // The text takes 12 MB as JSON and has a character on every chunk boundary.
        let text = format!("{}ä", "\u{1}".repeat(2_000_000));
        let metadata = json!({"long": "y".repeat(300_000)});
        let span = json!({"name": "s", "output": text, "metadata": metadata});
        let item = json!({"name": "large", "input": text, "metadata": metadata, "spans": [span]});
        key.post("/v1/ingest", &item).await.ok();
        key.post("/v1/ingest", &json!({"name": "small"})).await.ok();
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = key.get(&format!("/v1/traces?limit=200{cursor}")).await.ok();
            found.extend(page["traces"].as_array().unwrap().clone());
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        let large = found.iter().find(|it| it["name"] == "large").unwrap();
        assert!(found.len() == 2 && large["input"] == *text && large["metadata"] == metadata);
        let id = large["id"].as_str().unwrap();
        let detail = key.get(&format!("/v1/traces/{id}")).await.ok();
        assert!(detail["input"] == *text && detail["spans"][0]["output"] == *text);
        assert!(detail["spans"][0]["metadata"] == metadata && detail["events"] == json!([]));
        let spans = key.get(&format!("/v1/traces/{id}/spans")).await.ok();
        assert!(spans["spans"] == detail["spans"] && spans["has_more"] == false);
        let export = key.get("/v1/traces/export?format=jsonl&name=large").await;
        assert!(serde_json::from_slice::<Value>(&export.body).unwrap()["input"] == *text);
        let export = key.get("/v1/traces/export?format=otlp&name=large").await;
        assert!(serde_json::from_slice::<Value>(&export.body).unwrap()["resourceSpans"].is_array());
    }

    async fn many_short_span_texts_of_one_request_are_all_shown(app: TestApp) {
        let key = app.full_key();
        // The texts fill blocks that exceed the size of a small block only with the lengths of the texts.
        let text = |n: usize| format!("{n:04} {}", "short text ".repeat(10));
        let spans: Vec<_> = (0..1_000).map(|n| json!({"name": format!("s{n:04}"), "input": text(n)})).collect();
        let path = "/v1/traces/0190b0b0-0000-7000-8000-000000000002";
        let stored = json!({"id": "0190b0b0-0000-7000-8000-000000000002", "spans": spans});
        key.post("/v1/ingest", &stored).await.ok();
        let check = |spans: &Value| {
            let spans = spans.as_array().unwrap();
            for span in spans {
                let n: usize = span["name"].as_str().unwrap()[1..].parse().unwrap();
                assert_eq!(span["input"], text(n), "{span}");
            }
            spans.len()
        };
        assert!(check(&key.get(path).await.ok()["spans"]) > 100);
        let (mut shown, mut cursor) = (0, String::new());
        loop {
            let page = key.get(&format!("{path}/spans?limit=200{cursor}")).await.ok();
            shown += check(&page["spans"]);
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(shown, 1_000);
        let export = key.get("/v1/traces/export?format=jsonl").await;
        assert_eq!(check(&serde_json::from_slice::<Value>(&export.body).unwrap()["spans"]), 1_000);
    }

    async fn spans_beyond_a_page_are_reached_by_cursor(app: TestApp) {
        let key = app.full_key();
        // Each text takes 600 kB as JSON.
        let spans: Vec<_> =
            (0..30).map(|n| json!({"name": format!("s{n:02}"), "output": "\u{1}".repeat(100_000)})).collect();
        key.post("/v1/ingest", &json!({"id": "0190b0b0-0000-7000-8000-000000000001", "spans": spans})).await.ok();
        let path = "/v1/traces/0190b0b0-0000-7000-8000-000000000001";
        let reply = key.get(path).await;
        let detail = reply.ok();
        assert!(reply.body.len() <= MAX_PAGE_BYTES && detail["span_count"] == 30);
        let name = |it: &Value| it["name"].as_str().unwrap().to_owned();
        let mut names: Vec<String> = detail["spans"].as_array().unwrap().iter().map(name).collect();
        assert!((5..30).contains(&names.len()), "{}", names.len());
        let mut next = detail["spans_next_cursor"].as_str().map(str::to_owned);
        while let Some(cursor) = next {
            let reply = key.get(&format!("{path}/spans?limit=200&cursor={cursor}")).await;
            assert!(reply.body.len() <= MAX_PAGE_BYTES);
            let page = reply.ok();
            names.extend(page["spans"].as_array().unwrap().iter().map(name));
            next = page["next_cursor"].as_str().map(str::to_owned);
        }
        names.sort_unstable();
        assert_eq!(names, (0..30).map(|n| format!("s{n:02}")).collect::<Vec<_>>());
    }
}
