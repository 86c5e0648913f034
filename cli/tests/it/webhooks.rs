//! Tests of webhooks: requests to the server and their output.

use serde_json::{Value, json};

use crate::stub::{Reply, Stub, run};

const WEBHOOK_ID: &str = "01980f6e-0000-7000-8000-00005e1f09aa";
const DELIVERY_ID: &str = "01980f6e-0000-7000-8000-0000c07b44d1";
const WEBHOOK_ADDRESS: &str = "https://hooks.example.com/loupe";

fn webhook() -> Value {
    json!({
        "id": WEBHOOK_ID, "url": WEBHOOK_ADDRESS, "events": ["failure.detected"], "enabled": false,
        "disabled_reason": "the receiver returned status 410", "last_delivery_at": null,
        "created_at": "2026-11-21T14:00:00.000000Z", "updated_at": "2026-11-21T14:00:00.000000Z",
    })
}

fn delivery() -> Value {
    json!({
        "id": DELIVERY_ID, "webhook_id": WEBHOOK_ID, "event_id": "01980f6e-0000-7000-8000-000000000009",
        "event_type": "failure.detected", "status": "pending",
        "attempts": [
            { "attempt": 1, "started_at": "2026-11-21T14:00:00.000000Z", "status": 0, "latency_ms": 10000,
              "error": "no response within 10 s", "response_body": null },
            { "attempt": 2, "started_at": "2026-11-21T14:00:05.000000Z", "status": 503, "latency_ms": 12,
              "error": "the receiver returned status 503", "response_body": "busy" },
        ],
        "next_attempt_at": "2026-11-21T14:01:05.000000Z", "created_at": "2026-11-21T14:00:00.000000Z",
        "completed_at": null,
    })
}

fn page(plural: &str, row: Value) -> Reply {
    Reply::json(json!({ plural: [row], "has_more": false, "next_cursor": null }))
}

/// Starts a server whose webhook returns this status to tests.
fn stub(status: u16) -> Stub {
    Stub::new(move |request, _| match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/v1/webhooks") => page("webhooks", webhook()),
        ("POST", "/v1/webhooks") => Reply::status(201, webhook()),
        ("GET" | "PATCH", path) if path.ends_with(WEBHOOK_ID) => Reply::json(webhook()),
        ("POST", path) if path.ends_with("/test") => {
            let mut result = json!({ "status": status, "body": "pong\n" });
            if status == 0 {
                result = json!({ "status": 0, "body": "", "error": "the connection was refused" });
            }
            Reply::json(result)
        }
        ("POST", path) if path.ends_with("/rotate-secret") => Reply::json(json!({
            "id": WEBHOOK_ID, "previous_secret_expires_at": "2026-11-22T14:00:00.000000Z",
        })),
        ("GET", path) if path.ends_with("/deliveries") => page("deliveries", delivery()),
        ("POST", path) if path.ends_with(&format!("{DELIVERY_ID}/redeliver")) => {
            Reply::status(202, delivery())
        }
        ("DELETE", _) => Reply::status(204, Value::Null),
        _ => Reply::error(404, "not_found"),
    })
}

fn last_body(stub: &Stub) -> Value {
    serde_json::from_str(&stub.requests().last().unwrap().body).unwrap()
}

#[test]
fn webhooks_are_listed_and_shown_in_each_format() {
    let stub = stub(200);
    let table = run(stub.loupe(&["webhooks", "list", "-o", "table"])).stdout;
    assert!(table.contains("disabled") && table.contains(WEBHOOK_ADDRESS), "{table}");
    assert_eq!(run(stub.loupe(&["webhooks", "list", "-o", "id"])).stdout, format!("{WEBHOOK_ID}\n"));
    for wanted in [WEBHOOK_ID, "5e1f09aa", WEBHOOK_ADDRESS] {
        let sheet = run(stub.loupe(&["webhooks", "get", wanted, "-o", "table"])).stdout;
        assert!(sheet.contains("status 410") && sheet.contains("failure.detected"), "{sheet}");
    }
    let ran = run(stub.loupe(&["webhooks", "get", "nope", "--json"]));
    assert_eq!(ran.code, 11);
    assert!(ran.stderr.contains("loupe webhooks list"), "{}", ran.stderr);
}

#[test]
fn webhook_is_created_with_the_secret_of_a_file_or_the_environment() {
    let stub = stub(200);
    std::fs::write(stub.dir.path().join("hook.key"), "0123456789abcdef\r\n").unwrap();
    let args = ["webhooks", "create", WEBHOOK_ADDRESS, "--events", "failure.detected,ping", "--disabled"];
    let ran = run(stub.loupe(&[&args[..], &["--secret-file", "hook.key"]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let wanted = json!({
        "url": WEBHOOK_ADDRESS, "secret": "0123456789abcdef", "events": ["failure.detected", "ping"], "enabled": false,
    });
    assert_eq!(last_body(&stub), wanted);
    assert!(!ran.stdout.contains("0123456789abcdef") && !ran.stderr.contains("0123456789abcdef"));

    let mut command = stub.loupe(&["webhooks", "create", WEBHOOK_ADDRESS]);
    command.env("LOUPE_WEBHOOK_SECRET", "fedcba9876543210");
    assert_eq!(run(command).code, 0);
    assert_eq!(last_body(&stub), json!({ "url": WEBHOOK_ADDRESS, "secret": "fedcba9876543210" }));

    let posts = stub.count("POST");
    let ran = run(stub.loupe(&["webhooks", "create", WEBHOOK_ADDRESS]));
    assert_eq!((ran.code, stub.count("POST")), (2, posts));
    for part in ["--generate-secret", "--secret-file", "LOUPE_WEBHOOK_SECRET"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    assert_eq!(run(stub.loupe(&["webhooks", "create", WEBHOOK_ADDRESS, "--events", "later"])).code, 2);
}

#[test]
fn generated_secret_is_shown_once_or_stored_in_a_private_file() {
    let stub = stub(200);
    let ran = run(stub.loupe(&["webhooks", "create", WEBHOOK_ADDRESS, "--generate-secret"]));
    let secret = last_body(&stub)["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_") && secret.len() == 50, "{secret}");
    assert_eq!((ran.code, ran.stdout), (0, format!("{secret}\n")));

    let ran = run(stub.loupe(&["webhooks", "create", WEBHOOK_ADDRESS, "--generate-secret", "--json"]));
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&shown["secret"], &shown["id"]), (&last_body(&stub)["secret"], &json!(WEBHOOK_ID)));
    assert_ne!(shown["secret"], json!(secret));

    let args =
        ["webhooks", "create", WEBHOOK_ADDRESS, "--generate-secret", "--secret-file", "new.key", "--json"];
    let ran = run(stub.loupe(&args));
    let secret = last_body(&stub)["secret"].as_str().unwrap().to_owned();
    assert!(!ran.stdout.contains(&secret) && !ran.stderr.contains(&secret));
    assert_eq!(std::fs::read_to_string(stub.dir.path().join("new.key")).unwrap(), format!("{secret}\n"));
    let posts = stub.count("POST");
    assert_eq!((run(stub.loupe(&args)).code, stub.count("POST")), (1, posts), "the file is kept");

    let ran = run(stub.loupe(&["webhooks", "create", WEBHOOK_ADDRESS, "--generate-secret", "-n", "--json"]));
    assert!(ran.stdout.contains("***") && !ran.stdout.contains("whsec_"), "{}", ran.stdout);
}

#[test]
fn rejected_webhook_addresses_are_explained() {
    for (code, part) in [
        ("webhook.url.not_https", "loupe help webhooks"),
        ("webhook.url.private_ip", "loupe help webhooks"),
        ("webhook.url.unresolvable", "spelling of the host name"),
    ] {
        let stub = Stub::new(move |_, _| {
            let body = json!({ "error": code, "code": code, "request_id": "r-1", "message": "not usable" });
            Reply::status(422, body)
        });
        let ran = run(stub.loupe(&["webhooks", "create", "https://x", "--generate-secret"]));
        assert_eq!((ran.code, ran.stdout.as_str()), (13, ""));
        for part in [part, code, "not usable", "r-1"] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
    }
}

#[test]
fn webhook_is_changed_switched_and_deleted_after_confirmation() {
    let stub = stub(200);
    let args = ["webhooks", "update", "5e1f09aa", "--address", "https://x.example", "--events", "ping"];
    assert_eq!(run(stub.loupe(&args)).code, 0);
    assert_eq!(last_body(&stub), json!({ "url": "https://x.example", "events": ["ping"] }));
    for (verb, enabled) in [("enable", true), ("disable", false)] {
        assert_eq!(run(stub.loupe(&["webhooks", verb, WEBHOOK_ADDRESS])).code, 0);
        assert_eq!(last_body(&stub), json!({ "enabled": enabled }));
    }
    let requests = stub.requests().len();
    assert_eq!(run(stub.loupe(&["webhooks", "update", "5e1f09aa"])).code, 2);
    assert_eq!(run(stub.loupe(&["webhooks", "delete", "5e1f09aa"])).code, 2);
    assert_eq!(stub.requests().len(), requests);

    let mut command = stub.session(&["webhooks", "delete", "5e1f09aa", "--yes", "--json"]);
    command.env("LOUPE_API_KEY", "lp_test");
    let ran = run(command);
    assert_eq!(
        serde_json::from_str::<Value>(&ran.stdout).unwrap(),
        json!({ "id": WEBHOOK_ID, "deleted": true })
    );
    let sent = stub.requests().last().unwrap().header("authorization").unwrap().to_owned();
    assert_eq!(sent, "Bearer session", "only owners may delete webhooks");
}

#[test]
fn rotated_secret_is_generated_here_or_read_from_a_file() {
    let stub = stub(200);
    let mut command = stub.loupe(&["webhooks", "rotate-secret", "5e1f09aa"]);
    command.env("LOUPE_WEBHOOK_SECRET", "the old secret of it");
    let ran = run(command);
    let secret = last_body(&stub)["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"), "{secret}");
    assert_eq!(ran.stdout, format!("{secret}\n"));
    assert!(ran.stderr.contains("2026-11-22"), "{}", ran.stderr);

    std::fs::write(stub.dir.path().join("hook.key"), "0123456789abcdef").unwrap();
    let ran =
        run(stub.loupe(&["webhooks", "rotate-secret", WEBHOOK_ID, "--secret-file", "hook.key", "--json"]));
    assert_eq!(last_body(&stub), json!({ "secret": "0123456789abcdef" }));
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["id"], WEBHOOK_ID);
}

#[test]
fn webhook_test_fails_unless_the_receiver_accepts_it() {
    for (status, code, part) in
        [(200, 0, ""), (204, 0, ""), (301, 6, "redirects"), (500, 6, "status 500"), (0, 6, "refused")]
    {
        let stub = stub(status);
        let ran = run(stub.loupe(&["webhooks", "test", "5e1f09aa", "--json"]));
        assert_eq!(ran.code, code, "{status}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{status}: {}", ran.stderr);
        assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["status"], status);
    }
    let sheet = run(stub(500).loupe(&["webhooks", "test", WEBHOOK_ID, "-o", "table"])).stdout;
    assert!(sheet.contains("status 500") && sheet.contains("pong"), "{sheet}");
}

#[test]
fn deliveries_are_listed_and_delivered_again() {
    let stub = stub(200);
    let table = run(stub.loupe(&["webhooks", "deliveries", WEBHOOK_ADDRESS, "-o", "table"])).stdout;
    assert!(table.contains("503") && table.contains("pending") && table.contains("c07b44d1"), "{table}");
    let ran = run(stub.loupe(&[
        "webhooks",
        "deliveries",
        WEBHOOK_ID,
        "--json",
        "--jq",
        ".deliveries[0].attempts[1].status",
    ]));
    assert_eq!(ran.stdout, "503\n");

    let ran = run(stub.loupe(&["webhooks", "redeliver", "5e1f09aa", "c07b44d1", "-o", "id"]));
    assert_eq!((ran.code, ran.stdout), (0, format!("{DELIVERY_ID}\n")));
    assert_eq!(run(stub.loupe(&["webhooks", "redeliver", WEBHOOK_ID, "00000000"])).code, 11);
    assert_eq!(run(stub.loupe(&["webhooks", "redeliver", WEBHOOK_ID, "x"])).code, 2);
}
