//! Tests of credentials and contexts.

use serde_json::{Value, json};

use crate::stub::{Reply, Stub, run};

fn me(role: &str) -> Value {
    json!({
        "tenant": {
            "id": "01980f6e-0000-7000-8000-0000000000aa", "name": "demo", "plan": "team", "external_id": null,
            "created_at": "2026-11-21T14:00:00Z",
        },
        "role": role, "subject": "ann", "api_key": null, "expires_at": "2026-11-21T15:00:00Z",
        "limits": {
            "requests_per_minute": {
                "traces": 3600, "metrics": null, "feedback": null, "eval": null, "prompts": null,
                "ingest": 6000, "other": 1200,
            },
            "traces_per_month": 50000, "llm_evaluations_per_month": 2500, "members": 3,
        },
        "usage": { "month": "2026-11", "traces": 1234, "llm_evaluations": 0, "members": 2 },
    })
}

fn stub() -> Stub {
    Stub::new(|request, _| match request.header("authorization").unwrap_or_default() {
        "Bearer lp_good" | "Bearer tok" => Reply::json(me("owner")),
        _ => Reply::error(401, "unauthorized"),
    })
}

#[test]
fn missing_credential_error_names_three_sources() {
    let stub = stub();
    for args in [&["traces", "list"][..], &["auth", "status"]] {
        let ran = run(stub.bare(args));
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        for way in ["LOUPE_API_KEY ", "LOUPE_API_KEY_FILE", "loupe auth login"] {
            assert!(ran.stderr.contains(way), "{}", ran.stderr);
        }
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn login_checks_and_stores_a_private_credential() {
    let stub = stub();
    let mut login = stub.bare(&["auth", "login", "--key", "-", "-c", "demo"]);
    login.write_stdin("lp_good\n");
    let ran = run(login);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let path = stub.dir.path().join("credentials.toml");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let ran = run(stub.bare(&["auth", "status", "--json"]));
    let status: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, status["api_key"]["role"].as_str()), (0, Some("owner")));
    assert_eq!(status["api_key"]["source"], "context demo");
    assert_eq!(run(stub.bare(&["auth", "token"])).stdout, "lp_good\n");
    assert_eq!(run(stub.bare(&["auth", "logout"])).code, 0);
    assert!(!std::fs::read_to_string(&path).unwrap().contains("lp_good"));
}

#[test]
fn invalid_key_and_secret_as_flag_value_are_refused() {
    let stub = stub();
    let mut login = stub.bare(&["auth", "login", "--key", "-"]);
    login.write_stdin("lp_bad\n");
    assert_eq!(run(login).code, 4);
    assert!(!stub.dir.path().join("credentials.toml").exists());
    let ran = run(stub.bare(&["auth", "login", "--key", "lp_good"]));
    assert_eq!(ran.code, 2);
    assert!(!ran.stderr.contains("lp_good"), "{}", ran.stderr);
}

#[test]
fn login_without_a_terminal_does_not_prompt() {
    assert_eq!(run(stub().bare(&["auth", "login"])).code, 2);
}

#[test]
fn contexts_are_stored_selected_and_deleted() {
    let stub = stub();
    for args in [
        &["context", "set", "prod", "--url", "https://prod.example", "--protected"][..],
        &["context", "set", "dev", "--url", "http://127.0.0.1:1", "-p", "bot"],
        &["context", "use", "dev"],
    ] {
        let ran = run(stub.bare(args));
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    }
    let ran = run(stub.bare(&["context", "list", "--json"]));
    let list: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(list["contexts"][0]["name"], "dev");
    assert_eq!(list["contexts"][0]["current"], true);
    assert_eq!(list["contexts"][1]["protected"], true);
    assert_eq!(run(stub.bare(&["context", "delete", "dev"])).code, 2);
    assert_eq!(run(stub.bare(&["context", "delete", "dev", "--yes"])).code, 0);
    assert_eq!(run(stub.bare(&["context", "use", "dev"])).code, 11);
    assert_eq!(run(stub.bare(&["-c", "nope", "traces", "list"])).code, 2);
}

#[test]
fn local_file_with_an_address_is_refused() {
    let stub = stub();
    std::fs::write(stub.dir.path().join(".loupe.toml"), format!("url = \"{}\"", stub.url())).unwrap();
    let ran = run(stub.loupe(&["traces", "list"]));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("url"), "{}", ran.stderr);
    assert!(stub.requests().is_empty());
}

#[cfg(unix)]
#[test]
fn readable_credentials_file_causes_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let stub = stub();
    let path = stub.dir.path().join("credentials.toml");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(run(stub.loupe(&["auth", "status"])).stderr.contains("credentials.toml"));
}

#[test]
fn doctor_reports_each_failed_check() {
    let stub = Stub::new(|request, _| match request.path.as_str() {
        "/v1/me" if request.header("authorization") != Some("Bearer lp_test") => {
            Reply::error(401, "unauthorized")
        }
        "/v1/me" => {
            Reply::json(me("member")).header("X-RateLimit-Limit: 60").header("X-RateLimit-Remaining: 7")
        }
        _ => Reply::json(json!({})).header("Date: Sat, 21 Nov 2020 05:00:00 GMT"),
    });
    let mut command = stub.loupe(&["doctor", "--json"]);
    command.env("LOUPE_SESSION_TOKEN", "old");
    let ran = run(command);
    let checks: Value = serde_json::from_str(&ran.stdout).unwrap();
    let ok = |name: &str| {
        let of_name = |check: &&Value| check["name"] == name;
        checks["checks"].as_array().unwrap().iter().find(of_name).map(|check| check["ok"] == true)
    };
    assert_eq!((ok("server"), ok("api key"), ok("rate limit")), (Some(true), Some(true), Some(true)));
    assert_eq!((ok("clock"), ok("session")), (Some(false), Some(false)));
    assert_eq!(ran.code, 6, "{}", ran.stderr);
}
