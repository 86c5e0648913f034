//! Tests of changes of keys and projects, and of the protections against accidental changes.

use serde_json::{Value, json};

use crate::stub::{Reply, Stub, run};

const PROJECT_ID: &str = "01980f6e-0000-7000-8000-000000000001";

fn project(status: &str) -> Value {
    json!({
        "id": PROJECT_ID, "name": "bot", "status": status, "prompt_autoship_enabled": false,
        "retention_days": null, "archived_at": null,
        "created_at": "2026-11-21T14:00:00Z", "updated_at": "2026-11-21T14:00:00Z",
    })
}

fn key(name: &str, secret: Option<&str>) -> Value {
    let mut key = json!({
        "id": "01980f6e-0000-7000-8000-0000000000ee", "name": name, "prefix": "lp_7Qa2f0H3", "scopes": [],
        "project_id": PROJECT_ID, "created_at": "2026-11-21T14:00:00Z", "expires_at": null,
    });
    if let Some(secret) = secret {
        key["secret"] = json!(secret);
    }
    key
}

/// Starts a server with one project and one key, which remembers whether the project is archived.
fn stub() -> Stub {
    let archived = std::sync::atomic::AtomicBool::new(false);
    Stub::new(move |request, _| {
        use std::sync::atomic::Ordering::SeqCst;
        let state = if archived.load(SeqCst) { "archived" } else { "active" };
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/v1/apikeys") => {
                Reply::json(json!({ "apikeys": [key("old", None)], "has_more": false, "next_cursor": null }))
            }
            ("POST", "/v1/apikeys") => Reply::status(201, key("ci", Some("lp_secret"))),
            // Archived projects are listed only on request.
            ("GET", "/v1/projects") if state == "archived" && !request.query.contains("status=all") => {
                Reply::json(json!({ "projects": [], "has_more": false, "next_cursor": null }))
            }
            ("GET", "/v1/projects") => {
                Reply::json(json!({ "projects": [project(state)], "has_more": false, "next_cursor": null }))
            }
            ("POST", path) if path.ends_with("/archive") => {
                archived.store(true, SeqCst);
                Reply::json(project("archived"))
            }
            ("DELETE", _) => Reply::status(204, Value::Null),
            _ => Reply::error(404, "not_found"),
        }
    })
}

#[test]
fn keys_need_a_session_before_any_request() {
    let stub = stub();
    for args in [&["keys", "create", "ci"][..], &["keys", "list"], &["keys", "revoke", "old", "-y"]] {
        let ran = run(stub.loupe(args));
        assert_eq!(ran.code, 4);
        assert!(ran.stderr.contains("LOUPE_SESSION_TOKEN"), "{}", ran.stderr);
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn secret_is_the_only_line_on_stdout() {
    let stub = stub();
    let ran = run(stub.session(&["keys", "create", "ci", "--secret-only"]));
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "lp_secret\n", ""));
    let ran = run(stub.session(&["keys", "create", "ci", "--scope", "query"]));
    assert_eq!(ran.stdout, "lp_secret\n");
    assert!(ran.stderr.contains("query") && ran.stderr.contains("lp_7Qa2f0H3"), "{}", ran.stderr);
    assert_eq!(stub.requests().last().unwrap().body, r#"{"name":"ci","scopes":["query"]}"#);
}

#[test]
fn secret_written_to_a_file_is_not_printed() {
    let stub = stub();
    let path = stub.dir.path().join(".env");
    std::fs::write(&path, "A=1\nLOUPE_API_KEY=old\n").unwrap();
    let args = ["keys", "create", "ci", "--env-file", ".env", "--json"];
    let ran = run(stub.session(&args));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stdout.contains("lp_secret") && !ran.stderr.contains("lp_secret"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "A=1\nLOUPE_API_KEY=lp_secret\n");

    let args = ["keys", "create", "ci", "--secret-file", "secret"];
    assert_eq!(run(stub.session(&args)).code, 0);
    let posts = stub.count("POST");
    assert_eq!(run(stub.session(&args)).code, 1);
    assert_eq!(stub.count("POST"), posts, "no key is made whose secret can't be kept");
}

#[test]
fn existing_key_is_kept_with_if_not_exists() {
    let stub = stub();
    let ran = run(stub.session(&["keys", "create", "old", "--if-not-exists", "--json"]));
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["created"], false);
    let ran = run(stub.session(&["keys", "create", "ci", "--if-not-exists", "--json"]));
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["created"], true);
    assert_eq!(stub.count("POST"), 1);
}

#[test]
fn missing_secret_of_a_key_is_an_error() {
    let stub = stub();
    let ran = run(stub.session(&["keys", "create", "old", "--if-not-exists", "--secret-only"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (12, ""));
    assert!(ran.stderr.contains("--rotate"), "{}", ran.stderr);

    // The first response is lost; the response to the retry has no secret.
    let stub = Stub::new(|request, before| match (request.method.as_str(), before) {
        ("GET", _) => {
            Reply::json(json!({ "apikeys": [key("ci", None)], "has_more": false, "next_cursor": null }))
        }
        ("POST", 1) => Reply::error(502, "internal"),
        ("POST", _) => Reply::status(201, key("ci", None)).header("Idempotency-Replayed: true"),
        _ => Reply::status(204, Value::Null),
    });
    let ran = run(stub.session(&["keys", "create", "ci", "--rotate", "--yes", "--secret-only"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("loupe keys create ci --rotate"), "{}", ran.stderr);
    assert_eq!((stub.count("POST"), stub.count("DELETE")), (2, 0), "the old key still works");
}

#[test]
fn key_is_found_by_name_prefix_or_end_of_its_id() {
    let stub = stub();
    for wanted in ["old", "lp_7Qa2", "lp_7Qa2f0H3", "000000ee", "01980f6e-0000-7000-8000-0000000000ee"] {
        let ran = run(stub.session(&["keys", "get", wanted, "-o", "id"]));
        assert_eq!(ran.stdout, "01980f6e-0000-7000-8000-0000000000ee\n", "{wanted}: {}", ran.stderr);
    }
    for wanted in ["lp_", "nope"] {
        assert_eq!(run(stub.session(&["keys", "get", wanted])).code, 11, "{wanted}");
    }
}

#[test]
fn confirmation_without_a_terminal_is_a_usage_error() {
    let stub = stub();
    for args in [
        &["keys", "revoke", "old"][..],
        &["projects", "archive", "bot"],
        &["projects", "archive", "bot", "--no-input"],
    ] {
        let ran = run(stub.session(args));
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.stderr.contains("--yes"), "{}", ran.stderr);
    }
    assert_eq!(stub.count("POST") + stub.count("DELETE"), 0);
}

#[test]
fn dry_run_shows_the_request_and_sends_nothing() {
    let stub = stub();
    let ran = run(stub.session(&["keys", "create", "ci", "-n", "--json"]));
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, shown["method"].as_str()), (0, Some("POST")));
    assert_eq!(shown["body"]["name"], "ci");
    let ran = run(stub.session(&["projects", "archive", PROJECT_ID, "--dry-run", "--json"]));
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["path"], format!("/v1/projects/{PROJECT_ID}/archive"));
    assert!(stub.requests().is_empty());
}

#[test]
fn archiving_twice_succeeds_and_reports_the_change() {
    let stub = stub();
    for changed in [true, false] {
        let ran = run(stub.session(&["projects", "archive", "bot", "--yes", "--if-active", "--json"]));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(shown, json!({ "project": "bot", "status": "archived", "changed": changed }));
    }
    assert_eq!(stub.count("POST"), 1);
}

#[test]
fn archiving_the_last_active_project_is_code_12() {
    let stub = Stub::new(|request, _| match request.method.as_str() {
        "GET" => {
            Reply::json(json!({ "projects": [project("active")], "has_more": false, "next_cursor": null }))
        }
        _ => Reply::error(409, "error.project.cannot_archive_last"),
    });
    assert_eq!(run(stub.session(&["projects", "archive", "bot", "-y"])).code, 12);
}

#[test]
fn read_only_context_refuses_changes() {
    let stub = stub();
    run(stub.bare(&["context", "set", "ro", "--read-only"]));
    let ran = run(stub.session(&["keys", "revoke", "old", "-y"]));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("read-only"), "{}", ran.stderr);
    assert_eq!(stub.count("DELETE"), 0);
}

#[test]
fn selected_project_is_stored_in_the_context() {
    let stub = stub();
    run(stub.bare(&["context", "set", "dev"]));
    assert_eq!(run(stub.loupe(&["projects", "use", "bot"])).code, 0);
    let config = std::fs::read_to_string(stub.dir.path().join("config.toml")).unwrap();
    assert!(config.contains("project = \"bot\""), "{config}");
}
