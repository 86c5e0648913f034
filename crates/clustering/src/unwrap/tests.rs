//! Tests of wrapped messages, by the SDK or framework that wraps them.

use super::{MAX_MESSAGE_BYTES, unwrap};

fn check(message: &str, expected: &str) {
    assert_eq!(unwrap(message), expected, "{message}");
}

#[test]
fn python_sdk_wrapping_is_removed() {
    let expected = "Rate limit reached for gpt-4o";
    check(
        "Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-4o', 'type': 'tokens', 'code': None}}",
        expected,
    );
    check(
        "openai.RateLimitError: Error code: 429 - {\"error\": {\"message\": \"Rate limit reached for gpt-4o\", \"type\": \"tokens\"}}",
        expected,
    );
    check(
        "Error code: 400 - {'error': {'message': \"isn't \\\"valid\\\"\", 'type': 'x'}}",
        "isn't \"valid\"",
    );
}

#[test]
fn cut_off_object_gives_its_message() {
    check(
        "Error code: 400 - {'error': {'message': 'prompt is too long: 9 tokens > 8 max', 'ty",
        "prompt is too long: 9 tokens > 8 max",
    );
    check("Error code: 400 - {'error': {'message': 'prompt is too lo", "prompt is too lo");
}

#[test]
fn nested_object_in_string_gives_inner_message() {
    check(
        r#"litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"messages: at least one message is required"}}"#,
        "messages: at least one message is required",
    );
    check(
        r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"message\":\"queue is full today\",\"type\":\"x\"}}"}}}"#,
        "queue is full today",
    );
}

#[test]
fn object_that_is_a_models_output_stays() {
    let message = "Invalid json output: {\"message\": \"hello my friend\"";
    check(message, message);
}

#[test]
fn retries_and_operations_are_removed() {
    check(
        "An error occurred (ThrottlingException) when calling the InvokeModel operation (reached max retries: 4): Too many tokens, please wait before trying again.",
        "Too many tokens, please wait before trying again.",
    );
    check("AI_RetryError: Failed after 3 attempts. Last error: AI_APICallError: Overloaded", "Overloaded");
    check("rpc error: code = DeadlineExceeded desc = context deadline exceeded", "context deadline exceeded");
    check(
        "429 RESOURCE_EXHAUSTED. {'error': {'code': 429, 'message': 'Resource has been exhausted (e.g. check quota).'}}",
        "Resource has been exhausted (e.g. check quota).",
    );
    check(
        "model \"m\" not found, try pulling it first (status code: 404)",
        "model \"m\" not found, try pulling it first",
    );
}

#[test]
fn class_stays_where_message_says_little() {
    check("KeyError: 'city'", "KeyError: 'city'");
    check("app.errors.LookupError: 'city'", "LookupError: 'city'");
    check("asyncio.exceptions.TimeoutError", "TimeoutError");
    check("openai.APITimeoutError: Request timed out.", "Request timed out.");
    check(
        "java.util.concurrent.ExecutionException: java.io.IOException: Broken pipe detected",
        "Broken pipe detected",
    );
    check("ReadTimeout('The read operation timed out')", "The read operation timed out");
}

#[test]
fn stack_trace_gives_its_last_exception() {
    check(
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nValueError: first\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", line 2, in f\n    h()\nTypeError: 'int' object is not callable\n",
        "'int' object is not callable",
    );
    check(
        "TypeError: fetch failed\n    at node:internal/deps/undici:1:2\n    at f (a.js:3:4)",
        "fetch failed",
    );
    check(
        "java.lang.RuntimeException: outer problem here\n\tat a.b.C.d(C.java:1)\nCaused by: java.net.ConnectException: Connection was refused\n\tat e.f(G.java:2)",
        "Connection was refused",
    );
    check(
        "thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds\nnote: run with `RUST_BACKTRACE=1`",
        "index out of bounds",
    );
}

#[test]
fn html_page_gives_its_title() {
    check("<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body></body></html>", "502 Bad Gateway");
    check("Error code: 503 - <!DOCTYPE html><html><body><p>no title</p> here</body></html>", "no title here");
}

#[test]
fn empty_and_unknown_messages_stay() {
    for it in ["", "Overloaded", "{}", "[]", "429", "a: b", "\u{1f980}", "Error", "Error code: 500"] {
        check(it, it);
    }
}

#[test]
fn long_message_keeps_both_ends() {
    let long = format!(
        "Traceback (most recent call last):\n{}ValueError: no such column in table",
        "  x\n".repeat(MAX_MESSAGE_BYTES)
    );
    // The beginning of the trace is kept, and its end.
    check(&long, "no such column in table");
}
