//! Tests of exports to files and pipes, of interrupted exports and of deleting traces.

use serde_json::{Value, json};

use crate::stub::{Reply, Stub, run, trace};

/// Returns an export of traces, newest first, as lines.
fn lines(numbers: impl IntoIterator<Item = usize>) -> String {
    numbers.into_iter().map(|n| format!("{}\n", trace(n))).collect()
}

fn ids(text: &str) -> Vec<String> {
    let id =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap()[28..].to_owned();
    text.lines().map(id).collect()
}

#[test]
fn export_contains_the_lines_of_the_server() {
    let stub = Stub::new(|_, _| Reply::text("application/x-ndjson", &lines([3, 2, 1])));
    let ran = run(stub.loupe(&["traces", "export", "-", "--error", "--format", "jsonl"]));
    assert_eq!((ran.code, ids(&ran.stdout).len()), (0, 3), "{}", ran.stderr);
    assert!(
        stub.requests()[0].query.contains("error=true") && stub.requests()[0].query.contains("format=jsonl")
    );

    let ran = run(stub.loupe(&["traces", "export", "out.jsonl"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert!(ran.stderr.contains("3 traces in out.jsonl"), "{}", ran.stderr);
    let path = stub.dir.path().join("out.jsonl");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), lines([3, 2, 1]));
    assert!(!stub.dir.path().join("out.jsonl.part").exists());

    assert_eq!(run(stub.loupe(&["traces", "export", "out.jsonl"])).code, 1, "it is not overwritten");
    assert_eq!(run(stub.loupe(&["traces", "export", "out.jsonl", "--force"])).code, 0);
}

#[test]
fn interrupted_export_is_resumed() {
    let stub = Stub::new(|request, before| match before {
        0 => Reply::text("application/x-ndjson", &lines([5, 4, 3])).cut_by(40),
        _ if request.query.contains("to=") => Reply::text("application/x-ndjson", &lines([4, 3, 2])),
        _ => Reply::text("application/x-ndjson", &lines([5, 4, 3, 2])),
    });
    let ran = run(stub.loupe(&["traces", "export", "out.jsonl", "--retries", "1"]));
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("--resume") && ran.stderr.contains("out.jsonl.part"), "{}", ran.stderr);
    assert!(!stub.dir.path().join("out.jsonl").exists());

    let ran = run(stub.loupe(&["traces", "export", "out.jsonl", "--resume"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = std::fs::read_to_string(stub.dir.path().join("out.jsonl")).unwrap();
    assert_eq!(ids(&text), ["00000005", "00000004", "00000003", "00000002"]);
    assert!(
        stub.requests()[1].query.contains("to=2026-11-21T14%3A00%3A04.000000Z"),
        "{}",
        stub.requests()[1].query
    );
    assert_eq!(run(stub.loupe(&["traces", "export", "x", "--resume", "--format", "otlp"])).code, 2);
}

#[test]
fn trace_deletion_needs_confirmation() {
    let stub = Stub::new(|request, _| match request.method.as_str() {
        "DELETE" => Reply::status(204, Value::Null),
        _ => Reply::error(404, "not_found"),
    });
    let id = "01980f6e-0000-7000-8000-000000000007";
    assert_eq!(run(stub.session(&["traces", "delete", id])).code, 2);
    let ran = run(stub.session(&["traces", "delete", id, "--dry-run"]));
    assert_eq!(ran.stdout, format!("DELETE /v1/traces/{id}\n"));
    assert!(stub.requests().is_empty());
    let ran = run(stub.session(&["traces", "delete", id, "--yes", "--json"]));
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap(), json!({ "id": id, "deleted": true }));
    assert_eq!(stub.requests()[0].path, format!("/v1/traces/{id}"));
}
