//! Tests of members, credentials, sessions, the audit log, and creating and changing projects.

use serde_json::{Value, json};

use crate::stub::{Reply, Stub, run};

const ANN_ID: &str = "01980f6e-0000-7000-8000-0000000000a1";
const BOT_PROJECT_ID: &str = "01980f6e-0000-7000-8000-000000000001";

fn list(plural: &str, rows: Value) -> Reply {
    Reply::json(json!({ plural: rows, "has_more": false, "next_cursor": null }))
}

fn member(status: &str) -> Value {
    json!({
        "id": ANN_ID, "subject": "ann@example.com", "role": "member", "status": status,
        "created_at": "2026-11-20T14:00:00Z", "last_seen_at": "2026-11-21T14:00:00Z",
    })
}

fn project(name: &str) -> Value {
    json!({
        "id": BOT_PROJECT_ID, "name": name, "status": "active", "prompt_autoship_enabled": false,
        "retention_days": 30, "archived_at": null,
        "created_at": "2026-11-21T14:00:00Z", "updated_at": "2026-11-21T14:00:00Z",
    })
}

fn credential() -> Value {
    json!({
        "provider": "openai", "api_key_last4": "wxyz", "base_url": null, "judge_model_cheap": "small",
        "judge_model_premium": null, "embedding_model": "embed-3",
        "created_at": "2026-11-21T14:00:00Z", "updated_at": "2026-11-21T14:00:00Z",
    })
}

fn record() -> Value {
    json!({
        "id": "01980f6e-0000-7000-8000-0000000000f1", "action": "api_key.create",
        "actor": { "kind": "session", "id": "ann" }, "target": { "kind": "api_key", "id": "k-1" },
        "result": "ok", "request_id": "r-1", "detail": { "scopes": [] }, "created_at": "2026-11-21T14:00:00Z",
    })
}

fn stub() -> Stub {
    Stub::new(|request, _| match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/v1/members") => list("members", json!([member("active")])),
        ("PATCH", path) if path.starts_with("/v1/members/") => Reply::json(member("active")),
        ("GET", "/v1/provider-credentials") => list("provider_credentials", json!([credential()])),
        ("PUT", path) if path.starts_with("/v1/provider-credentials/") => Reply::json(credential()),
        ("GET", "/v1/audit-log") => list("audit_log", json!([record()])),
        ("GET", "/v1/sessions") => list(
            "sessions",
            json!([{
                "session_id": "s-1", "trace_count": 3, "error_count": 1, "first_seen": "2026-11-21T14:00:00Z",
                "last_seen": "2026-11-21T14:05:00Z", "cost": 0.5, "total_token_count": 120,
            }]),
        ),
        ("GET", "/v1/projects") => list("projects", json!([project("bot")])),
        ("POST", "/v1/projects") => Reply::status(201, project("pilot")),
        ("PATCH", path) if path.starts_with("/v1/projects/") => Reply::json(project("bot")),
        ("GET" | "PUT", path) if path.ends_with("/redaction") => Reply::json(json!({
            "detectors": ["email"], "patterns": [{"name": "staff", "pattern": "EMP-[0-9]{6}=?"}],
        })),
        ("DELETE", _) => Reply::status(204, Value::Null),
        _ => Reply::error(404, "not_found"),
    })
}

#[test]
fn lists_are_written_in_every_format() {
    let stub = stub();
    for (args, plural, id) in [
        (&["members", "list"][..], "members", ANN_ID),
        (&["credentials", "list"], "provider_credentials", "openai"),
        (&["audit", "list"], "audit_log", "01980f6e-0000-7000-8000-0000000000f1"),
        (&["sessions", "list"], "sessions", "s-1"),
        (&["projects", "list"], "projects", BOT_PROJECT_ID),
    ] {
        for format in ["wide", "tsv", "json", "ndjson", "csv", "id"] {
            let ran = run(stub.session(&[args, &["-o", format, "-q"]].concat()));
            assert_eq!(ran.code, 0, "{args:?} {format}: {}", ran.stderr);
            let lines = ran.stdout.lines().count();
            match format {
                "json" => {
                    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
                    assert_eq!(document[plural].as_array().map(Vec::len), Some(1), "{args:?}");
                }
                "id" => assert_eq!(ran.stdout, format!("{id}\n")),
                "ndjson" => assert_eq!(lines, 1, "{args:?}"),
                _ => assert_eq!(lines, 2, "{args:?} {format}: {}", ran.stdout),
            }
        }
    }
}

#[test]
fn members_and_credentials_need_a_session_before_any_request() {
    let stub = stub();
    for args in [
        &["members", "list"][..],
        &["members", "remove", "ann@example.com", "-y"],
        &["credentials", "list"],
        &["credentials", "delete", "openai", "-y"],
    ] {
        let ran = run(stub.loupe(args));
        assert_eq!(ran.code, 4, "{args:?}");
        assert!(ran.stderr.contains("LOUPE_SESSION_TOKEN"), "{}", ran.stderr);
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn member_is_removed_and_restored_by_subject() {
    let stub = stub();
    let ran = run(stub.session(&["members", "remove", "ann@example.com", "--yes", "--json"]));
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["status"], "removed", "{}", ran.stderr);
    assert_eq!(run(stub.session(&["members", "restore", "000000a1"])).code, 0);
    let requests = stub.requests();
    assert_eq!(requests[1].path, format!("/v1/members/{ANN_ID}"));
    assert_eq!(requests[3].body, r#"{"status":"active"}"#);
    assert_eq!(run(stub.session(&["members", "remove", "stranger", "-y"])).code, 11);
    assert_eq!(run(stub.session(&["members", "remove", "ann@example.com"])).code, 2);
}

#[test]
fn credential_change_keeps_fields_without_flags() {
    let stub = stub();
    let ran = run(stub.session(&["credentials", "set", "openai", "--judge-model-premium", "large"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let body: Value = serde_json::from_str(&stub.requests().last().unwrap().body).unwrap();
    let expected =
        json!({ "judge_model_cheap": "small", "judge_model_premium": "large", "embedding_model": "embed-3" });
    assert_eq!(body, expected);
    run(stub.session(&["credentials", "set", "openai", "--embedding-model", "none"]));
    assert_eq!(stub.requests().last().unwrap().body, r#"{"judge_model_cheap":"small"}"#);
}

#[test]
fn provider_key_is_read_from_stdin_and_never_shown() {
    let stub = stub();
    let mut command = stub.session(&["credentials", "set", "anthropic", "--key", "-", "-vv"]);
    command.write_stdin("sk-secret\n");
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("sk-secret") && !ran.stdout.contains("sk-secret"));
    assert_eq!(stub.requests().last().unwrap().body, r#"{"api_key":"sk-secret"}"#);

    let mut dry = stub.session(&["credentials", "set", "anthropic", "--key", "-", "-n", "--json"]);
    dry.write_stdin("sk-secret\n");
    let ran = run(dry);
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["body"]["api_key"], "***");
    let ran = run(stub.session(&["credentials", "set", "anthropic", "--key", "sk-secret"]));
    assert_eq!(ran.code, 2);
    assert!(!ran.stderr.contains("sk-secret"), "{}", ran.stderr);
    // A new address requires the key again, which cannot be prompted for without a terminal.
    let args = ["credentials", "set", "openai", "--base-url", "https://llm.example/v1"];
    assert_eq!(run(stub.session(&args)).code, 2);
    assert_eq!(stub.count("PUT"), 1);
}

#[test]
fn redaction_of_a_project_is_shown_set_and_switched_off() {
    let stub = stub();
    let ran = run(stub.session(&["projects", "redaction", "bot"]));
    assert_eq!((ran.code, stub.count("PUT")), (0, 0), "{}", ran.stderr);
    assert!(ran.stdout.contains("email") && ran.stdout.contains("staff"), "{}", ran.stdout);

    let set = [
        "projects",
        "redaction",
        "bot",
        "--detect",
        "email,phone",
        "--pattern",
        "staff=EMP-[0-9]{6}=?",
        "--json",
    ];
    let ran = run(stub.session(&set));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let body: Value = serde_json::from_str(&stub.requests().last().unwrap().body).unwrap();
    let patterns = json!([{ "name": "staff", "pattern": "EMP-[0-9]{6}=?" }]);
    assert_eq!(body, json!({ "detectors": ["email", "phone"], "patterns": patterns }));
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["id"], BOT_PROJECT_ID);

    // What no option names stays as it is.
    let other = json!([{ "name": "case", "pattern": "C-[0-9]{4}" }]);
    for (options, detectors, patterns) in [
        (&["--detect", "phone"][..], json!(["phone"]), &patterns),
        (&["--detect", "none"], json!([]), &patterns),
        (&["--pattern", "case=C-[0-9]{4}"], json!(["email"]), &other),
        (&["--no-patterns"], json!(["email"]), &json!([])),
    ] {
        let ran = run(stub.session(&[&["projects", "redaction", "bot"], options].concat()));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let body: Value = serde_json::from_str(&stub.requests().last().unwrap().body).unwrap();
        assert_eq!(body, json!({ "detectors": detectors, "patterns": patterns }), "{options:?}");
    }

    let ran = run(stub.session(&["projects", "redaction", "bot", "--off"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stub.requests().last().unwrap().body, r#"{"detectors":[],"patterns":[]}"#);

    let before = stub.requests().len();
    for wrong in [&["--off", "--detect", "all"][..], &["--pattern", "no-name"], &["--pattern", "=x"]] {
        let ran = run(stub.session(&[&["projects", "redaction", "bot"], wrong].concat()));
        assert_eq!(ran.code, 2, "{wrong:?}: {}", ran.stderr);
    }
    assert_eq!(stub.requests().len(), before);
}

#[test]
fn project_is_created_changed_and_selected() {
    let stub = stub();
    run(stub.bare(&["context", "set", "dev"]));
    let args =
        ["projects", "create", "pilot", "--retention-days", "30", "--autoship", "on", "--use", "--json"];
    let ran = run(stub.session(&args));
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["created"], true, "{}", ran.stderr);
    let expected = json!({ "name": "pilot", "prompt_autoship_enabled": true, "retention_days": 30 });
    assert_eq!(serde_json::from_str::<Value>(&stub.requests()[0].body).unwrap(), expected);
    assert_eq!(run(stub.bare(&["config", "get", "project"])).stdout, "pilot\n");

    let args = ["projects", "create", "bot", "--if-not-exists", "--json"];
    let ran = run(stub.session(&args));
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["created"], false);
    assert_eq!(stub.count("POST"), 1);

    let ran = run(stub.session(&["projects", "update", "bot", "--retention-days", "none", "--name", "b2"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let body: Value = serde_json::from_str(&stub.requests().last().unwrap().body).unwrap();
    assert_eq!(body, json!({ "name": "b2", "retention_days": null }));
    assert_eq!(run(stub.session(&["projects", "update", "bot"])).code, 2);
    assert_eq!(run(stub.session(&["projects", "update", "bot", "--retention-days", "0"])).code, 2);
}

#[test]
fn audit_log_filters_are_sent_to_the_server() {
    let stub = stub();
    let args =
        ["audit", "list", "--action", "api_key.create", "--actor", "ann", "--from", "2026-11-21T00:00:00Z"];
    let ran = run(stub.session(&args));
    assert!(ran.stdout.contains("api_key.create\tann\tsession\tk-1\tok"), "{}", ran.stdout);
    let query = &stub.requests()[0].query;
    for part in ["action=api_key.create", "actor=ann", "from=2026-11-21T00%3A00%3A00.000000Z"] {
        assert!(query.contains(part), "{query}");
    }
    assert_eq!(run(stub.session(&["audit", "list", "--from", "whenever"])).code, 2);
    assert_eq!(stub.requests().len(), 1);
}
