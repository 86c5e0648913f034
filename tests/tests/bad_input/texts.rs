//! Texts: NUL, surrogates, bytes that are not UTF-8, nesting and size.

use serde_json::{Value, json};
use tests::on_both_databases;

use super::{NoJson, NotAllowed, Stored, WrongShape, check_all, check_health};

/// Returns `text` inside `n` arrays.
fn nested(n: usize, text: &str) -> String {
    format!("{}{text}{}", "[".repeat(n), "]".repeat(n))
}

/// Returns a text of four-byte characters that no compression shortens.
fn incompressible(seed: u64, length: usize) -> String {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| char::from_u32(rng.u32(0x20000..0x2A6D0)).unwrap()).collect()
}

on_both_databases! {
    async fn nul_is_replaced_everywhere(app: TestApp) {
        let key = app.full_key();
        let (nul, shown) = ("a\u{0}b", "a\u{fffd}b");
        let item = json!({
            "id": nul, "external_id": nul, "session_id": nul, "user_id": nul, "name": nul, "input": nul, "output": nul,
            "model": nul, "error": nul, "tags": {nul: nul}, "metadata": {nul: [nul, {nul: nul}]}, "project_name": nul,
            "spans": [
                {"id": nul, "name": nul, "type": nul, "input": nul, "output": nul, "model": nul, "error": nul, "metadata": {nul: nul}},
                {"name": "child", "parent_span_id": nul},
            ],
            "events": [{"id": nul, "span_id": nul, "message": nul, "level": nul, "metadata": {nul: nul}}],
        });
        let id = key.post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned();
        let trace = key.get(&format!("/v1/traces/{id}")).await.ok();
        assert!(!trace.to_string().contains("\\u0000"), "{trace}");
        for field in ["external_id", "session_id", "user_id", "name", "input", "output", "model", "error"] {
            assert_eq!(trace[field], shown, "{field}");
        }
        assert_eq!(trace["tag_map"], json!({shown: shown}));
        assert_eq!(trace["metadata"], json!({shown: [shown, {shown: shown}]}));
        let spans = trace["spans"].as_array().unwrap();
        let span = spans.iter().find(|it| it["name"] == shown).unwrap();
        for field in ["name", "type", "input", "output", "model", "error"] {
            assert_eq!(span[field], shown, "{field}");
        }
        assert_eq!(span["metadata"], json!({shown: shown}));
        let child = spans.iter().find(|it| it["name"] == "child").unwrap();
        assert_eq!(child["parent_span_id"], span["id"]);
        let event = &trace["events"][0];
        assert_eq!((&event["message"], &event["level"], &event["span_id"]), (&json!(shown), &json!(shown), &span["id"]));
        key.post("/v1/ingest", &item).await.is(409, "conflict");
        check_health(app).await;
    }

    async fn lone_surrogate_or_invalid_utf8_is_rejected(app: TestApp) {
        let mut cases = Vec::new();
        for lone in [r"\ud800", r"\udfff", r"\ud800x", r"\ud800\ud800", r"\udc00\ud800", r"\uD83D"] {
            for field in ["id", "external_id", "session_id", "user_id", "name", "input", "output", "model", "error", "project_name", "started_at"] {
                cases.push((format!(r#"{{"{field}":"{lone}"}}"#), NoJson));
            }
            cases.push((format!(r#"{{"tags":{{"{lone}":"x"}}}}"#), NoJson));
            cases.push((format!(r#"{{"tags":{{"x":"{lone}"}}}}"#), NoJson));
            cases.push((format!(r#"{{"spans":[{{"name":"{lone}"}}]}}"#), NoJson));
            cases.push((format!(r#"{{"events":[{{"message":"{lone}"}}]}}"#), NoJson));
            // Metadata is stored as text and parsed separately.
            cases.push((format!(r#"{{"metadata":{{"k":"{lone}"}}}}"#), WrongShape));
            cases.push((format!(r#"{{"metadata":{{"{lone}":1}}}}"#), WrongShape));
            cases.push((format!(r#"{{"spans":[{{"name":"s","metadata":{{"k":["{lone}"]}}}}]}}"#), WrongShape));
            cases.push((format!(r#"{{"events":[{{"message":"m","metadata":{{"k":"{lone}"}}}}]}}"#), WrongShape));
        }
        cases.push((r#"{"name":"\ud83d\ude00","metadata":{"k":"\ud83d\ude00"}}"#.to_owned(), Stored));
        for broken in [r#"{"name":"\x"}"#, r#"{"name":"\u12"}"#, r#"{"name":"\u12G4"}"#, "{\"name\":\"a\nb\"}", "{\"name\":\"\u{1}\"}", r#"{"name":"x}"#] {
            cases.push((broken.to_owned(), NoJson));
        }
        check_all(app, cases).await;

        let key = app.full_key();
        for bytes in [&b"\xff"[..], b"\xc3\x28", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xc0\x80", b"\xe2\x82"] {
            for (before, after) in [(&b"{\"name\":\""[..], &b"\"}"[..]), (b"{\"metadata\":{\"k\":\"", b"\"}}"), (b"{\"tags\":{\"", b"\":1}}"), (b"", b"{}")] {
                let reply = key.post_bytes("/v1/ingest", "application/json", [before, bytes, after].concat()).await;
                assert!(reply.status == 400 && reply.code().is_some(), "{bytes:x?}: {} {}", reply.status, reply.text());
            }
        }
        check_health(app).await;
    }

    async fn deeply_nested_json_is_rejected(app: TestApp) {
        let metadata = |n: usize| format!(r#"{{"metadata":{{"k":{}}}}}"#, nested(n, "1"));
        let span = |n: usize| format!(r#"{{"spans":[{{"name":"s","metadata":{{"k":{}}}}}]}}"#, nested(n, "1"));
        let event = |n: usize| format!(r#"{{"events":[{{"message":"m","metadata":{{"k":{}}}}}]}}"#, nested(n, "{}"));
        let mut cases = vec![
            (format!(r#"{{"metadata":{}1{}}}"#, r#"{"k":"#.repeat(100), "}".repeat(100)), Stored),
            (format!(r#"{{"metadata":{}1{}}}"#, r#"{"k":"#.repeat(1_000), "}".repeat(1_000)), WrongShape),
            (format!(r#"{{"name":{}}}"#, nested(50_000, "1")), WrongShape),
            (format!(r#"{{"spans":{}}}"#, nested(50_000, "1")), WrongShape),
            (nested(50_000, "1"), WrongShape),
            (format!(r#"{{"tags":{{"k":{}}}}}"#, nested(50, "1")), WrongShape),
            // In fields that the server ignores, only the syntax counts.
            (format!(r#"{{"unknown":{}}}"#, nested(50_000, "1")), Stored),
        ];
        for make in [&metadata as &dyn Fn(usize) -> String, &span, &event] {
            cases.extend([(make(100), Stored), (make(1_000), WrongShape), (make(50_000), WrongShape)]);
        }
        check_all(app, cases).await;
        let key = app.full_key();
        let shown = key.post_bytes("/v1/ingest", "application/json", metadata(100).into_bytes()).await.ok();
        let detail = key.get(&format!("/v1/traces/{}", shown["id"].as_str().unwrap())).await;
        assert!(detail.text().contains(&nested(100, "1")));
    }

    async fn long_texts_are_stored_or_truncated(app: TestApp) {
        let key = app.full_key();
        let (huge, long) = ("\u{e4}".repeat(5 << 20), "\u{e4}".repeat(1 << 19));
        for (field, item) in [
            ("input", json!({"input": huge})),
            ("metadata", json!({"metadata": {"k": huge}})),
        ] {
            let id = key.post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned();
            assert_eq!(key.get(&format!("/v1/traces/{id}")).await.ok()[field], item[field], "{field}");
        }
        // Error messages and span names are stored in rows that lists read, and are cut at 64 KiB.
        let cut = "\u{e4}".repeat(1 << 15);
        let id = key.post("/v1/ingest", &json!({"error": long})).await.ok()["id"].as_str().unwrap().to_owned();
        assert_eq!(key.get(&format!("/v1/traces/{id}")).await.ok()["error"], json!(cut));
        // The name of a trace is indexed and is cut at 500 characters.
        let item = json!({"spans": [{"name": long, "output": huge}]});
        let id = key.post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned();
        let shown = key.get(&format!("/v1/traces/{id}")).await.ok();
        assert_eq!((&shown["spans"][0]["name"], &shown["spans"][0]["output"]), (&json!(cut), &json!(huge)));
        assert_eq!(shown["name"], "\u{e4}".repeat(500));
        check_health(app).await;
    }

    /// Indexed texts are bounded, so that no database rejects an index entry.
    async fn too_long_label_is_rejected(app: TestApp) {
        let mut cases = Vec::new();
        for field in ["external_id", "session_id", "user_id", "name", "model"] {
            cases.push((json!({field: incompressible(1, 500)}), Stored));
            cases.push((json!({field: incompressible(2, 501)}), NotAllowed));
            cases.push((json!({field: "x".repeat(1 << 20)}), NotAllowed));
        }
        cases.push((json!({"id": incompressible(3, 500)}), Stored));
        cases.push((json!({"id": incompressible(4, 5_000)}), Stored));
        cases.push((json!({"project_name": incompressible(5, 500)}), Stored));
        cases.push((json!({"project_name": incompressible(6, 501)}), NotAllowed));
        cases.push((json!({"spans": [{"name": "s", "id": incompressible(7, 5_000), "type": incompressible(8, 5_000)}]}), Stored));
        cases.push((json!({"spans": [{"name": "s", "model": incompressible(9, 500)}]}), Stored));
        cases.push((json!({"spans": [{"name": "s", "model": incompressible(9, 501)}]}), NotAllowed));
        cases.push((json!({"events": [{"message": "m", "level": incompressible(10, 5_000), "id": incompressible(11, 5_000)}]}), Stored));
        // A tag's key and value share one index entry.
        cases.push((json!({"tags": {"x".repeat(500): "y".repeat(500)}}), Stored));
        cases.push((json!({"tags": {incompressible(12, 300): incompressible(13, 300)}}), Stored));
        cases.push((json!({"tags": {incompressible(14, 500): incompressible(15, 500)}}), NotAllowed));
        cases.push((json!({"tags": {"x".repeat(501): "y"}}), NotAllowed));
        cases.push((json!({"tags": {"x": "y".repeat(501)}}), NotAllowed));
        cases.push((json!({"tags": {"": "y"}}), NotAllowed));
        let tags = |n: usize| (0..n).map(|i| (format!("k{i}"), json!("v"))).collect::<serde_json::Map<String, Value>>();
        cases.push((json!({"tags": tags(100)}), Stored));
        cases.push((json!({"tags": tags(101)}), NotAllowed));
        // The item reaches every limit at the same time.
        cases.push((json!({"external_id": incompressible(16, 500), "session_id": incompressible(17, 500), "name": incompressible(18, 500),
            "user_id": incompressible(19, 500), "model": incompressible(20, 500), "error": incompressible(21, 500)}), Stored));
        check_all(app, cases.into_iter().map(|(body, verdict)| (body.to_string(), verdict)).collect()).await;
    }
}
