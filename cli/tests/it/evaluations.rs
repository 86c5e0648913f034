//! Tests of evaluations: requests, waiting, lists and exit codes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stub::{Ran, Reply, Request, Stub, run};

const TRACE_ID: &str = "01980f6e-0000-7000-8000-0000c07b44d1";
const SPAN_ID: &str = "01980f6e-0000-7000-8000-0000000000aa";
const BOT_PROJECT_ID: &str = "01980f6e-0000-7000-8000-000000000001";
const EVALUATION_ID: &str = "01980f6e-0000-7000-8000-00005e1f09aa";
const RULE_ID: &str = "01980f6e-0000-7000-8000-00000000cafe";
const BULK_ID: &str = "01980f6e-0000-7000-8000-00000000b01c";

fn evaluation(status: &str, score: Value, label: Value) -> Value {
    let failed = status == "failed";
    json!({
        "id": EVALUATION_ID, "trace_id": TRACE_ID, "project_id": BOT_PROJECT_ID, "span_id": null, "metric_name": "faithfulness",
        "evaluator_type": "llm", "evaluator_version": "faithfulness@1", "status": status, "context": "fresh",
        "score": score, "label": label, "reasoning": (status == "complete").then_some("it is \u{1b}[2Jin the documents"),
        "error": failed.then_some("the trace has no documents: send a retrieval span"), "rule_id": null,
        "bulk_id": null, "source_action_id": null, "original_evaluation_id": null, "model_tier": "cheap",
        "judge_model": "gpt-4o-mini", "prompt_tokens": 1812, "completion_tokens": 64, "cost": 0.0003,
        "created_at": "2026-11-21T14:00:00.000000Z",
        "completed_at": matches!(status, "complete" | "failed").then_some("2026-11-21T14:00:02.100000Z"),
        "later_field": 7,
    })
}

fn page(rows: &[Value]) -> Value {
    json!({ "evaluations": rows, "has_more": false, "next_cursor": null })
}

/// Starts a server whose evaluation ends in the given state after two polls.
fn stub(last: Value) -> Stub {
    let polls = std::sync::atomic::AtomicUsize::new(0);
    Stub::new(move |request, _| match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/v1/eval") => Reply::status(202, evaluation("pending", Value::Null, Value::Null)),
        ("GET", "/v1/eval") => Reply::json(page(std::slice::from_ref(&last))),
        ("GET", path) if path.starts_with("/v1/eval/bulk/") => {
            let seen = polls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Reply::json(bulk(
                if seen < 2 { "running" } else { "complete" },
                i64::from(last["status"] == "failed"),
            ))
        }
        ("GET", path) if path.starts_with("/v1/eval/") => {
            let seen = polls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Reply::json(if seen < 2 { evaluation("running", Value::Null, Value::Null) } else { last.clone() })
        }
        ("POST", "/v1/eval/bulk") => {
            Reply::status(202, json!({ "matched": 1200, "queued": 1100, "bulk_id": BULK_ID }))
        }
        ("GET", path) if path == format!("/v1/traces/{TRACE_ID}") => {
            let mut trace = crate::stub::trace(1);
            trace["id"] = json!(TRACE_ID);
            trace["spans"] = json!([{
                "id": SPAN_ID, "trace_id": TRACE_ID, "tenant_id": BOT_PROJECT_ID, "created_at": "2026-11-21T14:00:00Z",
                "name": "decide", "type": "llm", "start_time": "2026-11-21T14:00:00Z",
            }]);
            Reply::json(trace)
        }
        _ => Reply::error(404, "not_found"),
    })
}

fn bulk(status: &str, failed: i64) -> Value {
    let left = if status == "running" { 100 } else { 0 };
    json!({
        "bulk_id": BULK_ID, "metric_name": "toxicity", "rule_id": null, "status": status, "matched": 1200,
        "queued": 1100, "pending": left, "running": 0, "complete": 1100 - left - failed, "failed": failed,
        "detail": "100 traces have one already", "created_at": "2026-11-21T14:00:00Z",
    })
}

fn run_with_key(stub: &Stub, args: &[&str]) -> Ran {
    run(stub.loupe(args))
}

fn last(stub: &Stub) -> Request {
    stub.requests().pop().unwrap()
}

fn body(request: &Request) -> Value {
    serde_json::from_str(&request.body).unwrap()
}

#[test]
fn evaluation_is_requested_with_every_flag() {
    let stub = stub(Value::Null);
    std::fs::write(stub.dir.path().join("config.json"), "{\"threshold\": 0.9}").unwrap();
    let args = ["evals", "run", TRACE_ID, "--metric", "faithfulness", "--type", "llm", "--tier", "premium"];
    let ran = run_with_key(
        &stub,
        &[&args[..], &["--config", "config.json", "--span", "000000aa", "-o", "id"]].concat(),
    );
    assert_eq!((ran.code, ran.stdout), (0, format!("{EVALUATION_ID}\n")), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("loupe evals wait {EVALUATION_ID}")), "{}", ran.stderr);
    assert_eq!(
        body(&last(&stub)),
        json!({
            "trace_id": TRACE_ID, "metric_name": "faithfulness", "evaluator_type": "llm",
            "config": { "threshold": 0.9 }, "model_tier": "premium", "span_id": SPAN_ID,
        })
    );

    let mut command = stub.loupe(&["evals", "run", TRACE_ID, "--metric", "own", "--config", "-", "--json"]);
    command.write_stdin("{\"a\": 1}");
    let ran = run(command);
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["later_field"], 7);
    assert_eq!(
        body(&last(&stub)),
        json!({ "trace_id": TRACE_ID, "metric_name": "own", "config": { "a": 1 } })
    );
}

#[test]
fn gate_exit_code_follows_from_the_verdict() {
    let gate = ["evals", "run", TRACE_ID, "--metric", "faithfulness", "--wait", "--for", "10s"];
    for (status, score, label, bound, code, expected) in [
        ("complete", json!(0.8), "pass", &["--fail-under", "0.8"][..], 0, ""),
        ("complete", json!(0.62), "warn", &["--fail-under", "80%"], 6, "faithfulness: 0.62 is below 0.8"),
        ("complete", json!(0.62), "warn", &["--fail-on", "fail"], 0, ""),
        ("complete", json!(0.62), "warn", &["--fail-on", "warn"], 6, "faithfulness: the label is warn"),
        ("complete", json!(0.1), "fail", &[], 0, ""),
        ("failed", Value::Null, "", &[], 16, "faithfulness: the trace has no documents"),
        ("complete", json!(1), "good", &["--fail-on", "fail"], 2, "does not support the label `good`"),
    ] {
        let label = if label.is_empty() { Value::Null } else { json!(label) };
        let stub = stub(evaluation(status, score.clone(), label));
        let ran = run_with_key(&stub, &[&gate[..], bound, &["--json"]].concat());
        assert_eq!(ran.code, code, "{status} {score} {bound:?}: {}", ran.stderr);
        // The result is printed even if the gate fails.
        assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["score"], score);
        let message = match code {
            0 => String::new(),
            _ => {
                // The error is below the note that says how to wait again.
                let error: Value = serde_json::from_str(ran.stderr.lines().last().unwrap()).unwrap();
                error["error"]["message"].as_str().unwrap().to_owned()
            }
        };
        assert!(message.contains(expected) && message.is_empty() == expected.is_empty(), "{message}");
        assert_eq!((stub.count("POST"), stub.count("GET")), (1, 3), "{status} {score} {bound:?}");
    }
}

#[test]
fn fail_under_implies_waiting() {
    let stub = stub(evaluation("complete", json!(0.5), json!("fail")));
    let ran =
        run_with_key(&stub, &["evals", "run", TRACE_ID, "--metric", "faithfulness", "--fail-under", "0.8"]);
    assert_eq!((ran.code, stub.count("GET")), (6, 3), "{}", ran.stderr);
    let before = stub.requests().len();
    for bound in ["8", "high", "-0.1"] {
        let argument = format!("--fail-under={bound}");
        assert_eq!(
            run_with_key(&stub, &["evals", "run", TRACE_ID, "--metric", "m", &argument]).code,
            2,
            "{bound}"
        );
    }
    assert_eq!(stub.requests().len(), before);
}

#[test]
fn wait_timeout_is_code_7_and_names_the_evaluation() {
    let stub = Stub::new(|request, _| match request.method.as_str() {
        "POST" => Reply::status(202, evaluation("pending", Value::Null, Value::Null)),
        _ => Reply::json(evaluation("running", Value::Null, Value::Null)),
    });
    let start = Instant::now();
    let ran = run_with_key(&stub, &["evals", "run", TRACE_ID, "--metric", "faithfulness", "--for", "400ms"]);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(ran.code, 7, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("still running")
            && ran.stderr.contains(&format!("loupe evals wait {EVALUATION_ID}"))
    );
    assert!(ran.stdout.contains("running"), "{}", ran.stdout);

    // The timeout of a request does not limit the wait.
    let args = ["evals", "wait", EVALUATION_ID, "--for", "900ms", "--timeout", "400ms"];
    assert_eq!(run_with_key(&stub, &args).code, 7);

    let stub = Stub::new(|request, _| match request.method.as_str() {
        "POST" => Reply::status(202, evaluation("pending", Value::Null, Value::Null)),
        _ => Reply::error(500, "internal"),
    });
    let ran = run_with_key(&stub, &["evals", "run", TRACE_ID, "--metric", "m", "--wait", "--retries", "1"]);
    assert_eq!(ran.code, 15);
    assert!(ran.stderr.contains(&format!("loupe evals wait {EVALUATION_ID}")), "{}", ran.stderr);
}

/// Starts a server that accepts requests for evaluations and never responds to polls.
fn silent_stub() -> Stub {
    Stub::new(|request, _| match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/v1/eval") => Reply::status(202, evaluation("pending", Value::Null, Value::Null)),
        ("POST", _) => Reply::status(202, json!({ "matched": 12, "queued": 10, "bulk_id": BULK_ID })),
        _ => loop {
            std::thread::park();
        },
    })
}

#[test]
fn silent_server_does_not_delay_the_time_limit() {
    let stub = silent_stub();
    let other = EVALUATION_ID.replace("09aa", "09ab");
    let last = format!("loupe evals wait {EVALUATION_ID} {other}");
    let ends = |args: &[&str], expected: &str| {
        let ran = run_with_key(&stub, &[args, &["--for", "100ms"]].concat());
        assert_eq!(ran.code, 7, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    };
    // Each command waits for its first poll, so they run in parallel.
    std::thread::scope(|scope| {
        scope.spawn(|| ends(&["evals", "wait", EVALUATION_ID, &other], &last));
        scope.spawn(|| {
            ends(&["evals", "run", TRACE_ID, "--metric", "faithfulness"], "faithfulness: still pending")
        });
        scope.spawn(|| {
            ends(&["evals", "bulk", "--metric", "m", "--from", "-1d"], "did not report the progress in time")
        });
        scope.spawn(|| ends(&["evals", "progress", BULK_ID], "did not report the progress in time"));
    });
}

#[cfg(unix)]
#[test]
fn interrupted_wait_has_printed_the_id() {
    let stub = silent_stub();
    for (args, expected) in [
        (
            &["evals", "run", TRACE_ID, "--metric", "m", "--wait"][..],
            format!("loupe evals wait {EVALUATION_ID}"),
        ),
        (
            &["evals", "bulk", "--metric", "m", "--from", "-1d", "--wait"],
            format!("loupe evals progress {BULK_ID}"),
        ),
    ] {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_loupe"))
            .args(args)
            .env("LOUPE_URL", stub.url())
            .env("LOUPE_CONFIG_DIR", stub.dir.path())
            .env("LOUPE_API_KEY", "lp_test")
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
        // The notes come before the first poll, which gets no response.
        let noted = std::io::BufRead::lines(stderr).map_while(Result::ok).find(|it| it.contains(&expected));
        assert!(noted.is_some(), "{args:?}");
        std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(143));
    }
}

#[test]
fn several_evaluations_are_waited_for_and_counted() {
    let stub = stub(evaluation("complete", json!(0.3), json!("fail")));
    // The same evaluation, named by its id and by the end of its id.
    let ran =
        run_with_key(&stub, &["evals", "wait", EVALUATION_ID, "5e1f09aa", "--fail-on", "fail", "--json"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (document["evaluations"].as_array().unwrap().len(), &document["has_more"]),
        (1, &json!(false))
    );

    let other = EVALUATION_ID.replace("09aa", "09ab");
    let ran = run_with_key(&stub, &["evals", "wait", EVALUATION_ID, &other, "--fail-under", "0.9"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (6, 3));
    assert!(ran.stderr.starts_with("error: 2 of 2 evaluations do not pass\n"), "{}", ran.stderr);
}

#[test]
fn evaluation_sheet_shows_verdict_and_escapes_controls() {
    let stub = stub(evaluation("complete", json!(0.62), json!("warn")));
    let ran =
        run_with_key(&stub, &["evals", "run", TRACE_ID, "--metric", "faithfulness", "--wait", "-o", "table"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "! faithfulness  0.620 warn  llm");
    for line in [
        "  done        2026-11-21 14:00 (2.10s)",
        "  judge       gpt-4o-mini (cheap), 1,812 + 64 tokens, $0.0003",
        "  reasoning   it is ⟦ESC⟧[2Jin the documents",
    ] {
        assert!(lines.contains(&line), "{line}\n{}", ran.stdout);
    }
    let ran = run_with_key(&stub, &["evals", "list", "-o", "table"]);
    assert!(ran.stdout.contains("5e1f09aa") && !ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
    let ran = run_with_key(&stub, &["evals", "get", "5e1f09aa", "--fields", "label,score", "-o", "csv"]);
    assert_eq!(ran.stdout, "label,score\r\nwarn,0.62\r\n");
}

#[test]
fn evaluation_list_sends_every_filter() {
    let stub = stub(evaluation("complete", json!(0.62), json!("warn")));
    let args = [
        "evals",
        "list",
        "--trace",
        TRACE_ID,
        "--metric",
        "faithfulness",
        "--type",
        "llm",
        "--status",
        "complete",
        "--label",
        "warn",
        "--eval-context",
        "fresh",
        "--rule",
        RULE_ID,
        "--from",
        "2026-11-21T00:00:00Z",
        "--to",
        "2026-11-22T00:00:00Z",
        "--min-score",
        "0.1",
        "--max-score",
        "0.9",
        "-p",
        BOT_PROJECT_ID,
        "-L",
        "5",
    ];
    assert_eq!(run_with_key(&stub, &args).code, 0);
    let request = last(&stub);
    let mut query: Vec<&str> = request.query.split('&').collect();
    query.sort_unstable();
    assert_eq!(
        query,
        [
            "context=fresh",
            "evaluator_type=llm",
            "from=2026-11-21T00%3A00%3A00.000000Z",
            "label=warn",
            "limit=5",
            "max_score=0.9",
            "metric_name=faithfulness",
            "min_score=0.1",
            &format!("project_id={BOT_PROJECT_ID}"),
            &format!("rule_id={RULE_ID}"),
            "status=complete",
            "to=2026-11-22T00%3A00%3A00.000000Z",
            &format!("trace_id={TRACE_ID}"),
        ]
    );
    let before = stub.requests().len();
    for wrong in [
        &["--min-score", "0.9", "--max-score", "0.1"][..],
        &["--status", "done"],
        &["--eval-context", "old"],
        &["--min-score", "NaN"],
    ] {
        assert_eq!(run_with_key(&stub, &[&["evals", "list"], wrong].concat()).code, 2, "{wrong:?}");
    }
    assert_eq!(stub.requests().len(), before);
}

#[test]
fn bulk_evaluation_is_requested_and_followed() {
    let stub = stub(evaluation("complete", json!(1), json!("pass")));
    let args = [
        "evals",
        "bulk",
        "--metric",
        "toxicity",
        "--filter",
        "error:false latency:>=2s tag:env=prod",
        "-p",
        BOT_PROJECT_ID,
        "--wait",
        "--json",
    ];
    let ran = run_with_key(&stub, &args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap(), bulk("complete", 0));
    assert!(ran.stderr.contains("1,200 traces match, 1,100 evaluations requested"), "{}", ran.stderr);
    assert!(ran.stderr.contains("100 traces have one already"), "{}", ran.stderr);
    let asked = stub.requests().into_iter().find(|it| it.method == "POST").unwrap();
    assert_eq!(
        body(&asked),
        json!({
            "metric_name": "toxicity",
            "filter": { "error": false, "latency_min": 2000, "tag_key": "env", "tag_value": "prod", "project_id": BOT_PROJECT_ID },
        })
    );

    let ran =
        run_with_key(&stub, &["evals", "progress", BULK_ID, "-o", "csv", "--fields", "status,complete"]);
    assert_eq!(ran.stdout, "status,complete\r\ncomplete,1100\r\n");
}

#[test]
fn bulk_evaluation_without_scores_is_code_16() {
    let stub = stub(evaluation("failed", Value::Null, Value::Null));
    let args = ["evals", "bulk", "--metric", "toxicity", "--from", "-1d", "--wait", "-o", "id"];
    let ran = run_with_key(&stub, &args);
    assert_eq!((ran.code, ran.stdout), (16, format!("{BULK_ID}\n")));
    assert!(ran.stderr.contains("1 of 1100 evaluations have no score"), "{}", ran.stderr);
    assert!(ran.stderr.contains("loupe evals list --metric toxicity --status failed"), "{}", ran.stderr);

    let stub = self::stub(Value::Null);
    let ran = run_with_key(&stub, &["evals", "progress", BULK_ID, "--for", "0s"]);
    assert_eq!(ran.code, 7, "{}", ran.stderr);
    assert!(ran.stderr.contains("100 of 1100 evaluations have not finished yet"), "{}", ran.stderr);
}

#[test]
fn bulk_evaluation_of_all_traces_needs_confirmation() {
    let stub = stub(Value::Null);
    let ran = run_with_key(&stub, &["evals", "bulk", "--metric", "toxicity"]);
    assert_eq!((ran.code, stub.requests().len()), (2, 0), "{}", ran.stderr);
    assert!(ran.stderr.contains("--yes"), "{}", ran.stderr);
    let ran = run_with_key(&stub, &["evals", "bulk", "--metric", "toxicity", "--yes", "--json"]);
    assert_eq!((ran.code, body(&last(&stub))), (0, json!({ "metric_name": "toxicity", "filter": {} })));
}

#[test]
fn dry_run_of_an_evaluation_sends_nothing() {
    let stub = stub(Value::Null);
    for args in [
        &["evals", "run", TRACE_ID, "--metric", "m", "--config", "{\"a\":1}", "--wait", "--fail-under", "1"]
            [..],
        &["evals", "bulk", "--metric", "m"],
    ] {
        let ran = run_with_key(&stub, &[args, &["-n", "--json"]].concat());
        let request: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(
            (ran.code, &request["method"], &request["body"]["metric_name"]),
            (0, &json!("POST"), &json!("m"))
        );
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn invalid_config_is_refused_before_any_request() {
    let stub = stub(Value::Null);
    for config in ["[1]", "{", "no-such-file.json"] {
        let ran = run_with_key(&stub, &["evals", "run", TRACE_ID, "--metric", "m", "--config", config]);
        assert_eq!(ran.code, 2, "{config}");
        assert!(ran.stderr.contains("--config: "), "{}", ran.stderr);
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn trace_is_shown_with_its_evaluations() {
    let stub = stub(evaluation("complete", json!(0.62), json!("warn")));
    let ran = run_with_key(&stub, &["traces", "get", TRACE_ID, "--evals", "-o", "table"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("!  faithfulness  0.620  warn"), "{}", ran.stdout);
    assert_eq!(last(&stub).query, format!("trace_id={TRACE_ID}&limit=200"));
    let ran = run_with_key(
        &stub,
        &["traces", "get", TRACE_ID, "--evals", "--json", "--jq", ".evaluations[0].score"],
    );
    assert_eq!(ran.stdout, "0.62\n");
    let ran = run_with_key(&stub, &["traces", "get", TRACE_ID, "--json"]);
    assert!(!ran.stdout.contains("evaluations"), "{}", ran.stdout);
}

#[test]
fn validation_error_hints_at_the_command_with_valid_values() {
    let refusing = |field: &'static str| {
        Stub::new(move |_, _| {
            let fields = [json!({ "field": field, "message": "is wrong" })];
            let body =
                json!({ "error": "no", "code": "validation_failed", "request_id": "r", "fields": fields });
            Reply::status(422, body)
        })
    };
    let run = ["evals", "run", TRACE_ID, "--metric", "latency_threshold"];
    let rule = ["rules", "create", "-p", BOT_PROJECT_ID, "--metric", "latency_threshold", "--type", "rule"];
    let own = ["evaluators", "create", "own", "--checks", "{\"kind\": \"length\"}"];
    for (args, field, hint) in [
        (&run[..], "config.max_latency_ms", "loupe evaluators get latency_threshold"),
        (&run, "metric_name", "loupe evaluators list -o id"),
        (&rule, "evaluator_type", "loupe evaluators get latency_threshold"),
        (&own, "checks[0].max_words", "loupe help custom-evaluators"),
        (&own, "name", "--help shows the accepted values"),
    ] {
        let ran = run_with_key(&refusing(field), args);
        assert_eq!(ran.code, 13, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{args:?}: {}", ran.stderr);
    }
}
