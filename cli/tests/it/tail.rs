//! Tests of `traces tail`, by stream and by polling.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use serde_json::Value;

use crate::stub::{Reply, Stub, run, trace, traces};

fn event(n: usize) -> String {
    format!("id: {n}\nevent: trace\ndata: {}\n\n", trace(n))
}

fn ids(stdout: &str) -> Vec<u64> {
    let of = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    stdout.lines().map(|line| u64::from_str_radix(&of(line)[28..], 16).unwrap()).collect()
}

#[test]
fn stream_is_followed_across_a_lost_connection() {
    let streams = AtomicUsize::new(0);
    let stub = Stub::new(move |request, _| match request.path.as_str() {
        "/v1/traces/stream" => match streams.fetch_add(1, SeqCst) {
            0 => Reply::events(&[": hello\n\n".to_owned(), event(5), event(5), event(6)]),
            _ => Reply::events(&[event(6), event(8)]),
        },
        // Trace 1 existed before; trace 7 arrived while the connection was lost.
        _ if streams.load(SeqCst) < 2 => Reply::json(traces([1], None)),
        _ => Reply::json(traces([7, 6, 5, 1], None)),
    });
    let ran = run(stub.loupe(&["traces", "tail", "-o", "ndjson", "--max", "4"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ids(&ran.stdout), [5, 6, 7, 8]);
    for note in ["following all projects, live", "connection lost", "connected again after"] {
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
    }
}

#[test]
fn lagged_stream_is_resumed_after_its_cursor() {
    let streams = AtomicUsize::new(0);
    let stub = Stub::new(move |request, _| match request.path.as_str() {
        "/v1/traces/stream" => match streams.fetch_add(1, SeqCst) {
            0 => {
                Reply::events(&[event(5), "id: c5\nevent: lagged\ndata: {\"cursor\":\"c5\"}\n\n".to_owned()])
            }
            _ if request.header("last-event-id") == Some("c5") => Reply::events(&[event(6), event(7)]),
            _ => Reply::error(400, "invalid_cursor"),
        },
        _ => Reply::json(traces([1], None)),
    });
    let ran = run(stub.loupe(&["traces", "tail", "-o", "ndjson", "--max", "3"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ids(&ran.stdout), [5, 6, 7]);
    assert!(ran.stderr.contains("fell behind") && !ran.stderr.contains("connection lost"), "{}", ran.stderr);
}

#[test]
fn list_is_polled_without_a_stream() {
    let lists = AtomicUsize::new(0);
    let stub = Stub::new(move |request, _| match request.path.as_str() {
        "/v1/traces/stream" => Reply::error(404, "not_found"),
        _ => match lists.fetch_add(1, SeqCst) {
            0 | 1 => Reply::json(traces([1], None)),
            2 => Reply::json(traces([3, 2, 1], None)),
            _ => Reply::json(traces([4, 3, 2, 1], None)),
        },
    });
    let ran = run(stub.loupe(&["traces", "tail", "-o", "ndjson", "--max", "3", "--interval", "200ms"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ids(&ran.stdout), [2, 3, 4]);
    assert!(ran.stderr.contains("every 200ms"), "{}", ran.stderr);
}

#[test]
fn tail_since_prints_past_traces_until_its_time_limit() {
    let stub = Stub::new(|request, _| match request.path.as_str() {
        "/v1/traces/stream" => Reply::error(404, "not_found"),
        _ => Reply::json(traces([2, 1], None)),
    });
    let args = ["traces", "tail", "-o", "ndjson", "--since", "1h", "--for", "500ms", "-q"];
    let ran = run(stub.loupe(&args));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(ids(&ran.stdout), [1, 2]);
}

#[test]
fn missing_match_is_code_7() {
    let stub = Stub::new(|request, _| match request.path.as_str() {
        "/v1/traces/stream" => Reply::error(404, "not_found"),
        _ => Reply::json(traces([], None)),
    });
    let ran = run(stub.loupe(&["traces", "tail", "--exit-on", "match", "--for", "300ms"]));
    assert_eq!(ran.code, 7, "{}", ran.stderr);
}

#[test]
fn expired_session_is_code_4_with_the_newest_trace() {
    let lists = AtomicUsize::new(0);
    let stub = Stub::new(move |request, _| match request.path.as_str() {
        "/v1/traces/stream" => Reply::error(404, "not_found"),
        _ if lists.fetch_add(1, SeqCst) < 2 => Reply::json(traces([3], None)),
        _ => Reply::error(401, "unauthorized"),
    });
    let ran = run(stub.loupe(&["traces", "tail", "--interval", "200ms"]));
    assert_eq!(ran.code, 4);
    assert!(ran.stderr.contains("2026-11-21T14:00:03"), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn interrupted_tail_ends_with_code_130() {
    let stub = Stub::new(|request, _| match request.path.as_str() {
        "/v1/traces/stream" => Reply::error(404, "not_found"),
        _ => Reply::json(traces([], None)),
    });
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_loupe"))
        .args(["traces", "tail"])
        .env("LOUPE_URL", stub.url())
        .env("LOUPE_CONFIG_DIR", stub.dir.path())
        .env("LOUPE_API_KEY", "lp_test")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The note is printed when following begins.
    let mut note = String::new();
    let stderr = child.stderr.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut note).unwrap();
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
