//! `traces send`.

use serde_json::{Value, json};

use crate::stub::{Reply, Request, Stub, run};

fn batch(request: &Request) -> Reply {
    let body: Value = serde_json::from_str(&request.body).unwrap();
    let items = body["traces"].as_array().unwrap();
    let results: Vec<Value> = (0..items.len())
        .map(|index| match items[index]["name"].as_str() {
            Some("bad") => json!({ "index": index, "id": null, "status": "rejected", "code": "validation_failed", "error": "no" }),
            _ => json!({ "index": index, "id": format!("id-{index}"), "status": "accepted" }),
        })
        .collect();
    Reply::json(json!({ "accepted": 0, "rejected": 0, "results": results }))
}

fn stub() -> Stub {
    Stub::new(|request, _| match request.path.as_str() {
        "/v1/ingest" => Reply::status(201, json!({ "id": "one", "span_count": 0 })),
        "/v1/ingest/batch" => batch(request),
        _ => Reply::json(json!({})),
    })
}

fn send(stub: &Stub, args: &[&str], input: impl Into<Vec<u8>>) -> crate::stub::Ran {
    let mut command = stub.loupe(args);
    command.write_stdin(input);
    run(command)
}

#[test]
fn one_object_is_one_trace() {
    let stub = stub();
    let ran = send(&stub, &["traces", "send", "-", "--json", "--fields", "id"], "{\n \"name\": \"a\"\n}");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "{\"id\":\"one\"}\n"), "{}", ran.stderr);
    assert_eq!(stub.requests()[0].path, "/v1/ingest");
}

#[test]
fn many_go_in_batches_and_are_counted_through() {
    let stub = stub();
    let lines: String = (0..1_500).map(|n| format!("{{\"name\":\"t\",\"ref\":{n}}}\n")).collect();
    let ran = send(&stub, &["traces", "send", "-", "-o", "json", "--id-from", "ref"], lines);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["accepted"], 1_500);
    assert_eq!(shown["results"][1_499]["index"], 1_499);
    let bodies: Vec<usize> = stub.requests().iter().map(|it| it.body.matches("\"ref\"").count()).collect();
    assert_eq!(bodies, [1_000, 500]);
    assert!(stub.requests()[1].body.contains("\"id\":\"1499\""));
}

#[test]
fn refused_items_are_code_13_and_named() {
    let ran = send(&stub(), &["traces", "send", "-"], r#"{"traces":[{"name":"a"},{"name":"bad"}]}"#);
    assert_eq!(ran.code, 13);
    assert!(
        ran.stderr.contains("1 stored, 0 stored before, 1 refused") && ran.stderr.contains("number 2: no"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("validation_failed") || ran.stdout.contains("rejected"), "{}", ran.stdout);
}

#[test]
fn an_archived_project_is_code_9() {
    let stub = Stub::new(|_, _| {
        Reply::status(
            403,
            json!({ "error": "error.project.archived", "message": "archived", "code": "error.project.archived" }),
        )
    });
    let ran = send(&stub, &["traces", "send", "-"], "{}");
    assert_eq!(ran.code, 9);
    assert!(ran.stderr.starts_with("error: archived\n"), "{}", ran.stderr);
}

#[test]
fn the_same_trace_again_is_no_error() {
    let body = json!({ "error": "stored", "code": "conflict", "identical": true, "trace_id": "t-1" });
    let stub = Stub::new(move |_, _| Reply::status(409, body.clone()));
    let ran = send(&stub, &["traces", "send", "-", "-o", "id"], "{\"id\":\"a\"}");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "t-1\n"));
}

#[test]
fn what_is_no_trace_is_said_before_anything_is_sent() {
    let stub = stub();
    for input in ["", "nonsense", "{\"name\":\"a\"}\n{broken", "[1, \"x\""] {
        let ran = send(&stub, &["traces", "send", "-"], input);
        assert_eq!(ran.code, 2, "{input}: {}", ran.stderr);
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn otlp_files_pass_through() {
    let stub = stub();
    let ran = send(&stub, &["traces", "send", "-", "--otlp"], "{\"resourceSpans\":[]}");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stub.requests()[0].path, "/v1/otlp/traces");
    assert_eq!(stub.requests()[0].body, "{\"resourceSpans\":[]}");
}
