//! Tests of policies, control actions and approvals.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use serde_json::{Value, json};

use crate::stub::{Reply, Request, Stub, run};

const PROJECT_ID: &str = "01980f6e-0000-7000-8000-000000000001";
const TRACE_ID: &str = "01980f6e-0000-7000-8000-0000c07b44d1";
const SPAN_ID: &str = "01980f6e-0000-7000-8000-0000000000aa";
const POLICY_ID: &str = "01980f6e-0000-7000-8000-00000000cafe";
const ACTION_ID: &str = "01980f6e-0000-7000-8000-00005e1f09aa";
const DEPLOYMENT_ID: &str = "01980f6e-0000-7000-8000-00007e57d00d";

fn policy() -> Value {
    json!({
        "id": POLICY_ID, "project_id": PROJECT_ID, "name": "retry \u{1b}[2Jtimeouts", "enabled": true,
        "trigger": { "type": "failure", "failure_types": ["timeout", "rate_limit"] },
        "action_type": "fallback_model", "action_config": { "model": "gpt-4o", "temperature": 0.2 },
        "require_approval": false, "max_retry_depth": 3, "max_cascade_depth": 5, "cooldown_seconds": 600,
        "daily_budget_usd": 2.5, "created_at": "2026-11-21T14:00:00.000000Z",
        "updated_at": "2026-11-21T14:00:00.000000Z", "later_field": 1,
    })
}

fn action(status: &str) -> Value {
    json!({
        "id": ACTION_ID, "project_id": PROJECT_ID, "trace_id": TRACE_ID, "span_id": SPAN_ID,
        "policy_id": POLICY_ID, "action_type": "escalate", "action_config": { "model": "gpt-4o\u{1b}]0;x" },
        "status": status, "require_approval": true, "metadata": {
            "escalation_reason": "retry_threshold_exceeded", "retry_count": 3,
            "requested_action_type": "fallback_model", "trigger": "failure", "failing_span_id": SPAN_ID,
        },
        "remediated_span_id": null, "error": (status == "failed").then_some("no \u{7}credential"),
        "requested_by": null, "decided_by": (status == "rejected").then_some("sub-7"),
        "decided_at": (status == "rejected").then_some("2026-11-21T14:05:00.000000Z"), "attempts": 0,
        "cost": null, "completed_at": null, "created_at": "2026-11-21T14:00:00.000000Z",
        "updated_at": "2026-11-21T14:00:00.000000Z", "later_field": 1,
    })
}

fn deployment() -> Value {
    json!({
        "id": DEPLOYMENT_ID, "project_id": PROJECT_ID, "prompt_name": "tone", "version": 2, "status": "ab_passed",
        "template": "x", "ab": null, "created_at": "2026-11-21T15:00:00.000000Z", "later_field": 1,
    })
}

fn diff(regressed: bool) -> Value {
    json!({
        "action_id": ACTION_ID, "original_span_id": SPAN_ID, "remediated_span_id": TRACE_ID,
        "original_output": "You bought it\u{1b}[2J.\nRefunds are possible.",
        "remediated_output": "You bought it\u{1b}[2J.\nRefunds are not possible.",
        "token_length_delta": 12, "latency_delta_ms": -340, "embedding_similarity": 0.9134,
        "eval_deltas": [
            { "rule_id": POLICY_ID, "metric_name": "faithfulness", "original_score": 0.9,
              "remediated_score": 0.7, "delta": -0.2, "regressed": regressed },
            { "rule_id": SPAN_ID, "metric_name": "conciseness", "original_score": 0.5,
              "remediated_score": 0.8, "delta": 0.3, "regressed": false },
        ],
        "later_field": 1,
    })
}

fn page(plural: &str, rows: &[Value]) -> Reply {
    Reply::json(json!({ plural: rows, "has_more": false, "next_cursor": null }))
}

fn invalid_state() -> Reply {
    Reply::status(
        409,
        json!({ "error": "the action is rejected; only a pending_approval action can be decided", "code": "invalid_state" }),
    )
}

fn respond(request: &Request) -> Reply {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/v1/policies") => page("policies", &[policy()]),
        ("POST", "/v1/policies") => Reply::status(201, policy()),
        ("GET" | "PATCH", path) if path == format!("/v1/policies/{POLICY_ID}") => Reply::json(policy()),
        ("GET", "/v1/control/actions") => page("actions", &[action("pending_approval")]),
        ("POST", "/v1/control/actions") => Reply::status(202, action("queued")),
        ("GET", path) if path == format!("/v1/control/actions/{ACTION_ID}") => {
            Reply::json(action("pending_approval"))
        }
        ("GET", path) if path.ends_with("/diff") => Reply::json(diff(true)),
        ("POST", path) if path.ends_with("/approve") => Reply::json(action("queued")),
        ("POST", path) if path.ends_with("/reject") => Reply::json(action("rejected")),
        ("GET", "/v1/prompts/deployments") => page("deployments", &[deployment()]),
        ("DELETE", _) => Reply::status(204, Value::Null),
        _ => Reply::error(404, "not_found"),
    }
}

fn stub() -> Stub {
    Stub::new(|request, _| respond(request))
}

fn last_query(stub: &Stub) -> String {
    stub.requests().last().unwrap().query.clone()
}

fn last_body(stub: &Stub) -> Value {
    serde_json::from_str(&stub.requests().last().unwrap().body).unwrap()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Asserts that a terminal is safe from a text of the server.
fn assert_clean(text: &str) {
    assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{text:?}");
}

#[test]
fn control_loop_needs_a_session_before_any_request() {
    let stub = stub();
    for args in [
        &["policies", "list"][..],
        &["policies", "get", POLICY_ID],
        &["policies", "create", "--action", "retry", "-p", PROJECT_ID],
        &["policies", "update", POLICY_ID, "--disabled"],
        &["policies", "delete", POLICY_ID, "-y"],
        &["actions", "list"],
        &["actions", "get", ACTION_ID],
        &["actions", "request", TRACE_ID, "--type", "retry"],
        &["actions", "diff", ACTION_ID],
        &["actions", "approve", ACTION_ID, "-y"],
        &["actions", "reject", ACTION_ID, "-y"],
        &["approvals", "list"],
        &["approvals", "watch"],
    ] {
        let ran = run(stub.loupe(args));
        assert_eq!(ran.code, 4, "{args:?}");
        assert!(ran.stderr.contains("LOUPE_SESSION_TOKEN"), "{}", ran.stderr);
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn lower_plan_is_code_10_and_viewer_is_code_8() {
    for (status, code, exit) in [(402, "plan_upgrade_required", 10), (403, "forbidden_role", 8)] {
        let stub = Stub::new(move |_, _| Reply::error(status, code));
        for args in [
            &["policies", "list"][..],
            &["actions", "approve", ACTION_ID, "-y"],
            &["approvals", "list"],
            &["approvals", "watch", "--for", "1s"],
        ] {
            let ran = run(stub.session(args));
            assert_eq!((ran.code, ran.stdout.as_str()), (exit, ""), "{args:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn policies_are_listed_and_shown_in_each_format() {
    let stub = stub();
    let ran = run(stub.session(&["policies", "list", "-p", PROJECT_ID, "--json"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(parsed(&ran.stdout)["policies"][0]["later_field"], 1);
    assert!(last_query(&stub).contains(PROJECT_ID));
    let table = run(stub.session(&["policies", "list", "-o", "wide"])).stdout;
    for part in
        ["timeout, rate_limit", "fallback_model", "gpt-4o, temperature 0.2", "10m", "$2.5000", "0000cafe"]
    {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert_clean(&table);
    let sheet = run(stub.session(&["policies", "get", "0000cafe", "-o", "table"])).stdout;
    for part in
        ["failures: timeout, rate_limit", "only for escalations", "3 retries, 5 actions", "$2.5000 a day"]
    {
        assert!(sheet.contains(part), "{part}: {sheet}");
    }
    assert_clean(&sheet);
    assert_eq!(run(stub.session(&["policies", "list", "-o", "id"])).stdout, format!("{POLICY_ID}\n"));
    assert_eq!(run(stub.session(&["policies", "get", "nope"])).code, 11);
    assert_eq!(run(stub.session(&["policies", "list", "--fields", "nope"])).code, 2);
}

#[test]
fn policy_is_created_from_flags() {
    let stub = stub();
    let args = ["policies", "create", "-p", PROJECT_ID, "--name", "n", "--action", "fallback_model"];
    let args =
        [&args[..], &["--on-failure", "timeout,rate_limit", "--model", "gpt-4o", "--temperature", "0"]]
            .concat();
    let args =
        [&args[..], &["--require-approval", "--max-retry-depth", "2", "--max-cascade-depth", "4"]].concat();
    let ran =
        run(stub
            .session(&[&args[..], &["--cooldown", "10m", "--daily-budget", "2.5", "--disabled"]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let wanted = json!({
        "project_id": PROJECT_ID, "action_type": "fallback_model", "name": "n", "enabled": false,
        "trigger": { "type": "failure", "failure_types": ["timeout", "rate_limit"] },
        "action_config": { "model": "gpt-4o", "temperature": 0.0 }, "require_approval": true,
        "max_retry_depth": 2, "max_cascade_depth": 4, "cooldown_seconds": 600, "daily_budget_usd": 2.5,
    });
    assert_eq!(last_body(&stub), wanted);

    std::fs::write(stub.dir.path().join("prompt.txt"), "{{system}}\nBe brief.\n").unwrap();
    let args = ["policies", "create", "-p", PROJECT_ID, "--action", "prompt_modification"];
    let args = [&args[..], &["--on-evaluation", "faithfulness", "--max-score", "0.5"]].concat();
    let ran = run(stub.session(&[&args[..], &["--prompt-template", "prompt.txt"]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let wanted = json!({
        "project_id": PROJECT_ID, "action_type": "prompt_modification",
        "trigger": { "type": "evaluation", "metric_name": "faithfulness", "max_score": 0.5 },
        "action_config": { "prompt_template": "{{system}}\nBe brief." },
    });
    assert_eq!(last_body(&stub), wanted);

    // The server refuses negative amounts with the name of the field.
    let args = ["policies", "create", "-p", PROJECT_ID, "--action", "retry", "--daily-budget", "-1"];
    let ran = run(stub.session(&[&args[..], &["--temperature", "-0.5"]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let wanted = json!({
        "project_id": PROJECT_ID, "action_type": "retry", "daily_budget_usd": -1.0,
        "action_config": { "temperature": -0.5 },
    });
    assert_eq!(last_body(&stub), wanted);

    let posts = stub.count("POST");
    for invalid in [
        &["-p", PROJECT_ID, "--on-failure", "slow"][..],
        &["-p", PROJECT_ID, "--on-evaluation", "faithfulness"],
        &["-p", PROJECT_ID, "--max-score", "0.5"],
        &["-p", PROJECT_ID, "--on-failure", "timeout", "--on-evaluation", "x", "--max-score", "1"],
        &["-p", PROJECT_ID, "--cooldown", "1500ms"],
        &["-p", PROJECT_ID, "--daily-budget", "much"],
        &["-p", PROJECT_ID, "--temperature", "warm"],
        &["-p", PROJECT_ID, "--callback-secret-file", "missing.key"],
        // No project.
        &[],
    ] {
        let ran = run(stub.session(&[&["policies", "create", "--action", "retry"][..], invalid].concat()));
        assert_eq!(ran.code, 2, "{invalid:?}: {}", ran.stderr);
    }
    assert_eq!(run(stub.session(&["policies", "create", "--action", "escalate", "-p", PROJECT_ID])).code, 2);
    assert_eq!(stub.count("POST"), posts);
}

#[test]
fn callback_secret_is_read_from_a_file_and_never_shown() {
    let stub = stub();
    std::fs::write(stub.dir.path().join("hook.key"), "a secret of some length\n").unwrap();
    let args = [
        "policies",
        "create",
        "-p",
        PROJECT_ID,
        "--action",
        "retry",
        "--callback-url",
        "https://example.com/r",
    ];
    let args = [&args[..], &["--callback-secret-file", "hook.key"]].concat();
    for format in [&["-n"][..], &["-n", "--json"]] {
        let ran = run(stub.session(&[&args[..], format].concat()));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("https://example.com/r") && ran.stdout.contains("***"), "{}", ran.stdout);
        assert!(!ran.stdout.contains("a secret"), "{}", ran.stdout);
    }
    assert!(stub.requests().is_empty());
    let ran = run(stub.session(&[&args[..], &["-vv"]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let config =
        json!({ "callback_url": "https://example.com/r", "callback_secret": "a secret of some length" });
    assert_eq!(last_body(&stub)["action_config"], config);
    assert!(!ran.stderr.contains("a secret") && !ran.stdout.contains("a secret"), "{}", ran.stderr);
}

#[test]
fn policy_update_keeps_fields_without_flags() {
    let stub = stub();
    let update = |flags: &[&str]| {
        let ran = run(stub.session(&[&["policies", "update", POLICY_ID][..], flags].concat()));
        assert_eq!(ran.code, 0, "{flags:?}: {}", ran.stderr);
        last_body(&stub)
    };
    assert_eq!(update(&["--disabled"]), json!({ "enabled": false }));
    assert_eq!(
        update(&["--enabled", "--no-approval"]),
        json!({ "enabled": true, "require_approval": false })
    );
    let cleared = json!({ "trigger": null, "daily_budget_usd": null });
    assert_eq!(update(&["--on-failure", "none", "--daily-budget", "none"]), cleared);
    assert_eq!(update(&["--on-evaluation", "none"]), json!({ "trigger": null }));
    // The rest of the configuration is copied from the policy.
    let config = json!({ "model": "gpt-4o-mini", "temperature": 0.2 });
    assert_eq!(update(&["--model", "gpt-4o-mini"]), json!({ "action_config": config }));
    assert_eq!(update(&["--temperature", "none"]), json!({ "action_config": { "model": "gpt-4o" } }));
    // The model belongs to the previous action type.
    let retry = json!({ "action_type": "retry", "action_config": { "temperature": 0.2 } });
    assert_eq!(update(&["--action", "retry"]), retry);

    let patches = stub.count("PATCH");
    for invalid in [&[][..], &["--enabled", "--disabled"], &["--require-approval", "--no-approval"]] {
        let ran = run(stub.session(&[&["policies", "update", POLICY_ID][..], invalid].concat()));
        assert_eq!(ran.code, 2, "{invalid:?}: {}", ran.stderr);
    }
    assert_eq!(stub.count("PATCH"), patches);
}

#[test]
fn policy_is_deleted_after_confirmation() {
    let stub = stub();
    let ran = run(stub.session(&["policies", "delete", "0000cafe"]));
    assert_eq!((ran.code, stub.requests().len()), (2, 0));
    let ran = run(stub.session(&["policies", "delete", "0000cafe", "--yes", "--json"]));
    assert_eq!(parsed(&ran.stdout), json!({ "id": POLICY_ID, "deleted": true }));
    assert_eq!(stub.count("DELETE"), 1);
}

#[test]
fn actions_are_filtered_and_shown_in_each_format() {
    let stub = stub();
    let args = ["actions", "list", "--status", "pending_approval", "--type", "escalate", "--trace", TRACE_ID];
    let args =
        [&args[..], &["--policy", "0000cafe", "-p", PROJECT_ID, "--from", "2026-11-21T00:00:00Z"]].concat();
    let ran = run(stub.session(&[&args[..], &["--json"]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(parsed(&ran.stdout)["actions"][0]["later_field"], 1);
    let query = last_query(&stub);
    for part in [
        "status=pending_approval",
        "action_type=escalate",
        TRACE_ID,
        POLICY_ID,
        PROJECT_ID,
        "from=2026-11-21",
    ] {
        assert!(query.contains(part), "{part}: {query}");
    }
    let table = run(stub.session(&["actions", "list", "-o", "table"])).stdout;
    for part in ["pending_approval", "retry_threshold_exceeded, 3 retries before it", "5e1f09aa", "c07b44d1"]
    {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert_clean(&table);
    let sheet = run(stub.session(&["actions", "get", "5e1f09aa", "-o", "table"])).stdout;
    for part in ["executes    fallback_model", "failure of the span", POLICY_ID] {
        assert!(sheet.contains(part), "{part}: {sheet}");
    }
    assert_clean(&sheet);
    let fields = run(stub.session(&[
        "actions",
        "get",
        ACTION_ID,
        "--json",
        "--fields",
        "status,metadata.retry_count",
    ]));
    assert_eq!(parsed(&fields.stdout), json!({ "status": "pending_approval", "metadata.retry_count": 3 }));
    assert_eq!(run(stub.session(&["actions", "list", "--status", "parked"])).code, 2);
    assert_eq!(run(stub.session(&["actions", "get", "00000000"])).code, 11);
}

#[test]
fn action_is_requested_from_flags() {
    let stub = stub();
    let args = ["actions", "request", TRACE_ID, "--type", "prompt_modification", "--span", SPAN_ID];
    let args =
        [&args[..], &["--policy", POLICY_ID, "--system-suffix", "Cite.", "--temperature", "0.5"]].concat();
    let ran = run(stub.session(&[&args[..], &["--json"]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let wanted = json!({
        "trace_id": TRACE_ID, "action_type": "prompt_modification", "span_id": SPAN_ID, "policy_id": POLICY_ID,
        "action_config": { "system_suffix": "Cite.", "temperature": 0.5 },
    });
    assert_eq!(last_body(&stub), wanted);
    assert!(ran.stderr.contains(&format!("loupe actions diff {ACTION_ID} --wait")), "{}", ran.stderr);
    let plain = run(stub.session(&["actions", "request", TRACE_ID, "--type", "retry"]));
    assert_eq!(plain.code, 0, "{}", plain.stderr);
    assert_eq!(last_body(&stub), json!({ "trace_id": TRACE_ID, "action_type": "retry" }));

    let requests = stub.requests().len();
    let dry = run(stub.session(&["actions", "request", TRACE_ID, "--type", "retry", "-n", "--json"]));
    assert_eq!(parsed(&dry.stdout)["path"], "/v1/control/actions");
    assert_eq!(run(stub.session(&["actions", "request", TRACE_ID, "--type", "escalate"])).code, 2);
    assert_eq!(stub.requests().len(), requests);
}

#[test]
fn requested_action_is_awaited_to_its_end() {
    for (last, code, message) in [
        ("succeeded", 0, ""),
        ("failed", 6, "the action failed: no ⟦07⟧credential"),
        ("rejected", 6, "rejected by sub-7"),
        ("running", 7, "the action is still running"),
        ("pending_approval", 7, "the action is still pending_approval"),
    ] {
        let polls = AtomicUsize::new(0);
        let stub = Stub::new(move |request, _| match request.method.as_str() {
            "POST" => Reply::status(202, action("queued")),
            _ if polls.fetch_add(1, SeqCst) == 0 => Reply::json(action("running")),
            _ => Reply::json(action(last)),
        });
        let args = ["actions", "request", TRACE_ID, "--type", "retry", "--wait", "--for", "1s", "--json"];
        let ran = run(stub.session(&args));
        assert_eq!(ran.code, code, "{last}: {}", ran.stderr);
        assert_eq!(parsed(&ran.stdout)["status"], last);
        if !message.is_empty() {
            assert!(ran.stderr.contains(message) || ran.stderr.contains("\\u0007"), "{}", ran.stderr);
        }
    }
}

#[test]
fn diff_shows_outputs_numbers_and_regressed_scores() {
    let stub = stub();
    let ran = run(stub.session(&["actions", "diff", "5e1f09aa", "-o", "table"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for part in [
        "1 of 2 eval rules regressed",
        "+12",
        "-340ms",
        "0.913",
        "-0.200  regressed",
        "+0.300",
        "--- original output",
        " You bought it⟦ESC⟧[2J.",
        "-Refunds are possible.",
        "+Refunds are not possible.",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert_clean(&ran.stdout);
    // A layout on the command line asks for a text, also in a pipe.
    let side = run(stub.session(&["actions", "diff", ACTION_ID, "--side-by-side"])).stdout;
    assert!(
        side.contains("-Refunds are possible.") && side.contains("│ +Refunds are not possible."),
        "{side}"
    );
    let numbers = run(stub.session(&["actions", "diff", ACTION_ID, "--stat"])).stdout;
    assert!(numbers.contains("lines       -1 +1") && !numbers.contains("Refunds"), "{numbers}");
    let rows = run(stub.session(&["actions", "diff", ACTION_ID])).stdout;
    assert!(rows.starts_with("action_id\ttoken_length_delta\t"), "{rows}");
    let document = run(stub.session(&["actions", "diff", ACTION_ID, "--json", "--unified"])).stdout;
    assert_eq!(parsed(&document), diff(true));
    assert_eq!(run(stub.session(&["actions", "diff", ACTION_ID, "--stat", "--unified"])).code, 2);
}

#[test]
fn regression_is_code_6_only_with_exit_code() {
    for (regressed, flag, code) in [(true, true, 6), (true, false, 0), (false, true, 0)] {
        let stub = Stub::new(move |_, _| Reply::json(diff(regressed)));
        let args = ["actions", "diff", ACTION_ID, "--json", "--exit-code"];
        let ran = run(stub.session(if flag { &args } else { &args[..4] }));
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert_eq!(ran.stderr.contains("faithfulness"), code == 6, "{}", ran.stderr);
        assert_eq!(parsed(&ran.stdout), diff(regressed));
    }
}

#[test]
fn incomplete_diff_is_code_7_with_its_progress() {
    let progress = json!({ "status": "evaluating", "completed": 1, "total": 3 });
    let answer = progress.clone();
    let stub = Stub::new(move |_, _| Reply::status(202, answer.clone()));
    for wait in [&[][..], &["--wait", "--for", "400ms"]] {
        let ran = run(stub.session(&[&["actions", "diff", ACTION_ID, "-o", "table"][..], wait].concat()));
        assert_eq!((ran.code, ran.stdout.as_str()), (7, ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("1 of 3 evaluations of the output have ended"), "{}", ran.stderr);
    }
    let ran = run(stub.session(&["actions", "diff", ACTION_ID, "--json"]));
    assert_eq!((ran.code, parsed(&ran.stdout)), (7, progress));
    assert_eq!(parsed(&ran.stderr)["error"]["exit_code"], 7);
}

#[test]
fn diff_is_awaited_until_its_evaluations_have_ended() {
    let polls = AtomicUsize::new(0);
    let stub = Stub::new(move |_, _| match polls.fetch_add(1, SeqCst) {
        0 | 1 => Reply::status(202, json!({ "status": "evaluating", "completed": 0, "total": 2 })),
        _ => Reply::json(diff(false)),
    });
    let ran = run(stub.session(&["actions", "diff", ACTION_ID, "--wait", "--stat"]));
    assert_eq!((ran.code, stub.requests().len()), (0, 3), "{}", ran.stderr);
    assert!(ran.stdout.contains("2 eval rules, none regressed"), "{}", ran.stdout);
    let stub = Stub::new(|_, _| Reply::error(409, "invalid_state"));
    assert_eq!(run(stub.session(&["actions", "diff", ACTION_ID, "--wait"])).code, 12);
}

#[test]
fn actions_are_decided_after_confirmation() {
    let stub = stub();
    for (verb, status) in [("approve", "queued"), ("reject", "rejected")] {
        let posts = stub.count("POST");
        let ran = run(stub.session(&["actions", verb, "5e1f09aa"]));
        assert_eq!((ran.code, stub.count("POST")), (2, posts), "{}", ran.stderr);
        assert!(ran.stderr.contains("--yes"), "{}", ran.stderr);
        let ran = run(stub.session(&["actions", verb, "5e1f09aa", "-y", "--json"]));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(parsed(&ran.stdout)["status"], status);
        let sent = stub.requests().pop().unwrap();
        assert_eq!(
            (sent.path, sent.body),
            (format!("/v1/control/actions/{ACTION_ID}/{verb}"), String::new())
        );
        let requests = stub.requests().len();
        let dry = run(stub.session(&["actions", verb, ACTION_ID, "-n"]));
        assert_eq!(dry.stdout, format!("POST /v1/control/actions/{ACTION_ID}/{verb}\n"));
        assert_eq!(stub.requests().len(), requests);
    }
}

#[test]
fn decided_action_is_code_12_with_its_state() {
    let stub = Stub::new(|request, _| match request.method.as_str() {
        "POST" => invalid_state(),
        _ => Reply::json(action("rejected")),
    });
    let ran = run(stub.session(&["actions", "approve", ACTION_ID, "--yes"]));
    assert_eq!((ran.code, ran.stdout.as_str(), stub.count("POST")), (12, "", 1), "{}", ran.stderr);
    for part in ["the action is rejected", "state       rejected, decided by sub-7 at 2026-11-21T14:05:00"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    let error = parsed(&run(stub.session(&["actions", "reject", ACTION_ID, "-y", "--json"])).stderr);
    assert_eq!(
        (&error["error"]["code"], &error["error"]["exit_code"]),
        (&json!("invalid_state"), &json!(12))
    );
}

/// Runs `loupe` on a terminal on which `answer` is typed.
#[cfg(target_os = "linux")]
fn on_terminal(stub: &Stub, arguments: &[&str], answer: &str) -> crate::stub::Ran {
    let quoted: Vec<String> = arguments.iter().map(|it| format!("'{it}'")).collect();
    let line = format!("{} {}", env!("CARGO_BIN_EXE_loupe"), quoted.join(" "));
    let mut command = assert_cmd::Command::new("script");
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LOUPE_CONFIG_DIR", stub.dir.path())
        .env("LOUPE_URL", stub.url())
        .env("LOUPE_SESSION_TOKEN", "session")
        .env("TERM", "dumb")
        .timeout(std::time::Duration::from_secs(20))
        .args(["-qec", &line, "/dev/null"])
        .write_stdin(answer);
    run(command)
}

#[cfg(target_os = "linux")]
#[test]
fn confirmation_repeats_what_an_approval_executes() {
    let stub = stub();
    let ran = on_terminal(&stub, &["actions", "approve", ACTION_ID], "n\n");
    assert_eq!((ran.code, stub.count("POST")), (3, 0), "{}", ran.stdout);
    for part in
        ["executes the fallback_model 5e1f09aa", TRACE_ID, "costs money", "retry_threshold_exceeded", "⟦ESC⟧"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let ran = on_terminal(&stub, &["actions", "approve", ACTION_ID], "y\n");
    assert_eq!((ran.code, stub.count("POST")), (0, 1), "{}", ran.stdout);
}

#[cfg(target_os = "linux")]
#[test]
fn protected_context_asks_for_the_end_of_the_id() {
    let stub = stub();
    let config = format!("current = \"prod\"\n[contexts.prod]\nurl = \"{}\"\nprotected = true\n", stub.url());
    std::fs::write(stub.dir.path().join("config.toml"), config).unwrap();
    let ran = on_terminal(&stub, &["actions", "reject", ACTION_ID], "y\n");
    assert_eq!((ran.code, stub.count("POST")), (3, 0), "{}", ran.stdout);
    assert!(ran.stdout.contains("Type 5e1f09aa to continue"), "{}", ran.stdout);
    let ran = on_terminal(&stub, &["actions", "reject", ACTION_ID], "5e1f09aa\n");
    assert_eq!((ran.code, stub.count("POST")), (0, 1), "{}", ran.stdout);
}

#[test]
fn approvals_are_listed_newest_first_in_each_format() {
    let stub = stub();
    let ran = run(stub.session(&["approvals", "list", "-p", PROJECT_ID, "-o", "table"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_clean(&ran.stdout);
    let at = |part: &str| ran.stdout.find(part).unwrap_or_else(|| panic!("{part}: {}", ran.stdout));
    assert!(at("tone v2") < at("fallback_model on c07b44d1"), "{}", ran.stdout);
    assert!(at("no version to compare with") < at("retry_threshold_exceeded"), "{}", ran.stdout);
    let queries: Vec<String> = stub.requests().into_iter().map(|it| it.query).collect();
    assert!(
        queries[0].contains("status=ab_passed") && queries[1].contains("status=pending_approval"),
        "{queries:?}"
    );
    assert!(queries.iter().all(|it| it.contains(PROJECT_ID)), "{queries:?}");

    let document = parsed(&run(stub.session(&["approvals", "list", "--json"])).stdout);
    let wanted =
        json!({ "deployments": [deployment()], "actions": [action("pending_approval")], "has_more": false });
    assert_eq!(document, wanted);
    let ids = run(stub.session(&["approvals", "list", "-o", "id"])).stdout;
    assert_eq!(ids, format!("{DEPLOYMENT_ID}\n{ACTION_ID}\n"));
    let lines = run(stub.session(&["approvals", "list", "-o", "ndjson", "--fields", "kind,trace_id"])).stdout;
    let second = json!({ "kind": "action", "trace_id": TRACE_ID });
    assert_eq!(parsed(lines.lines().nth(1).unwrap()), second);

    let empty = Stub::new(|request, _| match request.path.as_str() {
        "/v1/prompts/deployments" => page("deployments", &[]),
        _ => page("actions", &[]),
    });
    let ran = run(empty.session(&["approvals", "list"]));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "nothing waits for approval\n"));
}

#[test]
fn approvals_list_reads_further_pages_only_with_all() {
    let stub = Stub::new(|request, _| match request.path.as_str() {
        "/v1/prompts/deployments" => page("deployments", &[]),
        _ if request.query.contains("cursor=c1") => page("actions", &[action("pending_approval")]),
        _ => Reply::json(
            json!({ "actions": [action("pending_approval")], "has_more": true, "next_cursor": "c1" }),
        ),
    });
    let ran = run(stub.session(&["approvals", "list", "-L", "1", "--json"]));
    assert_eq!((ran.code, stub.requests().len()), (0, 2), "{}", ran.stderr);
    assert_eq!(parsed(&ran.stdout)["has_more"], true);
    assert!(ran.stderr.contains("--all"), "{}", ran.stderr);
    let ran = run(stub.session(&["approvals", "list", "--all", "--json"]));
    assert_eq!(parsed(&ran.stdout)["actions"].as_array().map(Vec::len), Some(2));
}

/// Answers with the deployment from the beginning, and with the action from the third read.
fn growing_queue() -> Stub {
    let reads = AtomicUsize::new(0);
    Stub::new(move |request, _| match request.path.as_str() {
        "/v1/prompts/deployments" => page("deployments", &[deployment()]),
        _ => match reads.fetch_add(1, SeqCst) {
            0 => page("actions", &[]),
            1 => Reply::error(503, "overloaded"),
            _ => page("actions", &[action("pending_approval")]),
        },
    })
}

fn watched_ids(stdout: &str) -> Vec<String> {
    stdout.lines().map(|line| parsed(line)["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn watch_prints_each_approval_once_across_an_outage() {
    let stub = growing_queue();
    let args = ["approvals", "watch", "--interval", "200ms", "-o", "ndjson", "--max", "2"];
    let ran = run(stub.session(&args));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(watched_ids(&ran.stdout), [DEPLOYMENT_ID, ACTION_ID]);
    for note in ["watching the approvals of all projects", "retrying in 1s", "connected again"] {
        assert!(ran.stderr.contains(note), "{note}: {}", ran.stderr);
    }
    let stub = growing_queue();
    let ran = run(stub.session(&[&args[..5], &["ndjson", "--new-only", "--exit-on", "match"]].concat()));
    assert_eq!((ran.code, watched_ids(&ran.stdout)), (0, vec![ACTION_ID.to_owned()]), "{}", ran.stderr);
}

#[test]
fn watch_without_a_match_is_code_7() {
    let stub = Stub::new(|request, _| match request.path.as_str() {
        "/v1/prompts/deployments" => page("deployments", &[]),
        _ => page("actions", &[]),
    });
    let args = ["approvals", "watch", "--interval", "200ms", "--for", "500ms"];
    assert_eq!(run(stub.session(&args)).code, 0);
    let ran = run(stub.session(&[&args[..], &["--exit-on", "match"]].concat()));
    assert_eq!((ran.code, ran.stdout.as_str()), (7, ""), "{}", ran.stderr);
    assert!(stub.requests().len() >= 4);
}
