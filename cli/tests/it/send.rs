//! Tests of `traces send`.

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
fn one_object_is_sent_as_one_trace() {
    let stub = stub();
    let ran = send(&stub, &["traces", "send", "-", "--json", "--fields", "id"], "{\n \"name\": \"a\"\n}");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "{\"id\":\"one\"}\n"), "{}", ran.stderr);
    assert_eq!(stub.requests()[0].path, "/v1/ingest");
}

#[test]
fn many_traces_are_sent_in_batches() {
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
fn refused_traces_are_code_13_and_named() {
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
fn archived_project_is_code_9() {
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
fn identical_trace_sent_again_is_not_an_error() {
    let body = json!({ "error": "stored", "code": "conflict", "identical": true, "trace_id": "t-1" });
    let stub = Stub::new(move |_, _| Reply::status(409, body.clone()));
    let ran = send(&stub, &["traces", "send", "-", "-o", "id"], "{\"id\":\"a\"}");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "t-1\n"));
}

#[test]
fn invalid_traces_are_refused_before_any_request() {
    let stub = stub();
    for input in ["", "nonsense", "{\"name\":\"a\"}\n{broken", "[1, \"x\""] {
        let ran = send(&stub, &["traces", "send", "-"], input);
        assert_eq!(ran.code, 2, "{input}: {}", ran.stderr);
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn otlp_files_are_sent_unchanged() {
    let stub = stub();
    let ran = send(&stub, &["traces", "send", "-", "--otlp"], "{\"resourceSpans\":[]}");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stub.requests()[0].path, "/v1/otlp/traces");
    assert_eq!(stub.requests()[0].body, "{\"resourceSpans\":[]}");
}

/// Starts a server with the projects `bot` and `häuser`; the second is archived.
fn with_projects() -> Stub {
    Stub::new(|request, _| {
        let project = |id: u32, name: &str, status: &str| {
            json!({
                "id": format!("01980f6e-0000-7000-8000-{id:012x}"), "name": name, "status": status,
                "prompt_autoship_enabled": false, "retention_days": null, "archived_at": null,
                "created_at": "2026-11-21T14:00:00Z", "updated_at": "2026-11-21T14:00:00Z",
            })
        };
        let projects = [project(1, "bot", "active"), project(2, "häuser", "archived")];
        match request.path.as_str() {
            "/v1/projects" => Reply::json(json!({ "projects": projects, "has_more": false })),
            "/v1/projects/01980f6e-0000-7000-8000-000000000001" => Reply::json(projects[0].clone()),
            _ if request.header("x-project-name") == Some("häuser") => {
                Reply::error(403, "error.project.archived")
            }
            "/v1/ingest/batch" => batch(request),
            "/v1/ingest" => Reply::status(201, json!({ "id": "one", "span_count": 0 })),
            _ => Reply::json(json!({})),
        }
    })
}

#[test]
fn traces_are_sent_to_the_project_of_the_flag() {
    let named = "{\"name\":\"a\",\"project_name\":\"other\"}";
    for (project, sent) in [("bot", "bot"), ("01980f6e-0000-7000-8000-000000000001", "bot")] {
        for (arguments, input, path) in [
            (&["traces", "send", "-"][..], named.to_owned(), "/v1/ingest"),
            (&["traces", "send", "-"], format!("{named}\n{named}"), "/v1/ingest/batch"),
            (&["traces", "send", "-", "--otlp"], "{\"resourceSpans\":[]}".to_owned(), "/v1/otlp/traces"),
            (&["traces", "send", "-", "--otlp"], "\n\u{0}".to_owned(), "/v1/otlp/traces"),
        ] {
            let stub = with_projects();
            let ran = send(&stub, &[arguments, &["-p", project]].concat(), input);
            assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
            let request = stub.requests().pop().unwrap();
            assert_eq!(
                (request.path.as_str(), request.header("x-project-name").unwrap_or_default()),
                (path, sent)
            );
            assert!(!request.body.contains("other"), "the flag wins: {}", request.body);
        }
    }
    // A default is not an explicit choice: the project of a trace overrides it.
    let stub = with_projects();
    let mut command = stub.loupe(&["traces", "send", "-"]);
    command.env("LOUPE_PROJECT", "bot").write_stdin(named);
    assert_eq!(run(command).code, 0);
    let request = stub.requests().pop().unwrap();
    assert!(
        request.header("x-project-name") == Some("bot") && request.body.contains("other"),
        "{}",
        request.body
    );
}

#[test]
fn missing_or_archived_project_receives_no_traces() {
    let stub = with_projects();
    let ran = send(&stub, &["traces", "send", "-", "-p", "bott"], "{\"name\":\"a\"}");
    assert_eq!(ran.code, 11, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("no project `bott`") && ran.stderr.contains("projects create"),
        "{}",
        ran.stderr
    );
    assert_eq!(stub.count("POST"), 0, "no project is made by a misspelt name");
    let ran = send(&stub, &["traces", "send", "-", "-p", "häuser"], "{\"name\":\"a\"}");
    assert_eq!(ran.code, 9, "{}", ran.stderr);
}
