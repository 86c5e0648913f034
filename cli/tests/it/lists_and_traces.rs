//! Tests of lists and single traces: formats, filters, exit codes and errors.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::stub::{Reply, Stub, run, trace, traces};

fn pages() -> Stub {
    Stub::new(|request, _| match request.path.as_str() {
        "/v1/traces" if request.query.contains("cursor=two") => Reply::json(traces(3..5, None)),
        "/v1/traces" => Reply::json(traces(0..3, Some("two"))),
        "/v1/projects" => Reply::json(json!({ "projects": [], "has_more": false, "next_cursor": null })),
        _ => Reply::error(404, "not_found"),
    })
}

#[test]
fn json_list_is_one_document_with_unknown_fields() {
    let stub = pages();
    for args in [&["traces", "list", "--json"][..], &["traces", "list", "--all", "--json"]] {
        let ran = run(stub.loupe(args));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(document["traces"][0]["later_field"]["kept"], true);
        assert_eq!(document["traces"].as_array().unwrap().len(), 5);
        assert_eq!(document["has_more"], false);
    }
    assert!(stub.requests().iter().all(|request| request.header("authorization") == Some("Bearer lp_test")));
}

#[test]
fn limited_list_prints_the_next_cursor() {
    let stub = Stub::new(|_, _| Reply::json(traces(0..2, Some("next"))));
    let ran = run(stub.loupe(&["traces", "list", "-L", "2", "-o", "id"]));
    assert_eq!(ran.stdout.lines().count(), 2);
    assert!(ran.stderr.contains("--cursor next"), "{}", ran.stderr);
    assert!(stub.requests()[0].query.contains("limit=2"));
}

#[test]
fn default_format_of_a_pipe_is_tsv() {
    let stub = pages();
    let ran = run(stub.loupe(&["traces", "list", "--all"]));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 6);
    assert!(lines[0].starts_with("id\tstarted_at\terror\tname\tmodel\tlatency_ms"), "{}", lines[0]);
    assert!(lines[1].contains("trace ⟦ESC⟧[31m0") && !ran.stdout.contains('\u{1b}'));
}

#[test]
fn fields_are_written_in_the_requested_order() {
    let stub = pages();
    let ran = run(stub.loupe(&["traces", "list", "-o", "ndjson", "--fields", "name,id,tags"]));
    let first = ran.stdout.lines().next().unwrap();
    assert!(first.starts_with("{\"name\":") && first.ends_with("\"tags\":[\"env:prod\"]}"), "{first}");
    let ran = run(stub.loupe(&["traces", "list", "-o", "csv", "--fields", "latency_ms,id"]));
    assert!(ran.stdout.starts_with("latency_ms,id\r\n1840,"), "{}", ran.stdout);
}

#[test]
fn unknown_field_error_lists_the_fields() {
    let stub = pages();
    let ran = run(stub.loupe(&["traces", "list", "--fields", "nope"]));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("latency_ms"));
    assert!(stub.requests().is_empty());
}

#[test]
fn complete_texts_are_requested_if_they_are_written() {
    let stub = pages();
    for (args, whole) in [
        (&["traces", "list", "-o", "ndjson", "-L", "1"][..], true),
        (&["traces", "list", "-o", "csv", "--fields", "id,output", "-L", "1"], true),
        (&["traces", "list", "-L", "1"], false),
    ] {
        run(stub.loupe(args));
        let query = stub.requests().last().unwrap().query.clone();
        assert_eq!(!query.contains("preview"), whole, "{args:?}: {query}");
    }
}

#[test]
fn jq_programs_run_without_jq() {
    let ran = run(pages().loupe(&["traces", "list", "--jq", ".traces[0].id", "--raw"]));
    assert_eq!(ran.stdout, "01980f6e-0000-7000-8000-000000000000\n");
}

#[test]
fn invalid_filter_is_marked_with_a_caret() {
    let stub = pages();
    let ran = run(stub.loupe(&["traces", "list", "--filter", "error:true latncy:>2s"]));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("  error:true latncy:>2s\n             ^\n"), "{}", ran.stderr);
    assert_eq!(run(stub.loupe(&["traces", "list", "--tag", "env"])).code, 2);
    assert!(stub.requests().is_empty());
}

#[test]
fn filter_flags_and_filter_text_are_equivalent() {
    let stub = pages();
    run(stub.loupe(&["traces", "list", "--filter", "latency:>=2s tag:env=prod error:true"]));
    run(stub.loupe(&["traces", "list", "--latency-min", "2s", "--tag", "env=prod", "--error"]));
    let mut queries: Vec<Vec<String>> =
        stub.requests().iter().map(|it| it.query.split('&').map(str::to_owned).collect()).collect();
    queries.iter_mut().for_each(|query| query.sort());
    assert_eq!(queries[0], queries[2]);
    assert!(queries[0].contains(&"latency_min=2000".to_owned()), "{queries:?}");
}

#[test]
fn project_is_found_by_name() {
    let stub = Stub::new(|request, _| match request.path.as_str() {
        "/v1/projects" => {
            Reply::json(json!({ "projects": [project("bot")], "has_more": false, "next_cursor": null }))
        }
        _ => Reply::json(traces([], None)),
    });
    let ran = run(stub.loupe(&["traces", "list", "-p", "bot", "--json"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("no traces"));
    assert!(stub.requests()[1].query.contains("project_id=01980f6e-0000-7000-8000-000000000001"));
    assert_eq!(run(stub.loupe(&["traces", "list", "-p", "none"])).code, 11);
}

fn project(name: &str) -> Value {
    json!({
        "id": "01980f6e-0000-7000-8000-000000000001", "name": name, "status": "active",
        "prompt_autoship_enabled": false, "retention_days": null, "archived_at": null,
        "created_at": "2026-11-21T14:00:00Z", "updated_at": "2026-11-21T14:00:00Z",
    })
}

#[test]
fn trace_is_drawn_as_a_tree_or_written_as_json() {
    let stub = Stub::new(|request, _| match request.path.as_str() {
        "/v1/traces" => Reply::json(traces([7], None)),
        _ => {
            let mut trace = trace(7);
            trace["usage_details"] = json!({ "cached_input_tokens": 512, "reasoning_tokens": 64 });
            trace["spans"] = json!([
                { "id": "a", "name": "agent", "type": "other", "parent_span_id": null, "latency_ms": 1000, "error": null, "start_time": "2026-11-21T14:00:00Z" },
                { "id": "b", "name": "decide", "type": "llm", "parent_span_id": "a", "latency_ms": 500, "error": "x", "start_time": "2026-11-21T14:00:00.5Z" },
            ]);
            Reply::json(trace)
        }
    });
    let ran = run(stub.loupe(&["traces", "get", "00000007", "-o", "table", "--width", "100"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("└─ decide ✗") && ran.stdout.contains("error     timeout"), "{}", ran.stdout);
    assert!(ran.stdout.contains("  usage     512 cached, 64 reasoning\n"), "{}", ran.stdout);
    assert_eq!(stub.requests()[1].path, "/v1/traces/01980f6e-0000-7000-8000-000000000007");
    let ran = run(stub.loupe(&["traces", "get", "0123456789abcdef0123456789abcdef", "--json"]));
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&shown["spans"][1]["name"], &shown["usage_details"]["reasoning_tokens"]),
        (&json!("decide"), &json!(64))
    );
    assert_eq!(stub.requests().last().unwrap().path, "/v1/traces/0123456789abcdef0123456789abcdef");
}

#[test]
fn trace_is_shown_with_its_input_and_output() {
    let stub = Stub::new(|_, _| {
        let mut trace = trace(7);
        trace["input"] = json!(r#"[{"role":"user","content":"Where is my order?\nIt is late."}]"#);
        let lines: Vec<String> = (0..40).map(|it| format!("line {it}")).collect();
        trace["output"] = json!(lines.join("\n"));
        trace["spans"] = json!([]);
        Reply::json(trace)
    });
    let get = |arguments: &[&str]| {
        let id = "01980f6e-0000-7000-8000-000000000007";
        let ran =
            run(stub.loupe(&[&["traces", "get", id, "-o", "table", "--width", "80"], arguments].concat()));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    let short = get(&[]);
    assert!(short.contains("  input     user: Where is my order?\n            It is late.\n"), "{short}");
    assert!(short.contains("  output    line 0\n") && !short.contains("line 39"), "{short}");
    assert!(short.contains("28 more lines; --full shows them"), "{short}");
    let full = get(&["--full"]);
    assert!(full.contains("line 39\n") && !full.contains("more lines"), "{full}");
}

#[test]
fn search_without_a_provider_is_not_retried() {
    let stub = Stub::new(|_, _| Reply::error(502, "upstream_failed"));
    let ran = run(stub.loupe(&["search", "refunds"]));
    assert_eq!((ran.code, stub.requests().len()), (15, 1), "{}", ran.stderr);
    assert!(!ran.stderr.contains("waiting"), "{}", ran.stderr);
    // The response of a proxy in front of a restarting server is retried.
    let stub = Stub::new(|_, before| match before {
        0 => Reply::status(502, json!({})).header("Retry-After: 0"),
        _ => Reply::json(json!({ "results": [], "has_more": false })),
    });
    assert_eq!(run(stub.loupe(&["search", "refunds"])).code, 0);
    assert_eq!(stub.requests().len(), 2);
}

#[test]
fn statuses_become_exit_codes_and_json_errors() {
    for (status, code, exit) in [
        (401, "unauthorized", 4),
        (402, "plan_upgrade_required", 10),
        (403, "forbidden_role", 8),
        (404, "not_found", 11),
        (409, "conflict", 12),
        (422, "validation_failed", 13),
        (500, "internal", 15),
    ] {
        let stub = Stub::new(move |_, _| Reply::error(status, code));
        let ran = run(stub.loupe(&["traces", "list", "--json", "--retries", "1"]));
        assert_eq!(ran.code, exit, "{status}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
        let error = &serde_json::from_str::<Value>(&ran.stderr).unwrap()["error"];
        assert_eq!((error["code"].as_str(), error["request_id"].as_str()), (Some(code), Some("req-1")));
        assert!(error["hint"].is_string() && error["exit_code"] == exit);
    }
}

#[test]
fn unreachable_server_is_code_5() {
    let stub = pages();
    let mut command = stub.loupe(&["traces", "list"]);
    command.env("LOUPE_URL", "http://127.0.0.1:1").env("LOUPE_RETRIES", "1");
    assert_eq!(run(command).code, 5);
}

#[test]
fn rate_limited_request_is_retried_with_a_note() {
    let stub = Stub::new(|_, before| match before {
        0 => Reply::error(429, "rate_limited").header("Retry-After: 1"),
        _ => Reply::json(traces([1], None)),
    });
    let start = std::time::Instant::now();
    let ran = run(stub.loupe(&["traces", "list"]));
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("rate limited; waiting 1s (try 2 of 3)"), "{}", ran.stderr);
    assert!(start.elapsed() >= std::time::Duration::from_secs(1));

    let stub = Stub::new(|_, _| Reply::error(429, "rate_limited").header("Retry-After: 0"));
    assert_eq!(run(stub.loupe(&["traces", "list"])).code, 14);
    assert_eq!(stub.requests().len(), 3);
}

#[test]
fn closed_pipe_is_not_an_error() {
    // Each page is large enough to fill the pipe, and there is always a next page.
    let stub = Stub::new(|_, _| Reply::json(traces(0..200, Some("more"))));
    let mut child = Command::new(env!("CARGO_BIN_EXE_loupe"))
        .args(["traces", "list", "--all", "-o", "ndjson"])
        .env("LOUPE_URL", stub.url())
        .env("LOUPE_CONFIG_DIR", stub.dir.path())
        .env("LOUPE_API_KEY", "lp_test")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn api_requests_are_paged_and_logged_without_secrets() {
    let stub = pages();
    let ran = run(stub.loupe(&[
        "api",
        "GET",
        "/v1/traces",
        "-f",
        "limit=3",
        "--all",
        "--jq",
        ".traces | length",
        "-vv",
    ]));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "5\n"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("GET /v1/traces?limit=3 200") && !ran.stderr.contains("lp_test"),
        "{}",
        ran.stderr
    );
}

#[test]
fn help_works_offline_and_misspelt_commands_get_a_suggestion() {
    let stub = pages();
    let ran = run(stub.bare(&[]));
    assert_eq!(ran.code, 0);
    assert!((15..25).contains(&ran.stdout.lines().count()));
    let ran = run(stub.bare(&["trces", "list"]));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("traces"));
    for topic in ["exit-codes", "filters", "output", "environment", "auth"] {
        assert_eq!(run(stub.bare(&["help", topic])).code, 0);
    }
    assert_eq!(run(stub.bare(&["man", "--dir", "pages"])).code, 0);
    let page = std::fs::read_to_string(stub.dir.path().join("pages/loupe-traces-list.1")).unwrap();
    assert!(page.contains("latency"), "{page}");
    assert!(run(stub.bare(&["completion", "bash"])).stdout.contains("_loupe"));
    assert_eq!(run(stub.bare(&["trace", "list", "--help"])).code, 0);
    let ran = run(stub.bare(&["console"]));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("loupe traces tail"), "{}", ran.stderr);
    assert!(stub.requests().is_empty());
}
