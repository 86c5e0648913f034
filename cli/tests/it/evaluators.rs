//! Tests of evaluators and eval rules: offline look-ups and requests.

use serde_json::{Value, json};

use crate::stub::{Ran, Reply, Request, Stub, run};

const TRACE_ID: &str = "01980f6e-0000-7000-8000-0000c07b44d1";
const BOT_PROJECT_ID: &str = "01980f6e-0000-7000-8000-000000000001";
const RULE_ID: &str = "01980f6e-0000-7000-8000-00000000cafe";
const OTHER_RULE_ID: &str = "01980f6e-0000-7000-8000-00000000beef";

fn custom_evaluator(version: i64) -> Value {
    json!({
        "name": "polite", "display_name": "Polite", "tags": ["quality", "ours"], "evaluator_type": "llm",
        "evaluator_types": ["llm"], "description": "Whether it is \u{1b}[2Jpolite.", "version": version,
        "config_schema": { "type": "object", "properties": {} }, "builtin": false,
        "rubric": "Is {{output}} polite?\nIgnore its length.", "scale": { "min": 1, "max": 5 },
        "created_at": "2026-11-21T14:00:00Z", "updated_at": "2026-11-21T14:00:00Z", "later_field": 7,
    })
}

fn builtin_evaluator() -> Value {
    json!({
        "name": "latency_threshold", "display_name": "Latency Threshold", "tags": ["performance"],
        "evaluator_type": "rule", "evaluator_types": ["rule"], "description": "Within the limit.", "version": 9,
        "config_schema": {}, "builtin": true,
    })
}

fn rule(id: &str, enabled: bool) -> Value {
    json!({
        "id": id, "project_id": BOT_PROJECT_ID, "metric_name": "toxicity", "evaluator_type": "llm", "config": {},
        "enabled": enabled, "model_tier": "cheap", "min_score_drop": 0.0,
        "filter": { "model": "gpt-4o", "error": true }, "sample_rate": 0.1,
        "paused_reason": enabled.then_some("judge_rejected"),
        "paused_detail": enabled.then_some("the provider refused the key"),
        "created_at": "2026-11-21T14:00:00Z", "updated_at": "2026-11-21T14:00:00Z",
    })
}

fn stub() -> Stub {
    Stub::new(|request, _| match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/v1/evaluators") => Reply::json(
            json!({ "evaluators": [builtin_evaluator(), custom_evaluator(1)], "has_more": false, "next_cursor": null }),
        ),
        ("GET", "/v1/evaluators/polite") => Reply::json(custom_evaluator(1)),
        ("POST", "/v1/evaluators") => Reply::status(201, custom_evaluator(1)),
        ("PATCH", "/v1/evaluators/polite") => Reply::json(custom_evaluator(2)),
        ("GET", "/v1/eval-rules") => {
            let rules = [rule(RULE_ID, true), rule(OTHER_RULE_ID, false)];
            Reply::json(json!({ "eval_rules": rules, "has_more": false, "next_cursor": null }))
        }
        ("POST", "/v1/eval-rules") => Reply::status(201, rule(RULE_ID, true)),
        ("GET" | "PATCH", path) if path == format!("/v1/eval-rules/{RULE_ID}") => {
            Reply::json(rule(RULE_ID, true))
        }
        ("GET", path) if path.ends_with("/decisions") => Reply::json(json!({
            "decisions": [{
                "rule_id": RULE_ID, "trace_id": TRACE_ID, "decision": "sampled_out",
                "detail": "the sample of 10 % leaves it out", "evaluation_id": null, "decided_at": null,
            }],
            "has_more": false, "next_cursor": null,
        })),
        ("POST", path) if path.ends_with("/test") => Reply::json(json!({
            "trace_id": TRACE_ID, "decision": "filtered", "detail": "the model is not gpt-4o", "status": "failed",
            "score": null, "label": null, "reasoning": null, "error": "the trace has no output",
            "evaluator_version": "toxicity@1", "judge_model": null, "prompt_tokens": null,
            "completion_tokens": null, "cost": null,
        })),
        ("POST", path) if path.ends_with("/backfill") => {
            Reply::status(202, json!({ "matched": 12, "queued": 10, "bulk_id": OTHER_RULE_ID }))
        }
        ("DELETE", _) => Reply::status(204, Value::Null),
        _ => Reply::error(404, "not_found"),
    })
}

fn run_with_key(stub: &Stub, args: &[&str]) -> Ran {
    run(stub.loupe(args))
}

fn last(stub: &Stub) -> Request {
    stub.requests().pop().unwrap()
}

fn body(stub: &Stub) -> Value {
    serde_json::from_str(&last(stub).body).unwrap()
}

fn names(ran: &Ran) -> Vec<&str> {
    ran.stdout.lines().collect()
}

#[test]
fn evaluator_list_of_the_server_is_filtered_locally() {
    let stub = stub();
    for (args, wanted) in [
        (&[][..], &["latency_threshold", "polite"][..]),
        (&["--own"], &["polite"]),
        (&["--builtin"], &["latency_threshold"]),
        (&["--tag", "ours"], &["polite"]),
        (&["--type", "rule"], &["latency_threshold"]),
        (&["--tag", "safety"], &[]),
    ] {
        let ran = run_with_key(&stub, &[&["evaluators", "list", "-o", "id"], args].concat());
        assert_eq!((ran.code, names(&ran).as_slice()), (0, wanted), "{args:?}: {}", ran.stderr);
    }
    let document: Value =
        serde_json::from_str(&run_with_key(&stub, &["evaluators", "list", "--json"]).stdout).unwrap();
    assert_eq!(document["evaluators"], json!([builtin_evaluator(), custom_evaluator(1)]));
}

#[test]
fn empty_evaluator_list_gives_the_reason() {
    for (rows, args, expected) in [
        (vec![builtin_evaluator(), custom_evaluator(1)], &["--own", "--tag", "x"][..], "nothing matches\n"),
        (vec![builtin_evaluator(), custom_evaluator(1)], &["--own", "--type", "rule"], "nothing matches\n"),
        (vec![builtin_evaluator()], &["--own", "--tag", "x"], "no custom evaluators yet"),
        (vec![builtin_evaluator(), custom_evaluator(1)], &["--tag", "x"], "nothing matches\n"),
    ] {
        let stub = Stub::new(move |_, _| {
            Reply::json(json!({ "evaluators": rows, "has_more": false, "next_cursor": null }))
        });
        let ran = run_with_key(&stub, &[&["evaluators", "list"], args].concat());
        assert_eq!(ran.code, 0);
        assert!(ran.stderr.starts_with(expected), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn builtin_evaluators_are_listed_without_a_server() {
    let stub = stub();
    let ran = run(stub.bare(&["evaluators", "list", "--offline", "--json"]));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let known = document["evaluators"].as_array().unwrap();
    let whole = |it: &Value| it["builtin"] == true && it["config_schema"]["type"] == "object";
    assert!(known.iter().all(whole) && document["has_more"] == false, "{document}");
    assert!(stub.requests().is_empty());

    // Without a credential, and with an unreachable server.
    let ran = run(stub.bare(&["evaluators", "get", "latency_threshold", "-o", "table"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("max_latency_ms: integer, required"), "{}", ran.stdout);
    assert!(ran.stderr.contains("that this program contains"), "{}", ran.stderr);
    let args = ["evaluators", "list", "--url", "http://127.0.0.1:9", "--retries", "1", "-o", "id"];
    let ran = run_with_key(&stub, &args);
    assert_eq!((ran.code, names(&ran).len()), (0, known.len()), "{}", ran.stderr);
    assert!(ran.stderr.contains("evaluators that this program contains"), "{}", ran.stderr);
    assert!(stub.requests().is_empty());

    assert_eq!(run_with_key(&stub, &[&args[..], &["--own"]].concat()).code, 5);
    for name in ["no_such", "polite"] {
        assert_eq!(run(stub.bare(&["evaluators", "get", name, "--offline"])).code, 11);
    }
}

#[test]
fn error_response_is_not_replaced_by_builtin_evaluators() {
    let stub = Stub::new(|_, _| Reply::error(401, "unauthorized"));
    for args in [&["evaluators", "list"][..], &["evaluators", "get", "latency_threshold"]] {
        let ran = run_with_key(&stub, args);
        assert_eq!((ran.code, ran.stdout.as_str()), (4, ""));
    }
}

#[test]
fn evaluator_sheet_is_complete_and_escapes_controls() {
    let ran = run_with_key(&stub(), &["evaluators", "get", "polite", "-o", "table"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for line in [
        "polite@1  Polite  llm",
        "  checks      Whether it is ⟦ESC⟧[2Jpolite.",
        "  rubric      Is {{output}} polite?",
        "              Ignore its length.",
        "  scale       {\"max\":5,\"min\":1}",
        "  try it      loupe evals run TRACE --metric polite --wait",
    ] {
        assert!(ran.stdout.lines().any(|it| it == line), "{line}\n{}", ran.stdout);
    }
}

#[test]
fn evaluator_is_created_from_a_rubric_or_checks() {
    let stub = stub();
    let mut command = stub.loupe(&[
        "evaluators",
        "create",
        "polite",
        "--rubric",
        "-",
        "--scale",
        "good=1,bad=0",
        "--tag",
        "quality,ours",
        "--description",
        "Whether it is polite.",
        "-o",
        "id",
    ]);
    command.write_stdin("Is {{output}} polite?\n");
    let ran = run(command);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "polite\n"), "{}", ran.stderr);
    assert_eq!(
        body(&stub),
        json!({
            "name": "polite", "evaluator_type": "llm", "rubric": "Is {{output}} polite?\n",
            "scale": { "levels": [{ "label": "good", "score": 1 }, { "label": "bad", "score": 0 }] },
            "tags": ["quality", "ours"], "description": "Whether it is polite.",
        })
    );

    std::fs::write(stub.dir.path().join("checks.json"), "[{\"kind\": \"json_valid\"}]").unwrap();
    let args = ["evaluators", "create", "polite", "--checks", "checks.json", "--combine", "any"];
    assert_eq!(run_with_key(&stub, &args).code, 0);
    assert_eq!(
        body(&stub),
        json!({ "name": "polite", "evaluator_type": "rule", "checks": [{ "kind": "json_valid" }], "combine": "any" })
    );

    let before = stub.requests().len();
    for (wrong, expected) in [
        (&[][..], "needs a --rubric for a judge, or --checks"),
        (&["--type", "llm", "--checks", "[]"], "of type llm needs a --rubric"),
        (&["--type", "rule", "--rubric", "checks.json"], "of type rule needs --checks"),
        (&["--checks", "7"], "--checks: 7: "),
        (&["--rubric", "checks.json", "--scale", "5..1"], "is not a scale"),
        (&["--rubric", "no-such-file"], "--rubric: no-such-file: "),
    ] {
        let ran = run_with_key(&stub, &[&["evaluators", "create", "polite"], wrong].concat());
        assert_eq!(ran.code, 2, "{wrong:?}");
        assert!(ran.stderr.contains(expected), "{wrong:?}: {}", ran.stderr);
    }
    assert_eq!(stub.requests().len(), before);
}

#[test]
fn evaluator_update_sends_given_fields_and_delete_needs_confirmation() {
    let stub = stub();
    let ran = run_with_key(&stub, &["evaluators", "update", "polite", "--description", "Polite?"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("now version 2"), "{}", ran.stderr);
    assert_eq!(body(&stub), json!({ "description": "Polite?" }));
    assert_eq!(run_with_key(&stub, &["evaluators", "update", "polite"]).code, 2);

    let before = stub.requests().len();
    let ran = run_with_key(&stub, &["evaluators", "delete", "polite"]);
    assert_eq!((ran.code, stub.requests().len()), (2, before));
    let ran = run_with_key(&stub, &["evaluators", "delete", "polite", "--yes", "--json"]);
    assert_eq!(
        serde_json::from_str::<Value>(&ran.stdout).unwrap(),
        json!({ "name": "polite", "deleted": true })
    );
    let taken = Stub::new(|_, _| Reply::error(409, "conflict"));
    let ran =
        run_with_key(&taken, &["evaluators", "create", "polite", "--checks", "[{\"kind\": \"json_valid\"}]"]);
    assert_eq!(ran.code, 12);
    assert!(ran.stderr.contains("loupe evaluators update polite"), "{}", ran.stderr);
    let ran =
        run_with_key(&taken, &["evaluators", "create", "bias", "--checks", "[{\"kind\": \"json_valid\"}]"]);
    assert!(!ran.stderr.contains("evaluators update"), "{}", ran.stderr);
}

#[test]
fn rule_is_created_with_every_flag() {
    let stub = stub();
    let args = [
        "rules",
        "create",
        "-p",
        BOT_PROJECT_ID,
        "--metric",
        "toxicity",
        "--type",
        "llm",
        "--config",
        "{\"threshold\": 0.9}",
        "--tier",
        "premium",
        "--min-score-drop",
        "0.05",
        "--sample-rate",
        "10%",
        "--filter-model",
        "gpt-4o",
        "--filter-tag",
        "env:prod",
        "--filter-name",
        "plan",
        "--no-error",
        "--span-type",
        "llm",
        "--disabled",
    ];
    let ran = run_with_key(&stub, &args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("the rule is paused: the provider refused the key"), "{}", ran.stderr);
    let filter =
        json!({ "model": "gpt-4o", "tag": "env:prod", "name": "plan", "error": false, "span_type": "llm" });
    assert_eq!(
        body(&stub),
        json!({
            "project_id": BOT_PROJECT_ID, "metric_name": "toxicity", "evaluator_type": "llm", "config": { "threshold": 0.9 },
            "enabled": false, "model_tier": "premium", "min_score_drop": 0.05, "filter": filter,
            "sample_rate": 0.1,
        })
    );
    let before = stub.requests().len();
    let ran = run_with_key(&stub, &["rules", "create", "--metric", "toxicity", "--type", "llm"]);
    assert_eq!((ran.code, stub.requests().len()), (2, before));
    assert!(ran.stderr.contains("a rule belongs to a project"), "{}", ran.stderr);
    let ran = run_with_key(&stub, &[&args[..], &["-n", "--json"]].concat());
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["path"], "/v1/eval-rules");
    assert_eq!(stub.requests().len(), before);
}

#[test]
fn score_drop_none_is_sent_as_null() {
    let stub = stub();
    run_with_key(&stub, &["rules", "create", "-p", BOT_PROJECT_ID, "--metric", "m", "--type", "rule"]);
    assert_eq!(body(&stub).get("min_score_drop"), None);
    run_with_key(&stub, &["rules", "update", RULE_ID, "--min-score-drop", "none"]);
    assert_eq!(body(&stub), json!({ "min_score_drop": null }));
    // The server refuses negative values with its own message.
    run_with_key(&stub, &["rules", "update", RULE_ID, "--min-score-drop", "-0.5"]);
    assert_eq!(body(&stub), json!({ "min_score_drop": -0.5 }));
}

#[test]
fn rule_filter_update_keeps_other_fields() {
    let stub = stub();
    let ran = run_with_key(
        &stub,
        &["rules", "update", RULE_ID, "--filter-tag", "env:prod", "--filter-model", "none"],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(body(&stub), json!({ "filter": { "tag": "env:prod", "error": true } }));
    run_with_key(&stub, &["rules", "update", RULE_ID, "--no-filter", "--span-type", "tool"]);
    assert_eq!(body(&stub), json!({ "filter": { "span_type": "tool" } }));
    run_with_key(&stub, &["rules", "update", RULE_ID, "--no-filter"]);
    assert_eq!(body(&stub), json!({ "filter": {} }));
    // In a new filter, `none` is an ordinary value.
    run_with_key(&stub, &["rules", "update", RULE_ID, "--no-filter", "--filter-name", "none"]);
    assert_eq!(body(&stub), json!({ "filter": { "name": "none" } }));
    let create =
        ["rules", "create", "-p", BOT_PROJECT_ID, "--metric", "m", "--type", "rule", "--filter-name", "none"];
    run_with_key(&stub, &create);
    assert_eq!(body(&stub)["filter"], json!({ "name": "none" }));
    assert_eq!(run_with_key(&stub, &["rules", "update", RULE_ID]).code, 2);
}

#[test]
fn rule_is_found_by_end_of_id_or_unique_metric() {
    let stub = stub();
    assert_eq!(run_with_key(&stub, &["rules", "get", "0000cafe", "-o", "id"]).stdout, format!("{RULE_ID}\n"));
    let ran = run_with_key(&stub, &["rules", "get", "toxicity"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains(RULE_ID) && ran.stderr.contains(OTHER_RULE_ID), "{}", ran.stderr);
    assert_eq!(run_with_key(&stub, &["rules", "get", "bias"]).code, 11);

    let ran = run_with_key(&stub, &["rules", "get", RULE_ID, "-o", "table"]);
    for line in [
        "paused toxicity  llm",
        "  traces      model:gpt-4o error:true",
        "  sample      10%",
        "  paused      the provider refused the key",
    ] {
        assert!(ran.stdout.lines().any(|it| it == line), "{line}\n{}", ran.stdout);
    }
    let ran = run_with_key(&stub, &["rules", "list", "-o", "table"]);
    assert!(ran.stdout.contains("paused") && ran.stdout.contains("off"), "{}", ran.stdout);
}

#[test]
fn rule_is_enabled_tested_backfilled_and_explained() {
    let stub = stub();
    for (verb, enabled) in [("enable", true), ("disable", false)] {
        assert_eq!(run_with_key(&stub, &["rules", verb, RULE_ID]).code, 0);
        assert_eq!((last(&stub).method.as_str(), body(&stub)), ("PATCH", json!({ "enabled": enabled })));
    }
    let ran = run_with_key(&stub, &["rules", "test", RULE_ID, TRACE_ID, "-o", "table"]);
    assert_eq!((ran.code, body(&stub)), (16, json!({ "trace_id": TRACE_ID })));
    assert!(ran.stdout.contains("on ingest   filtered: the model is not gpt-4o"), "{}", ran.stdout);
    assert!(ran.stderr.contains("no score: the trace has no output"), "{}", ran.stderr);

    let args = ["rules", "backfill", RULE_ID, "--from", "2026-11-01T00:00:00Z", "--json"];
    let ran = run_with_key(&stub, &args);
    assert_eq!((ran.code, body(&stub)), (0, json!({ "from": "2026-11-01T00:00:00.000000Z" })));
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["queued"], 10);
    assert!(ran.stderr.contains(&format!("loupe evals progress {OTHER_RULE_ID}")), "{}", ran.stderr);

    let ran = run_with_key(&stub, &["rules", "decisions", RULE_ID, "--trace", TRACE_ID, "-o", "csv"]);
    assert!(ran.stdout.contains(",sampled_out,the sample of 10 % leaves it out,"), "{}", ran.stdout);
    assert_eq!(last(&stub).query, format!("trace_id={TRACE_ID}&limit=50"));
    let ran = run_with_key(&stub, &["rules", "delete", RULE_ID, "--json"]);
    assert_eq!((ran.code, stub.count("DELETE")), (2, 0));
    assert_eq!(run_with_key(&stub, &["rules", "delete", RULE_ID, "-y"]).code, 0);
    assert_eq!(stub.count("DELETE"), 1);
}

#[test]
fn unknown_fields_are_refused_before_any_request() {
    let stub = stub();
    let backfill = ["rules", "backfill", RULE_ID, "--from", "-1d", "--fields"];
    let bulk = ["evals", "bulk", "--metric", "toxicity", "--from", "-1d", "--fields"];
    for args in [&backfill[..], &bulk] {
        // A bulk evaluation that has just started has no progress yet.
        for (fields, wait) in [("status", &[][..]), ("nothing", &["--wait"])] {
            let ran = run_with_key(&stub, &[args, &[fields], wait].concat());
            assert_eq!((ran.code, stub.requests().len()), (2, 0), "{args:?} {fields}: {}", ran.stderr);
        }
    }
    let ran = run_with_key(&stub, &[&backfill[..], &["queued,bulk_id", "-o", "csv"]].concat());
    assert_eq!(
        (ran.code, ran.stdout),
        (0, format!("queued,bulk_id\r\n10,{OTHER_RULE_ID}\r\n")),
        "{}",
        ran.stderr
    );
}

#[test]
fn backfill_of_all_traces_needs_confirmation() {
    let stub = stub();
    let ran = run_with_key(&stub, &["rules", "backfill", RULE_ID]);
    assert_eq!((ran.code, stub.requests().len()), (2, 0), "{}", ran.stderr);
    assert!(ran.stderr.contains("--yes"), "{}", ran.stderr);
    let ran = run_with_key(&stub, &["rules", "backfill", RULE_ID, "--yes"]);
    assert_eq!((ran.code, body(&stub)), (0, json!({})), "{}", ran.stderr);
    assert_eq!(run_with_key(&stub, &["rules", "backfill", RULE_ID, "--to", "-1h"]).code, 0);
}

#[test]
fn failed_rule_test_is_not_retried() {
    let stub = Stub::new(|_, _| Reply::error(500, "internal"));
    let ran = run_with_key(&stub, &["rules", "test", RULE_ID, TRACE_ID]);
    assert_eq!((ran.code, stub.count("POST")), (15, 1), "{}", ran.stderr);
}

#[test]
fn completions_offer_the_builtin_metrics() {
    let stub = stub();
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(stub.bare(&["completion", shell])).stdout.contains("latency_threshold"), "{shell}");
    }
    // A list of twenty-five names would make the help unreadable.
    assert!(!run(stub.bare(&["evals", "list", "--help"])).stdout.contains("possible values: "));
}

#[test]
fn help_describes_exit_codes_and_confirmations() {
    let stub = stub();
    for (args, expected) in [
        (&["rules", "update"][..], &["--config replaces all options", "`none`", "drops that part"][..]),
        (
            &["rules", "backfill"],
            &["16 if an evaluation failed", "Without --from and --to, the command asks for confirmation"],
        ),
        (&["rules", "test"], &["Exit code 16", "not retried"]),
        (&["evals", "progress"], &["16 if an evaluation failed", "7 if the time limit"]),
        (
            &["evals", "bulk"],
            &["16 if an evaluation failed", "Without a filter, the command asks for confirmation"],
        ),
        (&["evaluators", "create"], &["SCALE|FILE|-"]),
    ] {
        let help = run(stub.bare(&[args, &["--help"]].concat())).stdout.to_lowercase();
        for words in expected {
            assert!(help.contains(&words.to_lowercase()), "{args:?} {words}: {help}");
        }
    }
}
