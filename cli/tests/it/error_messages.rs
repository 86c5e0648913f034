//! Tests that errors are plain sentences without messages of libraries.

use stub::StubServer;

use crate::stub::{Ran, Reply, Stub, run};

/// Fragments that occur only in messages of libraries.
const LIBRARY_FRAGMENTS: [&str; 22] = [
    "os error",
    "expected ident",
    "expected value",
    "is not in 1..",
    "EOF while",
    "trailing characters",
    "invalid digit",
    "invalid type",
    "key must be",
    "missing field",
    "control character (",
    "error sending request",
    "tcp connect",
    "dns error",
    "lookup address",
    "hyper",
    "reqwest",
    "relative URL",
    "InvalidContentType",
    "builder error",
    "stream did not contain",
    "TOML parse error",
];

fn assert_plain_error(ran: &Ran, what: &str) {
    let text = format!("{}{}", ran.stdout, ran.stderr);
    for fragment in LIBRARY_FRAGMENTS {
        assert!(!text.contains(fragment), "{what}: `{fragment}` in {text}");
    }
    assert!(ran.code != 0, "{what}: {text}");
    assert!(ran.stderr.contains("error"), "{what}: {text}");
}

/// Starts a server that sends this response to every request, and returns its address.
fn raw(response: &'static [u8]) -> String {
    StubServer::new(move |_, _| Reply::raw(response)).url().to_owned()
}

#[test]
fn unreachable_server_errors_are_plain_sentences() {
    let stub = Stub::new(|_, _| Reply::error(404, "not_found"));
    let closed = "http://127.0.0.1:1".to_owned();
    for (url, expected, code) in [
        (closed, "the connection was refused", 5),
        ("http://no-such-host.invalid".to_owned(), "the name of the host can't be resolved", 5),
        (stub.url().replace("http:", "https:"), "does not answer in TLS", 5),
        (raw(b"SSH-2.0-OpenSSH_9.9\r\n"), "the response is not HTTP", 5),
        (raw(b""), "the connection was closed before the response was complete", 5),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{\"tra"), "before the response was complete", 5),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nnot found"), "not valid JSON", 1),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<!doctype"), "not valid JSON", 1),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{["), "not valid JSON", 1),
        ("nonsense".to_owned(), "must begin with http:// or https://", 2),
        ("http://".to_owned(), "names no host", 2),
        ("http://[::1".to_owned(), "not a valid IP address", 2),
        ("http://h:99999".to_owned(), "its port must be a number up to 65535", 2),
        ("http://exa mple".to_owned(), "its host is not a valid name", 2),
    ] {
        for command in [&["traces", "list"][..], &["doctor"], &["auth", "status"], &["metrics", "show"]] {
            let ran = run(stub.loupe(&[command, &["--url", &url, "--retries", "1"]].concat()));
            assert_plain_error(&ran, &format!("{command:?} at {url}"));
            // A health check parses no JSON.
            let exact = command[0] == "traces";
            assert!(!exact || ran.stderr.contains(expected), "{url}: {}", ran.stderr);
            assert!(!exact || ran.code == code, "{url}: {} {}", ran.code, ran.stderr);
        }
    }
}

#[test]
fn invalid_values_and_files_are_plain_sentences() {
    let stub = Stub::new(|_, _| Reply::error(404, "not_found"));
    let folder = stub.dir.path();
    std::fs::write(folder.join("bad.json"), "{\"a\": nope}").unwrap();
    std::fs::write(folder.join("half.json"), "{\"a\": ").unwrap();
    std::fs::write(folder.join("latin"), b"{\"a\": \"\xe9\"}").unwrap();
    for arguments in [
        &["traces", "list", "-L", "0"][..],
        &["traces", "list", "-L", "9999999999"],
        &["traces", "list", "-L", "many"],
        &["traces", "list", "--retries", "x"],
        &["traces", "list", "--retries", "0"],
        &["traces", "list", "--timeout", "soon"],
        &["traces", "list", "--jq", ".["],
        &["traces", "tail", "--max", "0"],
        &["traces", "get", "c07b44d1", "--width", "-1"],
        &["traces", "get", "c07b44d1", "--width", "x"],
        &["traces", "send", "bad.json"],
        &["traces", "send", "half.json"],
        &["traces", "send", "latin"],
        &["traces", "send", "missing.json"],
        &["traces", "send", "."],
        &["traces", "send", "--otlp", "bad.json"],
        &["traces", "send", "--otlp", "half.json"],
        &["traces", "send", "--otlp", "."],
        &["traces", "export", "missing/folder/file"],
        &["api", "POST", "/v1/ingest", "--input", "missing.json"],
        &["search", "--vector", "bad.json"],
        &["search", "--vector", "missing.json"],
        &["search", "--vector", "latin"],
        &["feedback", "add", "c07b44d1", "--label", "good", "--metadata", "{a"],
        &["feedback", "add", "c07b44d1", "--label", "good", "--metadata", "[1]"],
        &["evals", "run", "c07b44d1", "--metric", "toxicity", "--config", "{a"],
        &["evals", "run", "c07b44d1", "--metric", "toxicity", "--config", "missing.json"],
        &["evals", "list", "--max-score", "x"],
        &["evaluators", "create", "x", "--rubric", "missing.txt"],
        &["evaluators", "create", "x", "--checks", "[{]"],
        &["projects", "create", "x", "--retention-days", "x"],
        &["rules", "create", "--metric", "toxicity", "--sample-rate", "x"],
        &["metrics", "show", "--fail-if", "error_rate>x"],
        &["man", "--dir", "bad.json"],
        &["man", "--dir", "bad.json/below"],
    ] {
        assert_plain_error(&run(stub.loupe(arguments)), &format!("{arguments:?}"));
    }
    for (name, value) in [("LOUPE_RETRIES", "x"), ("LOUPE_TIMEOUT", "x"), ("LOUPE_API_KEY_FILE", "missing")] {
        let mut command = stub.bare(&["traces", "list"]);
        command.env(name, value);
        assert_plain_error(&run(command), name);
    }
    for file in ["config.toml", "credentials.toml", ".loupe.toml"] {
        for content in ["current = \n", "contexts = 7\n", "current = [1"] {
            std::fs::write(folder.join(file), content).unwrap();
            let ran = run(stub.loupe(&["traces", "list"]));
            assert_plain_error(&ran, &format!("{file}: {content:?}"));
            std::fs::remove_file(folder.join(file)).unwrap();
        }
    }
}
