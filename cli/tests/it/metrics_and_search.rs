//! Tests of metrics, feedback and search: requests, output and exit codes.

use serde_json::{Value, json};

use crate::stub::{Ran, Reply, Stub, run};

const TRACE_ID: &str = "01980f6e-0000-7000-8000-0000c07b44d1";
const BOT_PROJECT_ID: &str = "01980f6e-0000-7000-8000-000000000001";

fn values(traces: i64, errors: Value) -> Value {
    json!({
        "error_rate": errors, "latency_p50": 1_840.0, "latency_p95": 6_120.5, "latency_p99": null,
        "total_cost": 41.07, "trace_count": traces, "feedback_good_rate": null,
    })
}

fn point(minute: usize) -> Value {
    let errors = if minute == 3 { Value::Null } else { json!(minute as f64 / 100.0) };
    let mut point = values(minute as i64, errors);
    point["start"] = json!(format!("2026-11-21T14:{minute:02}:00.000000Z"));
    point
}

/// Returns the metrics that a query requests.
fn metrics_response(query: &str) -> Value {
    let mut response = json!({
        "from": "2026-11-21T14:00:00.000000Z", "to": "2026-11-21T14:10:00.000000Z",
        "metrics": values(72_318, json!(0.0714)), "later_field": 7,
    });
    let series: Vec<Value> = (0..10).map(point).collect();
    if query.contains("interval=") {
        response["series"] = json!(series);
    }
    if query.contains("group_by=") {
        let group = |key: Value| {
            let mut group = json!({ "key": key, "metrics": values(9, json!(0.5)) });
            if query.contains("interval=") {
                group["series"] = json!(series[4..6]);
            }
            group
        };
        response["groups"] = json!([group(json!("gpt-4o\u{1b}[2J")), group(Value::Null)]);
        response["groups_truncated"] = json!(true);
    }
    response
}

fn feedback() -> Value {
    json!({
        "id": "01980f6e-0000-7000-8000-0000000000fb", "trace_id": TRACE_ID, "project_id": BOT_PROJECT_ID, "span_id": null,
        "label": "bad", "comment": "no\u{1b}[2J", "user_id": "u-1", "source": null, "metadata": null,
        "created_at": "2026-11-21T14:00:00Z", "updated_at": "2026-11-21T14:05:00Z",
    })
}

fn search_results() -> Value {
    json!({
        "results": [{
            "span": {
                "id": "01980f6e-0000-7000-8000-0000000000aa", "trace_id": TRACE_ID, "name": "decide", "type": "llm",
                "model": "gpt-4o", "input": "in", "output": "I will\nrefund", "start_time": "2026-11-21T14:00:00Z",
            },
            "score": 0.971, "distance": 0.058,
        }],
        "has_more": false, "next_cursor": null, "searched": 40, "not_searched": 2,
    })
}

fn stub() -> Stub {
    Stub::new(|request, _| match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/v1/metrics") => Reply::json(metrics_response(&request.query)),
        ("GET", path) if path.ends_with("/metrics") => {
            Reply::json(json!({ "metric": "retry_cap_hit", "value": 3, "window": "7d" }))
        }
        ("GET", "/v1/feedback") => {
            Reply::json(json!({ "feedback": [feedback()], "has_more": false, "next_cursor": null }))
        }
        ("POST", "/v1/feedback") => Reply::status(201, feedback()),
        (_, "/v1/search/spans") => Reply::json(search_results()),
        _ => Reply::error(404, "not_found"),
    })
}

fn run_with_key(stub: &Stub, args: &[&str]) -> Ran {
    run(stub.loupe(args))
}

/// Returns the query of the last request with sorted parameters.
fn last_query(stub: &Stub) -> Vec<String> {
    let mut query: Vec<String> =
        stub.requests().last().unwrap().query.split('&').map(str::to_owned).collect();
    query.sort();
    query
}

#[test]
fn metrics_are_written_as_rows() {
    let stub = stub();
    let ran = run_with_key(
        &stub,
        &["metrics", "show", "error_rate", "trace_count", "--window", "7d", "--model", "m"],
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        ran.stdout,
        "from\tto\terror_rate\ttrace_count\n2026-11-21T14:00:00.000000Z\t2026-11-21T14:10:00.000000Z\t0.0714\t72318\n"
    );
    assert_eq!(last_query(&stub), ["model=m", "window=7d"]);

    let ran = run_with_key(
        &stub,
        &["metrics", "show", "latency_p99", "latency_p50", "--interval", "minute", "-o", "csv"],
    );
    assert!(
        ran.stdout.starts_with("start,latency_p99,latency_p50\r\n2026-11-21T14:00:00.000000Z,,1840.0\r\n"),
        "{}",
        ran.stdout
    );
    assert_eq!((ran.stdout.lines().count(), last_query(&stub)), (11, vec!["interval=minute".to_owned()]));

    let ran = run_with_key(
        &stub,
        &["metrics", "show", "trace_count", "--group-by", "tag:env", "-o", "ndjson", "-p", BOT_PROJECT_ID],
    );
    let rows: Vec<Value> = ran.stdout.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(
        rows,
        [json!({ "key": "gpt-4o\u{1b}[2J", "trace_count": 9 }), json!({ "key": null, "trace_count": 9 })]
    );
    assert!(ran.stderr.contains("only the largest groups are shown"), "{}", ran.stderr);
    assert_eq!(last_query(&stub), ["group_by=tag%3Aenv", &format!("project_id={BOT_PROJECT_ID}")]);

    let args = [
        "metrics",
        "show",
        "--group-by",
        "model",
        "--interval",
        "hour",
        "--fields",
        "start,trace_count",
        "--json",
    ];
    let document: Value = serde_json::from_str(&run_with_key(&stub, &args).stdout).unwrap();
    assert_eq!(document["groups"][3], json!({ "start": "2026-11-21T14:05:00.000000Z", "trace_count": 5 }));
}

#[test]
fn metrics_json_contains_the_named_metrics_only() {
    let stub = stub();
    let document: Value =
        serde_json::from_str(&run_with_key(&stub, &["metrics", "show", "--json"]).stdout).unwrap();
    assert_eq!(document, metrics_response(""));
    let args = ["metrics", "show", "total_cost", "--interval", "day", "--group-by", "name", "--json"];
    let document: Value = serde_json::from_str(&run_with_key(&stub, &args).stdout).unwrap();
    assert_eq!(
        (&document["metrics"], &document["later_field"]),
        (&json!({ "total_cost": 41.07 }), &json!(7))
    );
    assert_eq!(document["series"][0], json!({ "start": "2026-11-21T14:00:00.000000Z", "total_cost": 41.07 }));
    assert_eq!(document["groups"][1]["metrics"], json!({ "total_cost": 41.07 }));
    assert_eq!(document["groups"][1]["series"][1]["total_cost"], 41.07);
}

#[test]
fn metrics_table_has_a_line_for_each_metric() {
    let stub = stub();
    let ran = run_with_key(&stub, &["metrics", "show", "-o", "table"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "2026-11-21 14:00 to 2026-11-21 14:10");
    assert_eq!(lines[1], "error_rate             7.1 %   ▁▂ ▄▄▅▆▇█");
    assert_eq!(lines[4], "latency_p99                —");
    assert_eq!((lines.len(), last_query(&stub)), (8, vec!["interval=hour".to_owned()]));

    let ran = run_with_key(&stub, &["metrics", "show", "error_rate", "--chart", "--window", "1h"]);
    assert_eq!(last_query(&stub), ["interval=minute", "window=1h"]);
    let wanted = [
        "2026-11-21 14:00 to 2026-11-21 14:10",
        "error_rate  7.1 %  by minute",
        "  10.0 % │                                                ▂▂▂▂▂ ▅▅▅▅▅",
        "         │                                    ▃▃▃▃▃ ▆▆▆▆▆ █████ █████",
        "         │                        ▅▅▅▅▅ █████ █████ █████ █████ █████",
        "         │      ▃▃▃▃▃ ▆▆▆▆▆       █████ █████ █████ █████ █████ █████",
        "       0 └────────────────────────────────────────────────────────────",
        "          14:00             14:03             14:06             14:09",
    ];
    assert_eq!(ran.stdout.lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn metric_charts_fit_the_terminal() {
    let stub = stub();
    for columns in [12, 30, 41, 80, 200] {
        for args in [
            &["metrics", "show", "--chart"][..],
            &["metrics", "show", "--chart", "--group-by", "model"],
            &["metrics", "show", "-o", "table"],
        ] {
            let mut command = stub.loupe(args);
            command.env("COLUMNS", columns.to_string()).env("LOUPE_ASCII", "1");
            let ran = run(command);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            assert!(
                ran.stdout.bytes().all(|it| it == b'\n' || (0x20..0x7f).contains(&it))
                    || args.contains(&"--group-by"),
                "{}",
                ran.stdout
            );
            assert!(!ran.stdout.contains('\u{1b}'));
            let widest = ran.stdout.lines().map(|it| it.chars().count()).max().unwrap();
            assert!(widest <= columns, "{columns}: {}", ran.stdout);
        }
    }
    assert_eq!(run_with_key(&stub, &["metrics", "show", "--chart", "--json"]).code, 2);
    let forced = run_with_key(&stub, &["metrics", "show", "--chart", "--color", "always"]);
    assert!(forced.stdout.contains('\u{1b}'));
}

#[test]
fn metric_conditions_decide_the_code_of_a_closed_pipe() {
    let stub = stub();
    for (condition, code) in [("error_rate>5%", 6), ("error_rate>50%", 0)] {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_loupe"))
            .args(["metrics", "show", "error_rate", "--project", BOT_PROJECT_ID, "--fail-if", condition])
            .env("LOUPE_URL", stub.url())
            .env("LOUPE_CONFIG_DIR", stub.dir.path())
            .env("LOUPE_API_KEY", "lp_test")
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{condition}");
    }
}

#[test]
fn met_conditions_are_code_6_and_are_named() {
    let stub = stub();
    let gate = |conditions: &[&str]| {
        let mut args = vec!["metrics", "show", "error_rate", "--window", "1h"];
        args.extend(conditions.iter().flat_map(|it| ["--fail-if", it]));
        run_with_key(&stub, &args)
    };
    let ran = gate(&["error_rate>5%", "latency_p95>5s", "trace_count<1"]);
    assert_eq!(ran.code, 6);
    assert!(ran.stdout.contains("0.0714"), "{}", ran.stdout);
    assert_eq!(
        ran.stderr,
        "error: fails on 2 of 3 conditions: error_rate>5% (it is 7.1 %); latency_p95>5s (it is 6.12s)\n"
    );
    let ran = gate(&["error_rate>0.0714", "latency_p99>1"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (0, "latency_p99 has no value, so latency_p99>1 was not checked\n")
    );
    let before = stub.requests().len();
    for wrong in ["errors>1", "error_rate>5", "error_rate"] {
        assert_eq!(gate(&[wrong]).code, 2, "{wrong}");
    }
    for wrong in [
        &["--group-by", "tag:"][..],
        &["--group-by", "user"],
        &["--window", "2h"],
        &["--interval", "week"],
        &["--window", "1h", "--from", "-1h"],
        &["--from", "today", "--to", "yesterday"],
    ] {
        assert_eq!(run_with_key(&stub, &[&["metrics", "show"], wrong].concat()).code, 2, "{wrong:?}");
    }
    assert_eq!(run_with_key(&stub, &["metrics", "show", "latency"]).code, 2);
    assert_eq!(stub.requests().len(), before);
}

#[test]
fn project_metric_needs_a_project() {
    let stub = stub();
    let ran = run_with_key(
        &stub,
        &["metrics", "project", "-p", BOT_PROJECT_ID, "--window", "7d", "--json", "--jq", ".value"],
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "3\n"), "{}", ran.stderr);
    assert_eq!(stub.requests()[0].path, format!("/v1/projects/{BOT_PROJECT_ID}/metrics"));
    assert_eq!(last_query(&stub), ["metric=retry_cap_hit", "window=7d"]);
    let ran = run_with_key(&stub, &["metrics", "project"]);
    assert_eq!((ran.code, stub.requests().len()), (2, 1), "{}", ran.stderr);
    assert_eq!(run_with_key(&stub, &["metrics", "project", "-p", BOT_PROJECT_ID, "--window", "1h"]).code, 2);
}

#[test]
fn feedback_is_added_and_listed() {
    let stub = stub();
    let ran = run_with_key(
        &stub,
        &["feedback", "add", TRACE_ID, "--label", "bad", "--user", "u-1", "--metadata", "{\"k\":[1]}"],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let body: Value = serde_json::from_str(&stub.requests()[0].body).unwrap();
    assert_eq!(
        body,
        json!({ "trace_id": TRACE_ID, "label": "bad", "user_id": "u-1", "metadata": { "k": [1] } })
    );
    assert!(ran.stderr.contains("Replaced the feedback on"), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("id\tcreated_at\tlabel\t"), "{}", ran.stdout);
    let ran =
        run_with_key(&stub, &["feedback", "add", "order 7", "--external", "--label", "good", "-n", "--json"]);
    let shown_call: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown_call["body"], json!({ "external_id": "order 7", "label": "good" }));
    let before = stub.requests().len();
    for wrong in [
        &["--label", "great"][..],
        &["--label", "good", "--metadata", "[]"],
        &["--label", "good", "--metadata", "{"],
        &[],
    ] {
        assert_eq!(
            run_with_key(&stub, &[&["feedback", "add", TRACE_ID], wrong].concat()).code,
            2,
            "{wrong:?}"
        );
    }
    assert_eq!(
        run_with_key(&stub, &["feedback", "add", "x", "--external", "--label", "bad", "--span", "44d1"]).code,
        2
    );
    assert_eq!(stub.requests().len(), before);

    let digits = TRACE_ID.replace('-', "");
    let ran = run_with_key(
        &stub,
        &[
            "feedback",
            "list",
            "--trace",
            &digits,
            "--label",
            "bad",
            "--from",
            "2026-11-21T00:00:00Z",
            "-o",
            "table",
        ],
    );
    assert_eq!(
        last_query(&stub),
        ["from=2026-11-21T00%3A00%3A00.000000Z", "label=bad", "limit=50", &format!("trace_id={TRACE_ID}")]
    );
    assert!(
        ran.stdout.contains("no⟦ESC⟧[2J") && ran.stdout.trim_end().ends_with("c07b44d1"),
        "{}",
        ran.stdout
    );
}

#[test]
fn spans_are_searched_by_text_and_by_vector() {
    let stub = stub();
    let ran =
        run_with_key(&stub, &["search", "refund without order", "--type", "llm", "-L", "5", "-o", "table"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(last_query(&stub), ["limit=5", "q=refund+without+order", "type=llm"]);
    assert!(
        ran.stdout.contains("0.971")
            && ran.stdout.contains("I will refund")
            && ran.stdout.contains("c07b44d1"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("40 spans compared; 2 have vectors of another model"), "{}", ran.stderr);
    let ran = run_with_key(&stub, &["spans", "search", "x", "-o", "id"]);
    assert_eq!(ran.stdout, "01980f6e-0000-7000-8000-0000000000aa\n");

    let vector: Vec<f32> = (0..1_536).map(|it| it as f32 / 8.0).collect();
    let mut command =
        stub.loupe(&["search", "--vector", "-", "--model", "m", "--embedding-model", "e", "--json"]);
    command.write_stdin(json!({ "embedding": vector }).to_string());
    let ran = run(command);
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap(), search_results());
    let request = stub.requests().pop().unwrap();
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(
        (request.method.as_str(), body),
        ("POST", json!({ "vector": vector, "model": "m", "embedding_model": "e", "limit": 50 }))
    );

    let before = stub.requests().len();
    let mut command = stub.loupe(&["search", "--vector", "-"]);
    command.write_stdin("[1, 2]");
    let ran = run(command);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("it has 2 numbers"), "{}", ran.stderr);
    assert_eq!(run_with_key(&stub, &["search"]).code, 2);
    assert_eq!(run_with_key(&stub, &["search", "x", "--vector", "v.json"]).code, 2);
    assert_eq!(stub.requests().len(), before);
}
