//! Traces whose root has no texts show the input of their first model call and the output of the last.

use serde_json::{Value, json};
use tests::{
    Caller, TestApp,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};

const TRACE_ID: u128 = 0xca11;
const SECOND: i64 = 1_000_000;

/// Builds a model call below the root, with these texts.
fn call(id: u64, at: i64, input: Option<&str>, output: Option<&str>) -> Span {
    let mut span = Span::new(TRACE_ID, id, &format!("call {id}"), TEST_START_MICROS + at * SECOND)
        .under(1)
        .calls("gpt-4o", 10, 5);
    if let Some(input) = input {
        span = span.with("gen_ai.input.messages", message("user", input));
    }
    if let Some(output) = output {
        span = span.with("gen_ai.output.messages", message("assistant", output));
    }
    span
}

fn message(role: &str, text: &str) -> String {
    json!([{"role": role, "parts": [{"type": "text", "content": text}]}]).to_string()
}

fn agent() -> Span {
    Span::new(TRACE_ID, 1, "Agent workflow", TEST_START_MICROS).until(Some(TEST_START_MICROS + 9 * SECOND))
}

on_both_databases! {
    async fn root_without_texts_shows_those_of_its_calls(app: TestApp) {
        let key = app.full_key();
        send(&key, &[
            call(3, 2, Some("second"), Some("done")),
            agent(),
            call(2, 1, Some("first"), Some("thinking")),
            Span::new(TRACE_ID, 4, "tool", TEST_START_MICROS + 3 * SECOND).under(1).with("input.value", "arguments").with("output.value", "result"),
        ]).await;
        check_texts(&key, Some(&message("user", "first")), Some("done")).await;
        // Lists show the same texts that they search.
        for word in ["first", "done"] {
            assert_eq!(key.get(&format!("/v1/traces?q={word}")).await.ok()["traces"].as_array().unwrap().len(), 1, "{word}");
        }
        assert_eq!(key.get("/v1/traces?q=thinking").await.ok()["traces"], json!([]));
    }

    async fn batches_in_any_order_show_the_same_texts(app: TestApp) {
        let spans = [
            agent(),
            call(2, 1, Some("first"), Some("a")),
            call(3, 2, Some("second"), Some("b")),
            call(4, 3, Some("third"), Some("c")),
        ];
        let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]];
        for order in orders {
            let (_, key) = app.other_tenant(api::Plan::Enterprise).await;
            for at in order {
                send(&key, std::slice::from_ref(&spans[at])).await;
            }
            check_texts(&key, Some(&message("user", "first")), Some("c")).await;
            // Retries change nothing.
            send(&key, &spans).await;
            check_texts(&key, Some(&message("user", "first")), Some("c")).await;
        }
    }

    async fn texts_of_the_root_have_precedence(app: TestApp) {
        let key = app.full_key();
        send(&key, &[call(2, 1, Some("first"), Some("answer"))]).await;
        check_texts(&key, Some(&message("user", "first")), Some("answer")).await;
        send(&key, &[agent().with("input.value", "the question")]).await;
        check_texts(&key, Some("the question"), Some("answer")).await;
        let (_, other) = app.other_tenant(api::Plan::Enterprise).await;
        send(&other, &[agent().with("output.value", "the answer"), call(2, 1, Some("first"), Some("answer"))]).await;
        check_texts(&other, Some(&message("user", "first")), Some("the answer")).await;
    }

    async fn failed_last_call_leaves_no_output(app: TestApp) {
        let key = app.full_key();
        send(&key, &[agent(), call(2, 1, Some("first"), Some("half way")), call(3, 2, Some("second"), None).failed("Request timed out")]).await;
        check_texts(&key, Some(&message("user", "first")), None).await;
        send(&key, &[call(4, 3, Some("second"), Some("at last"))]).await;
        check_texts(&key, Some(&message("user", "first")), Some("at last")).await;
    }

    async fn trace_without_model_calls_has_no_texts(app: TestApp) {
        let key = app.full_key();
        send(&key, &[agent(), Span::new(TRACE_ID, 2, "tool", TEST_START_MICROS).under(1).with("input.value", "arguments")]).await;
        check_texts(&key, None, None).await;
    }

    async fn first_span_without_a_root_is_treated_like_one(app: TestApp) {
        let key = app.full_key();
        let orphan = Span::new(TRACE_ID, 9, "step", TEST_START_MICROS - SECOND).under(77);
        send(&key, &[orphan, call(2, 1, Some("first"), Some("answer"))]).await;
        check_texts(&key, Some(&message("user", "first")), Some("answer")).await;
    }

    async fn items_show_texts_of_their_calls(app: TestApp) {
        let key = app.full_key();
        let spans = json!([
            {"id": "root", "name": "agent"},
            {"parent_span_id": "root", "name": "a", "type": "llm", "input": "first", "output": "half way", "start_time": "2026-06-15T12:00:00Z"},
            {"parent_span_id": "root", "name": "b", "type": "llm", "input": "second", "output": "done", "start_time": "2026-06-15T12:00:01Z"}]);
        for (item, input, output) in [
            (json!({"spans": spans}), "first", "done"),
            (json!({"spans": spans, "metadata": {"k": 1}}), "first", "done"),
            (json!({"spans": spans, "input": "given"}), "given", "done"),
            (json!({"spans": spans, "output": "given"}), "first", "given"),
        ] {
            let id = key.post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned();
            let shown = key.get(&format!("/v1/traces/{id}")).await.ok();
            assert_eq!((&shown["input"], &shown["output"]), (&json!(input), &json!(output)), "{item}");
            assert_eq!(shown["metadata"], item.get("metadata").cloned().unwrap_or_else(|| json!({})));
        }
        // Texts of the root precede those of the calls, even if the item has some of its own.
        let mut rooted = spans.clone();
        rooted[0]["input"] = "the root's".into();
        let id = key.post("/v1/ingest", &json!({"spans": rooted, "output": "given"})).await.ok()["id"].as_str().unwrap().to_owned();
        let shown = key.get(&format!("/v1/traces/{id}")).await.ok();
        assert_eq!((&shown["input"], &shown["output"]), (&json!("the root's"), &json!("given")));
    }

    async fn late_spans_give_an_item_its_texts(app: TestApp) {
        let key = app.full_key();
        key.post("/v1/ingest", &json!({"id": uuid::Uuid::from_u128(TRACE_ID), "metadata": {"k": 1}, "spans": [{"name": "agent"}]})).await.ok();
        check_texts(&key, None, None).await;
        send(&key, &[call(2, 1, Some("first"), Some("answer"))]).await;
        check_texts(&key, Some(&message("user", "first")), Some("answer")).await;
        assert_eq!(trace(&key).await["metadata"], json!({"k": 1}));
    }

    async fn removed_trace_can_be_stored_again(app: TestApp) {
        let key = app.full_key();
        send(&key, &[agent()]).await;
        send(&key, &[call(2, 1, Some("first"), Some("answer"))]).await;
        app.session(api::Role::Owner).delete(&format!("/v1/traces/{TRACE_ID:032x}")).await;
        assert_eq!(count_text_blocks(app).await, 0);
        send(&key, &[agent(), call(2, 1, Some("again"), Some("again"))]).await;
        check_texts(&key, Some(&message("user", "again")), Some("again")).await;
    }
}

async fn count_text_blocks(app: &TestApp) -> u64 {
    use sea_orm::{EntityTrait, PaginatorTrait};
    entities::body::Entity::find().count(&app.app.db.write).await.unwrap()
}

async fn send(key: &Caller, spans: &[Span]) {
    assert_eq!(key.post("/v1/otlp/traces", &request(spans)).await.ok(), json!({}));
}

async fn trace(key: &Caller) -> Value {
    key.get(&format!("/v1/traces/{TRACE_ID:032x}")).await.ok()
}

/// Checks for these texts in the detail and in the list.
async fn check_texts(key: &Caller, input: Option<&str>, output: Option<&str>) {
    let listed = key.get("/v1/traces").await.ok()["traces"][0].clone();
    for shown in [trace(key).await, listed] {
        assert_eq!((&shown["input"], &shown["output"]), (&json!(input), &json!(output)));
    }
}
