//! Tests of failures, failure clusters, failure rules and anomalies.

use serde_json::{Value, json};

use crate::stub::{Reply, Stub, run};

const PROJECT_ID: &str = "01980f6e-0000-7000-8000-000000000001";
const TRACE_ID: &str = "01980f6e-0000-7000-8000-0000c07b44d1";
const CLUSTER_ID: &str = "01980f6e-0000-7000-8000-00005e1f09aa";
const RULE_ID: &str = "01980f6e-0000-7000-8000-00000000cafe";
const OTHER_RULE_ID: &str = "01980f6e-0000-7000-8000-00000000beef";

fn failure() -> Value {
    json!({
        "id": "01980f6e-0000-7000-8000-000000000005", "project_id": PROJECT_ID, "trace_id": TRACE_ID,
        "span_id": null, "span_name": "decide_refund", "type": "timeout",
        "message": "upstream \u{1b}[2Jtimeout", "model": "gpt-4o", "cluster_id": CLUSTER_ID,
        "created_at": "2026-11-21T14:00:00.000000Z", "later_field": 1,
    })
}

fn cluster(status: &str, samples: bool) -> Value {
    let trend: Vec<Value> = (0..24)
        .map(|hour| json!({ "start": format!("2026-11-21T{hour:02}:00:00.000000Z"), "count": hour }))
        .collect();
    let mut cluster = json!({
        "id": CLUSTER_ID, "project_id": PROJECT_ID, "failure_type": "timeout", "status": status,
        "signature": "upstream timeout after <*> ms", "title": "upstream timeout after <*> ms",
        "span_name": "decide_refund", "count": 112, "trace_count": 98,
        "first_seen": "2026-11-20T14:00:00.000000Z", "last_seen": "2026-11-21T14:00:00.000000Z",
        "resolved_at": null, "sample_trace_ids": [TRACE_ID], "models": ["gpt-4o"], "trend": trend,
    });
    if samples {
        cluster["samples"] = json!([failure()]);
    }
    cluster
}

fn rule(id: &str, enabled: bool) -> Value {
    json!({
        "id": id, "name": "timeouts", "enabled": enabled, "project_id": null, "failure_types": ["timeout"],
        "metric_name": "faithfulness", "max_score": 0.5, "filter": { "model": "gpt-4o", "error": true },
        "min_count": 5, "window_minutes": 60, "created_at": "2026-11-21T14:00:00.000000Z",
        "updated_at": "2026-11-21T14:00:00.000000Z", "last_fired_at": null,
    })
}

fn project() -> Value {
    json!({
        "id": PROJECT_ID, "name": "shop", "status": "active", "prompt_autoship_enabled": false, "retention_days": null, "archived_at": null,
        "created_at": "2026-11-21T14:00:00.000000Z", "updated_at": "2026-11-21T14:00:00.000000Z",
    })
}

fn page(plural: &str, rows: &[Value]) -> Reply {
    Reply::json(json!({ plural: rows, "has_more": false, "next_cursor": null }))
}

fn stub() -> Stub {
    Stub::new(|request, _| match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/v1/projects") => page("projects", &[project()]),
        ("GET", "/v1/failures") => page("failures", &[failure()]),
        ("GET", "/v1/failures/clusters") => page("clusters", &[cluster("open", false)]),
        ("GET", path) if path.ends_with(CLUSTER_ID) => Reply::json(cluster("open", true)),
        ("PATCH", path) if path.ends_with(CLUSTER_ID) => {
            let change: Value = serde_json::from_str(&request.body).unwrap();
            Reply::json(cluster(change["status"].as_str().unwrap(), true))
        }
        ("GET", "/v1/failure-rules") => {
            page("failure_rules", &[rule(RULE_ID, true), rule(OTHER_RULE_ID, false)])
        }
        ("POST", "/v1/failure-rules") => Reply::status(201, rule(RULE_ID, true)),
        ("GET" | "PATCH", path) if path == format!("/v1/failure-rules/{RULE_ID}") => {
            Reply::json(rule(RULE_ID, true))
        }
        ("GET", "/v1/anomalies") => page(
            "anomalies",
            &[json!({
                "id": RULE_ID, "project_id": PROJECT_ID, "metric": "latency_p95", "direction": "up",
                "severity": "high", "status": "open", "close_reason": null, "observed": 8200.0,
                "expected": 3100.0, "expected_low": 2500.0, "expected_high": 3700.0, "score": 4.5,
                "window_start": "2026-11-21T11:42:00.000000Z", "window_end": "2026-11-21T12:00:00.000000Z",
                "created_at": "2026-11-21T11:45:00.000000Z", "updated_at": "2026-11-21T12:00:00.000000Z",
            })],
        ),
        ("DELETE", _) => Reply::status(204, Value::Null),
        _ => Reply::error(404, "not_found"),
    })
}

fn last_query(stub: &Stub) -> String {
    stub.requests().last().unwrap().query.clone()
}

fn last_body(stub: &Stub) -> Value {
    serde_json::from_str(&stub.requests().last().unwrap().body).unwrap()
}

#[test]
fn failures_need_a_session_before_any_request() {
    let stub = stub();
    for args in [
        &["failures", "list"][..],
        &["failures", "clusters"],
        &["failures", "cluster", CLUSTER_ID],
        &["failures", "resolve", CLUSTER_ID],
        &["failures", "mute", CLUSTER_ID],
        &["failures", "reopen", CLUSTER_ID],
    ] {
        let ran = run(stub.loupe(args));
        assert_eq!(ran.code, 4, "{args:?}");
        assert!(ran.stderr.contains("LOUPE_SESSION_TOKEN"), "{}", ran.stderr);
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn failures_are_filtered_and_shown_in_each_format() {
    let stub = stub();
    let args = ["failures", "list", "--type", "timeout", "--cluster", "5e1f09aa", "--trace", TRACE_ID];
    let args =
        [&args[..], &["--model", "gpt-4o", "-p", PROJECT_ID, "--from", "2026-11-21T00:00:00Z"]].concat();
    let ran = run(stub.session(&[&args[..], &["--json"]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["failures"][0]["later_field"], 1);
    let query = last_query(&stub);
    for part in ["type=timeout", CLUSTER_ID, TRACE_ID, "model=gpt-4o", PROJECT_ID, "from=2026-11-21"] {
        assert!(query.contains(part), "{part}: {query}");
    }
    let table = run(stub.session(&["failures", "list", "-o", "table"])).stdout;
    assert!(table.contains("c07b44d1") && table.contains("⟦ESC⟧"), "{table}");
    let ids = run(stub.session(&["failures", "list", "-o", "id"])).stdout;
    assert_eq!(ids, "01980f6e-0000-7000-8000-000000000005\n");
    assert_eq!(run(stub.session(&["failures", "list", "--type", "slow"])).code, 2);
}

#[test]
fn clusters_are_listed_and_one_is_shown_with_trend_and_samples() {
    let stub = stub();
    let ran =
        run(stub.session(&["failures", "clusters", "--status", "open", "--type", "timeout", "-o", "table"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("112") && ran.stdout.contains('█'), "{}", ran.stdout);
    let query = last_query(&stub);
    assert!(query.contains("status=open") && query.contains("failure_type=timeout"), "{query}");

    let sheet = run(stub.session(&["failures", "cluster", "5e1f09aa", "-o", "table"])).stdout;
    for part in ["upstream timeout after <*> ms", "failures per hour", "c07b44d1", "gpt-4o"] {
        assert!(sheet.contains(part), "{part}: {sheet}");
    }
    let ran = run(stub.session(&["failures", "cluster", CLUSTER_ID, "--json", "--fields", "samples"]));
    assert!(ran.stdout.contains("decide_refund"), "{}", ran.stdout);
    assert_eq!(run(stub.session(&["failures", "cluster", "00000000"])).code, 11);
}

#[test]
fn cluster_status_is_changed_by_three_verbs() {
    let stub = stub();
    for (verb, status) in [("resolve", "resolved"), ("mute", "muted"), ("reopen", "open")] {
        let ran = run(stub.session(&["failures", verb, "5e1f09aa", "--json"]));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(last_body(&stub), json!({ "status": status }));
        assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["status"], status);
    }
    let changes = stub.count("PATCH");
    let ran = run(stub.session(&["failures", "mute", CLUSTER_ID, "--dry-run", "--json"]));
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["method"], "PATCH");
    assert_eq!(stub.count("PATCH"), changes);
}

#[test]
fn failure_rule_is_created_from_flags() {
    let stub = stub();
    let args = ["failure-rules", "create", "timeouts", "-p", PROJECT_ID, "--type", "timeout,other"];
    let args = [&args[..], &["--min-count", "5", "--window", "1h", "--filter-model", "gpt-4o"]].concat();
    let ran = run(stub.loupe(&[&args[..], &["--disabled"]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let wanted = json!({
        "name": "timeouts", "enabled": false, "project_id": PROJECT_ID, "failure_types": ["timeout", "other"],
        "filter": { "model": "gpt-4o" }, "min_count": 5, "window_minutes": 60,
    });
    assert_eq!(last_body(&stub), wanted);

    let args =
        ["failure-rules", "create", "x", "-p", PROJECT_ID, "--all-projects", "--metric", "faithfulness"];
    let ran = run(stub.loupe(&[&args[..], &["--max-score", "0.5"]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(last_body(&stub), json!({ "name": "x", "metric_name": "faithfulness", "max_score": 0.5 }));

    let posts = stub.count("POST");
    for invalid in [
        &["--metric", "faithfulness"][..],
        &["--max-score", "0.5"],
        &["--window", "90s"],
        &["--min-count", "0"],
        &["--type", "slow"],
    ] {
        let ran = run(stub.loupe(&[&["failure-rules", "create", "x"][..], invalid].concat()));
        assert_eq!(ran.code, 2, "{invalid:?}: {}", ran.stderr);
    }
    assert_eq!(stub.count("POST"), posts);
}

#[test]
fn failure_rule_update_keeps_fields_without_flags() {
    let stub = stub();
    let args = ["failure-rules", "update", RULE_ID, "--filter-tag", "env:prod", "--filter-model", "none"];
    let args = [&args[..], &["--metric", "none", "--all-projects", "--name", "n"]].concat();
    let ran = run(stub.loupe(&args));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let wanted = json!({
        "name": "n", "project_id": null, "metric_name": null, "filter": { "tag": "env:prod", "error": true },
    });
    assert_eq!(last_body(&stub), wanted);
    let ran = run(stub.loupe(&["failure-rules", "update", RULE_ID, "--no-filter", "--window", "15m"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(last_body(&stub), json!({ "filter": {}, "window_minutes": 15 }));

    let ran = run(stub.loupe(&["failure-rules", "update", RULE_ID, "--move-to", "shop"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(last_body(&stub), json!({ "project_id": PROJECT_ID }));

    let patches = stub.count("PATCH");
    let both = ["failure-rules", "update", RULE_ID, "--move-to", "shop", "--all-projects"];
    assert_eq!(run(stub.loupe(&both)).code, 2);
    assert_eq!(run(stub.loupe(&["failure-rules", "update", RULE_ID, "--move-to", "garden"])).code, 11);
    assert_eq!(run(stub.loupe(&["failure-rules", "update", RULE_ID])).code, 2);
    assert_eq!(stub.count("PATCH"), patches);
}

#[test]
fn failure_rule_is_found_by_id_suffix_and_refused_by_ambiguous_name() {
    let stub = stub();
    let ran = run(stub.loupe(&["failure-rules", "get", "0000cafe", "-o", "table"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for part in ["timeouts", "faithfulness <= 0.5", "at 5 or more matching traces within 1h", "all projects"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let ran = run(stub.loupe(&["failure-rules", "get", "timeouts"]));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains(RULE_ID) && ran.stderr.contains(OTHER_RULE_ID), "{}", ran.stderr);
    let ran = run(stub.loupe(&["failure-rules", "get", "nope"]));
    assert_eq!(ran.code, 11);
    assert!(ran.stderr.contains("loupe failure-rules list"), "{}", ran.stderr);
    let ids = run(stub.loupe(&["failure-rules", "list", "-o", "id"])).stdout;
    assert_eq!(ids, format!("{RULE_ID}\n{OTHER_RULE_ID}\n"));
}

#[test]
fn failure_rule_is_switched_and_deleted_after_confirmation() {
    let stub = stub();
    for (verb, enabled) in [("enable", true), ("disable", false)] {
        assert_eq!(run(stub.loupe(&["failure-rules", verb, "0000cafe"])).code, 0);
        assert_eq!(last_body(&stub), json!({ "enabled": enabled }));
    }
    let ran = run(stub.loupe(&["failure-rules", "delete", "0000cafe"]));
    assert_eq!((ran.code, stub.count("DELETE")), (2, 0));
    let ran = run(stub.loupe(&["failure-rules", "delete", "0000cafe", "--yes", "--json"]));
    assert_eq!(
        serde_json::from_str::<Value>(&ran.stdout).unwrap(),
        json!({ "id": RULE_ID, "deleted": true })
    );
    assert_eq!(stub.count("DELETE"), 1);
}

#[test]
fn anomalies_are_filtered_and_shown_in_the_unit_of_their_metric() {
    let stub = stub();
    let args = ["anomalies", "list", "--metric", "latency_p95", "--severity", "high", "-p", PROJECT_ID];
    let ran = run(stub.loupe(&[&args[..], &["--to", "2026-11-22T00:00:00Z", "-o", "table"]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("8.20s") && ran.stdout.contains("3.10s"), "{}", ran.stdout);
    let query = last_query(&stub);
    for part in ["metric=latency_p95", "severity=high", PROJECT_ID, "to=2026-11-22"] {
        assert!(query.contains(part), "{part}: {query}");
    }
    let ran = run(stub.loupe(&["anomalies", "list", "--json", "--jq", ".anomalies[0].score"]));
    assert_eq!(ran.stdout, "4.5\n");
    assert_eq!(run(stub.loupe(&["anomalies", "list", "--severity", "huge"])).code, 2);
}
