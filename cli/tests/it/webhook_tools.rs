//! Tests of the tools for receivers of webhooks: `verify`, `trigger` and `listen`, also with each other.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, ChildStdout, Command, Stdio},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::stub::{Ran, Reply, Request, Stub, run};

const WEBHOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// Body, secret and signature of test case 2 of RFC 4231.
const KNOWN_BODY: &str = "what do ya want for nothing?";
const KNOWN_SECRET: &str = "Jefe";
const KNOWN_SIGNATURE: &str = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";

const TEMPORARY_WEBHOOK_ID: &str = "01980f6e-0000-7000-8000-00005e1f09aa";

fn stub() -> Stub {
    Stub::new(|_, _| Reply::json(json!({ "received": true })))
}

fn verify(stub: &Stub, signature: &str, secret: &str, body: &str) -> Ran {
    let mut command = stub.bare(&["webhooks", "verify", "--signature", signature, "--json"]);
    command.env("LOUPE_WEBHOOK_SECRET", secret).write_stdin(body);
    run(command)
}

fn trigger(stub: &Stub, to: &str, secret: &str, more: &[&str]) -> Ran {
    let args = [&["webhooks", "trigger", "failure.detected", "--to", to, "--json"][..], more].concat();
    let mut command = stub.bare(&args);
    command.env("LOUPE_WEBHOOK_SECRET", secret);
    run(command)
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn verify_accepts_a_known_signature_and_refuses_a_changed_body() {
    let stub = stub();
    let ran = verify(&stub, KNOWN_SIGNATURE, KNOWN_SECRET, KNOWN_BODY);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(parsed(&ran.stdout)["valid"], true);

    let ran = verify(&stub, KNOWN_SIGNATURE, KNOWN_SECRET, "what do ya want for nothing!");
    assert_eq!(ran.code, 6);
    let shown = parsed(&ran.stdout);
    assert_eq!((&shown["valid"], &shown["cause"]), (&json!(false), &Value::Null));
    assert_ne!(shown["computed"], shown["received"]);
    assert!(ran.stderr.contains("no known mistake fits"), "{}", ran.stderr);
    assert!(stub.requests().is_empty());
}

/// Returns the headers of a request that was signed at this time, in seconds since 1970.
fn signed_headers(time: u64) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(KNOWN_SECRET.as_bytes()).unwrap();
    mac.update(format!("event.{time}.{KNOWN_BODY}").as_bytes());
    let signature = BASE64_STANDARD.encode(mac.finalize().into_bytes());
    format!(
        "X-Service-Signature: {KNOWN_SIGNATURE}\nwebhook-id: event\nwebhook-timestamp: {time}\n\
         webhook-signature: v1,{signature}\n"
    )
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the command compares timestamps with the clock of the machine"
)]
fn verify_refuses_old_requests_with_a_tolerance() {
    let stub = stub();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let verify = |headers: &str, flags: &[&str]| {
        std::fs::write(stub.dir.path().join("headers"), headers).unwrap();
        let mut command =
            stub.bare(&[&["webhooks", "verify", "--headers", "headers", "--json"][..], flags].concat());
        command.env("LOUPE_WEBHOOK_SECRET", KNOWN_SECRET).write_stdin(KNOWN_BODY);
        run(command)
    };
    let (old, new) = (signed_headers(now - 86_400), signed_headers(now));
    assert_eq!(verify(&old, &[]).code, 0, "captured requests are old");
    assert_eq!(verify(&new, &["--tolerance", "5m"]).code, 0);
    let ran = verify(&old, &["--tolerance", "5m"]);
    assert_eq!(ran.code, 6);
    assert!(ran.stderr.contains("the timestamp is 24h old; the tolerance is 5m"), "{}", ran.stderr);
    assert_eq!(parsed(&ran.stdout)["valid"], false);
    let changed = old.replace(&(now - 86_400).to_string(), &now.to_string());
    let ran = verify(&changed, &["--tolerance", "5m"]);
    assert!(ran.code == 6 && ran.stderr.contains("not signed"), "{} {}", ran.code, ran.stderr);
    assert_eq!(verify(&new, &["--tolerance", "soon"]).code, 2);
}

#[test]
fn verify_names_the_likely_mistake_without_accepting_it() {
    let stub = stub();
    let digits = &KNOWN_SIGNATURE[7..];
    for (signature, secret, body, part) in [
        (digits, KNOWN_SECRET, KNOWN_BODY, "prefix `sha256=` is missing"),
        (&format!("sha256={}", digits.to_uppercase()), KNOWN_SECRET, KNOWN_BODY, "upper case"),
        (KNOWN_SIGNATURE, "Jefe\n", KNOWN_BODY, "line break"),
        (KNOWN_SIGNATURE, "\"Jefe\"", KNOWN_BODY, "quotes"),
        (KNOWN_SIGNATURE, KNOWN_SECRET, "what do ya want for nothing?\n", "line break"),
        (KNOWN_SIGNATURE, KNOWN_SECRET, "", "body is empty"),
    ] {
        let ran = verify(&stub, signature, secret, body);
        assert_eq!(ran.code, 6, "{signature} {secret:?} {body:?}");
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

#[test]
fn verify_reads_secret_and_headers_from_files() {
    let stub = stub();
    std::fs::write(stub.dir.path().join("hook.key"), format!("{KNOWN_SECRET}\n")).unwrap();
    std::fs::write(
        stub.dir.path().join("001.headers"),
        format!("X-Service-Event: ping\r\nX-Service-Signature: {KNOWN_SIGNATURE}\r\n"),
    )
    .unwrap();
    let args = ["webhooks", "verify", "--headers", "001.headers", "--secret-file", "hook.key", "-o", "table"];
    let mut command = stub.bare(&args);
    command.write_stdin(KNOWN_BODY);
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("the signature is valid"), "{}", ran.stdout);

    let ran = run(stub.bare(&["webhooks", "verify", "--signature", KNOWN_SIGNATURE]));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("LOUPE_WEBHOOK_SECRET"), "{}", ran.stderr);
    assert_eq!(run(stub.bare(&["webhooks", "verify"])).code, 2);
}

#[test]
fn trigger_posts_the_headers_of_the_server() {
    let stub = stub();
    let ran = trigger(&stub, &format!("{}/hook?a=1", stub.url()), WEBHOOK_SECRET, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown = parsed(&ran.stdout);
    assert_eq!((&shown["status"], &shown["body"]), (&json!(200), &json!("{\"received\":true}")));
    let requests = stub.requests();
    let request = requests.first().unwrap();
    assert_eq!((request.path.as_str(), request.query.as_str()), ("/hook", "a=1"));
    let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
    let body = parsed(&request.body);
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("x-service-event"), "failure.detected");
    assert_eq!(header("x-service-delivery"), shown["delivery_id"]);
    assert_eq!(header("webhook-id"), body["id"]);
    assert_eq!(header("webhook-id"), shown["event_id"]);
    assert_eq!(header("webhook-timestamp"), header("x-service-timestamp"));
    assert!(header("webhook-signature").starts_with("v1,"));
    for absent in ["authorization", "idempotency-key"] {
        assert_eq!(request.header(absent), None);
    }
    assert_eq!(
        (&body["type"], &body["data"]["failure"]["type"]),
        (&json!("failure.detected"), &json!("timeout"))
    );
    let ran = verify(&stub, &header("x-service-signature"), WEBHOOK_SECRET, &request.body);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn trigger_fails_unless_the_receiver_accepts_the_event() {
    let refusing = Stub::new(|_, _| Reply::status(401, json!({ "why": "unknown signature" })));
    let ran = trigger(&refusing, refusing.url(), WEBHOOK_SECRET, &[]);
    assert_eq!(ran.code, 6);
    let shown = parsed(&ran.stdout);
    assert_eq!((&shown["status"], &shown["body"]), (&json!(401), &json!("{\"why\":\"unknown signature\"}")));
    assert_eq!(refusing.count("POST"), 1, "a refused event is not sent again");

    // The port of a listener that has ended is free.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = trigger(&refusing, &format!("http://{port}/"), WEBHOOK_SECRET, &[]);
    assert_eq!((ran.code, &parsed(&ran.stdout)["status"]), (6, &json!(0)));
    assert!(ran.stderr.contains("could not be reached"), "{}", ran.stderr);

    for to in ["hooks.example.com", "ftp://127.0.0.1/"] {
        assert_eq!(trigger(&refusing, to, WEBHOOK_SECRET, &[]).code, 2, "{to}");
    }
    let ran = run(refusing.bare(&["webhooks", "trigger", "ping", "--to", refusing.url()]));
    assert_eq!(ran.code, 2, "the secret is missing");
}

#[test]
fn trigger_sends_given_data_and_shows_requests_without_sending() {
    let stub = stub();
    let args = ["webhooks", "trigger", "evaluation.failed", "--to", stub.url(), "--json"];
    let with_secret = |more: &[&str]| {
        let mut command = stub.bare(&[&args[..], more].concat());
        command.env("LOUPE_WEBHOOK_SECRET", WEBHOOK_SECRET);
        run(command)
    };
    let ran = with_secret(&[]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("--data"), "{}", ran.stderr);
    let shown = parsed(&with_secret(&["--data", "{\"a\": 1}", "-n"]).stdout);
    assert_eq!((&shown["method"], &shown["url"]), (&json!("POST"), &json!(stub.url())));
    assert!(shown["headers"]["x-service-signature"].as_str().unwrap().starts_with("sha256="));
    assert_eq!(parsed(shown["body"].as_str().unwrap())["data"], json!({ "a": 1 }));
    assert!(stub.requests().is_empty());
    assert_eq!(with_secret(&["--data", "{\"a\": 1}"]).code, 0);
    assert_eq!(parsed(&stub.requests()[0].body)["data"], json!({ "a": 1 }));
}

/// A running `webhooks listen --json`.
struct Listener {
    child: Child,
    lines: BufReader<ChildStdout>,
    url: String,
}

impl Listener {
    fn start(stub: &Stub, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_loupe"))
            .env_clear()
            .env("LOUPE_CONFIG_DIR", stub.dir.path())
            .env("LOUPE_WEBHOOK_SECRET", WEBHOOK_SECRET)
            .current_dir(stub.dir.path())
            .args(["webhooks", "listen", "--port", "0", "--for", "30s", "--json"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let ready = parsed(&line);
        assert_eq!(ready["ready"], true);
        Self { child, lines, url: ready["url"].as_str().unwrap().to_owned() }
    }

    /// Returns the next received delivery.
    fn delivery(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        parsed(&line)
    }

    /// Waits for the end; returns the exit code and stderr.
    fn end(mut self) -> (Option<i32>, String) {
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stderr)
    }
}

#[test]
fn listener_accepts_valid_signatures_and_refuses_invalid_ones() {
    let receiver = stub();
    let mut listener = Listener::start(
        &receiver,
        &["--count", "2", "--forward-to", &format!("{}/hook", receiver.url()), "--save", "in"],
    );
    assert_eq!(run(receiver.loupe(&["api", "GET", "/", "--url", &listener.url])).code, 13, "405 for GET");

    assert_eq!(trigger(&receiver, &listener.url, WEBHOOK_SECRET, &[]).code, 0);
    let delivery = listener.delivery();
    assert_eq!((&delivery["valid"], &delivery["header"]), (&json!(true), &json!("x-service-signature")));
    assert_eq!((&delivery["event"], &delivery["status"]), (&json!("failure.detected"), &json!(200)));
    assert_eq!(delivery["forward"]["status"], 200);

    let ran = trigger(&receiver, &listener.url, &format!("{WEBHOOK_SECRET}\n"), &[]);
    assert_eq!((ran.code, &parsed(&ran.stdout)["status"]), (6, &json!(401)));
    let delivery = listener.delivery();
    assert_eq!((&delivery["valid"], &delivery["signature"]), (&json!(false), &json!("BAD")));
    assert!(delivery["cause"].as_str().unwrap().contains("line break"), "{delivery}");
    assert_eq!(delivery["forward"], Value::Null);

    let (code, stderr) = listener.end();
    assert_eq!(code, Some(6));
    assert!(stderr.contains("1 of 2 deliveries had an invalid signature or timestamp"), "{stderr}");
    let forwarded: Vec<Request> = receiver.requests();
    assert_eq!(forwarded.len(), 1, "only the valid one");
    assert_eq!(forwarded[0].path, "/hook");
    assert!(forwarded[0].header("webhook-signature").is_some());

    // A saved delivery is verified from its files.
    for (number, code) in [("001", 0), ("002", 6)] {
        let headers = format!("in/{number}.headers");
        let mut command = receiver.bare(&["webhooks", "verify", "--headers", &headers]);
        let body = std::fs::read(receiver.dir.path().join(format!("in/{number}.body"))).unwrap();
        command.env("LOUPE_WEBHOOK_SECRET", WEBHOOK_SECRET).write_stdin(body);
        assert_eq!(run(command).code, code, "{number}");
    }
}

#[test]
fn listener_returns_requested_failures() {
    let stub = stub();
    for (args, status, seen) in [
        (&["--respond", "503"][..], json!(503), json!(503)),
        (&["--drop"], Value::Null, json!(0)),
        (&["--delay", "50ms"], json!(200), json!(200)),
    ] {
        let mut listener = Listener::start(&stub, &[args, &["--count", "1"]].concat());
        let ran = trigger(&stub, &listener.url, WEBHOOK_SECRET, &[]);
        assert_eq!(parsed(&ran.stdout)["status"], seen, "{args:?}");
        assert_eq!(listener.delivery()["status"], status, "{args:?}");
        assert_eq!(listener.end().0, Some(0), "{args:?}: the signature was valid");
    }
}

#[test]
fn listener_forwards_invalid_deliveries_only_on_request() {
    let receiver = Stub::new(|_, _| Reply::status(418, json!({ "tea": true })));
    let args = ["--count", "1", "--insecure-forward", "--forward-to", receiver.url()];
    let mut listener = Listener::start(&receiver, &args);
    let ran = trigger(&receiver, &listener.url, "another secret", &[]);
    let shown = parsed(&ran.stdout);
    assert_eq!((&shown["status"], &shown["body"]), (&json!(418), &json!("{\"tea\":true}")));
    let delivery = listener.delivery();
    assert_eq!((&delivery["valid"], &delivery["forward"]["status"]), (&json!(false), &json!(418)));
    assert_eq!((listener.end().0, receiver.count("POST")), (Some(6), 1));
    let ran = run(receiver.bare(&["webhooks", "listen", "--insecure-forward"]));
    assert_eq!(ran.code, 2);
}

#[test]
fn listener_refuses_large_bodies_and_counts_no_such_request() {
    let stub = stub();
    let listener = Listener::start(&stub, &["--count", "1"]);
    let large = "x".repeat((1 << 20) + 1);
    let mut command = stub.bare(&["api", "POST", "/", "--input", "-", "--url", &listener.url]);
    command.env("LOUPE_API_KEY", "lp_test").write_stdin(json!(large).to_string());
    // The listener may close the connection before the whole body is sent.
    assert!([13, 5].contains(&run(command).code));
    assert_eq!(trigger(&stub, &listener.url, WEBHOOK_SECRET, &[]).code, 0);
    assert_eq!(listener.end().0, Some(0));
}

#[test]
fn listener_ends_without_deliveries_with_the_code_of_its_limit() {
    let stub = stub();
    let listen = |args: &[&str]| {
        let mut command =
            stub.bare(&[&["webhooks", "listen", "--port", "0", "--for", "100ms"][..], args].concat());
        command.env("LOUPE_WEBHOOK_SECRET", WEBHOOK_SECRET);
        run(command)
    };
    let ran = listen(&[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("Listening on http://127.0.0.1:") && !ran.stderr.contains("warning"));
    assert_eq!(listen(&["--count", "1"]).code, 7);
    let ran = listen(&["--host", "0.0.0.0", "-q"]);
    assert!(ran.stderr.contains("warning: 0.0.0.0:"), "{}", ran.stderr);
}

/// Starts a listener with a temporary webhook, whose deletion gets this response.
fn start_with_temporary_webhook(deletion: Reply, more: &[&str]) -> (Stub, Child) {
    let stub = Stub::new(move |request, _| match request.method.as_str() {
        "POST" => Reply::status(201, json!({ "id": TEMPORARY_WEBHOOK_ID })),
        _ => deletion.clone(),
    });
    let child = Command::new(env!("CARGO_BIN_EXE_loupe"))
        .env_clear()
        .env("LOUPE_CONFIG_DIR", stub.dir.path())
        .env("LOUPE_URL", stub.url())
        .env("LOUPE_SESSION_TOKEN", "token")
        .args(["webhooks", "listen", "--port", "0", "--public-url", "https://tunnel.example.com/", "--json"])
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (stub, child)
}

fn requests_of(stub: &Stub) -> Vec<(String, String)> {
    stub.requests().iter().map(|it| (it.method.clone(), it.path.clone())).collect()
}

#[test]
fn temporary_webhook_is_deleted_at_the_end_and_after_signals() {
    let limits: [(&[&str], Option<&str>, i32); 3] =
        [(&["--for", "200ms"], None, 0), (&[], Some("-INT"), 130), (&[], Some("-TERM"), 143)];
    for (more, signal, code) in limits {
        let (stub, mut child) = start_with_temporary_webhook(Reply::status(204, Value::Null), more);
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(parsed(&line)["ready"], true);
        if let Some(signal) = signal {
            assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        }
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal:?}");
        let expected = [
            ("POST".to_owned(), "/v1/webhooks".to_owned()),
            ("DELETE".to_owned(), format!("/v1/webhooks/{TEMPORARY_WEBHOOK_ID}")),
        ];
        assert_eq!(requests_of(&stub), expected, "{signal:?}");
        let created = parsed(&stub.requests()[0].body);
        assert_eq!(created["url"], "https://tunnel.example.com/");
        assert!(created["secret"].as_str().unwrap().starts_with("whsec_"));
    }
}

#[test]
fn webhook_that_the_session_may_not_delete_is_named_at_the_end() {
    let forbidden = Reply::error(403, "error.forbidden");
    let (_stub, child) =
        start_with_temporary_webhook(forbidden, &["--for", "200ms", "--events", "evaluation.failed"]);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains(&format!("loupe webhooks delete {TEMPORARY_WEBHOOK_ID}")), "{stderr}");
}

#[test]
fn address_of_a_tunnel_excludes_a_chosen_secret() {
    let stub = stub();
    let listen = |args: &[&str]| run(stub.bare(&[&["webhooks", "listen", "--port", "0"][..], args].concat()));
    assert_eq!(listen(&["--public-url", "https://x.example/", "--secret-file", "hook.key"]).code, 2);
    assert_eq!(listen(&["--events", "failure.detected"]).code, 2);
    assert!(stub.requests().is_empty());
}
