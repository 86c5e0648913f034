//! Tests of prompt deployments and of prompts.

use serde_json::{Value, json};

use crate::stub::{Reply, Stub, run};

const PROJECT_ID: &str = "01980f6e-0000-7000-8000-000000000001";
const ACTION_ID: &str = "01980f6e-0000-7000-8000-00005e1f09aa";
const BASELINE_ID: &str = "01980f6e-0000-7000-8000-0000ba5e11fe";
const DEPLOYMENT_ID: &str = "01980f6e-0000-7000-8000-00007e57d00d";

fn deployment(id: &str, version: i64, status: &str) -> Value {
    json!({
        "id": id, "project_id": PROJECT_ID, "prompt_name": "tone", "version": version,
        "template": format!("You are kind.\nVersion\u{1b}[2J {version}."), "model": "gpt-4o", "status": status,
        "reason": null, "baseline_id": (id == DEPLOYMENT_ID).then_some(BASELINE_ID), "mode": "live", "ab": {
            "metric_name": "faithfulness", "traffic_share": 0.5, "min_samples": 100, "alpha": 0.05,
            "max_regression": 0.0, "max_duration_hours": 168,
            "baseline": { "n": 100, "mean": 0.871, "stddev": 0.12 },
            "candidate": { "n": 104, "mean": 0.912, "stddev": 0.1 },
            "p_value": 0.0031, "effect": 0.041, "lower_bound": 0.015, "completed_at": "2026-11-21T14:30:00.000000Z",
        },
        "watch": null, "source_action_id": null, "created_by": "sub-1",
        "decided_by": (status == "rejected").then_some("sub-7"), "decided_at": null, "decision_note": null,
        "shipped_at": null, "created_at": "2026-11-21T14:00:00.000000Z",
        "updated_at": "2026-11-21T14:00:00.000000Z", "later_field": 1,
    })
}

fn served() -> Value {
    json!({
        "prompt_name": "tone", "project_id": PROJECT_ID, "deployment_id": DEPLOYMENT_ID, "version": 2,
        "template": "Be kind.\tAnswer\u{1b}[2J.", "model": null, "arm": "candidate",
        "tags": { "prompt.name": "tone", "prompt.version": "2" }, "later_field": 1,
    })
}

fn stub_of(status: &'static str) -> Stub {
    Stub::new(move |request, _| match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/v1/prompts/deployments") => {
            let mut rows = vec![deployment(DEPLOYMENT_ID, 2, status), deployment(BASELINE_ID, 1, "shipped")];
            if request.query.contains("limit=1") {
                rows.truncate(1);
            }
            Reply::json(json!({ "deployments": rows, "has_more": false, "next_cursor": null }))
        }
        ("POST", "/v1/prompts/deployments") => Reply::status(201, deployment(DEPLOYMENT_ID, 2, "ab_running")),
        ("GET", path) if path.ends_with(DEPLOYMENT_ID) => Reply::json(deployment(DEPLOYMENT_ID, 2, status)),
        ("GET", path) if path.ends_with(BASELINE_ID) => Reply::json(deployment(BASELINE_ID, 1, "shipped")),
        ("POST", _) if status == "rejected" => {
            Reply::status(409, json!({ "error": "the deployment is rejected", "code": "invalid_state" }))
        }
        ("POST", path) if path.ends_with("/approve") => Reply::json(deployment(DEPLOYMENT_ID, 2, "shipped")),
        ("POST", path) if path.ends_with("/reject") => Reply::json(deployment(DEPLOYMENT_ID, 2, "rejected")),
        ("POST", path) if path.ends_with("/rollback") => {
            Reply::json(deployment(DEPLOYMENT_ID, 2, "rolled_back"))
        }
        ("GET", "/v1/prompts/tone") => Reply::json(served()),
        _ => Reply::error(404, "not_found"),
    })
}

fn last_body(stub: &Stub) -> Value {
    serde_json::from_str(&stub.requests().last().unwrap().body).unwrap()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn deployments_need_a_session_before_any_request() {
    let stub = stub_of("ab_passed");
    for args in [
        &["deployments", "list"][..],
        &["deployments", "get", DEPLOYMENT_ID],
        &["deployments", "create", "--prompt", "tone", "--from-action", ACTION_ID],
        &["deployments", "approve", DEPLOYMENT_ID, "-y"],
        &["deployments", "reject", DEPLOYMENT_ID, "-y"],
        &["deployments", "rollback", DEPLOYMENT_ID, "-y"],
    ] {
        let ran = run(stub.loupe(args));
        assert_eq!(ran.code, 4, "{args:?}: {}", ran.stderr);
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn deployments_are_filtered_and_shown_in_each_format() {
    let stub = stub_of("ab_passed");
    let args = ["deployments", "list", "--status", "ab_passed", "--prompt", "tone", "-p", PROJECT_ID];
    let ran = run(stub.session(&[&args[..], &["-o", "wide"]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for part in ["tone", "ab_passed", "100/100", "+0.041", "0.003", "faithfulness", "7e57d00d"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let query = stub.requests().last().unwrap().query.clone();
    for part in ["status=ab_passed", "prompt_name=tone", PROJECT_ID] {
        assert!(query.contains(part), "{part}: {query}");
    }
    let sheet = run(stub.session(&["deployments", "get", "7e57d00d", "-o", "table"])).stdout;
    for part in [
        "ab_passed tone v2",
        "live, traffic 50%, scores 100, alpha 0.05",
        "mean 0.871 (sd 0.120), 100 scores",
        "+0.041, p 0.003, at least +0.015",
        "Version⟦ESC⟧[2J 2.",
    ] {
        assert!(sheet.contains(part), "{part}: {sheet}");
    }
    assert!(!sheet.contains('\u{1b}'), "{sheet:?}");
    let document = run(stub.session(&["deployments", "get", DEPLOYMENT_ID, "--json"])).stdout;
    assert_eq!(parsed(&document), deployment(DEPLOYMENT_ID, 2, "ab_passed"));
    assert_eq!(run(stub.session(&["deployments", "list", "--status", "live"])).code, 2);
    assert_eq!(run(stub.session(&["deployments", "get", "00000000"])).code, 11);
}

#[test]
fn deployment_is_created_from_flags() {
    let stub = stub_of("ab_passed");
    let args = ["deployments", "create", "-p", PROJECT_ID, "--prompt", "tone", "--template", "-"];
    let args =
        [&args[..], &["--model", "gpt-4o", "--metric", "faithfulness", "--traffic-share", "10%"]].concat();
    let args = [&args[..], &["--min-samples", "50", "--alpha", "0.1", "--max-regression", "0.01"]].concat();
    let mut command = stub.session(&[&args[..], &["--max-duration", "7d"]].concat());
    command.write_stdin("Be kind.\nBe brief.\n");
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let wanted = json!({
        "project_id": PROJECT_ID, "prompt_name": "tone", "template": "Be kind.\nBe brief.", "model": "gpt-4o",
        "ab": {
            "metric_name": "faithfulness", "traffic_share": 0.1, "min_samples": 50, "alpha": 0.1,
            "max_regression": 0.01, "max_duration_hours": 168,
        },
    });
    assert_eq!(last_body(&stub), wanted);

    let args = [
        "deployments",
        "create",
        "-p",
        PROJECT_ID,
        "--prompt",
        "tone",
        "--from-action",
        ACTION_ID,
        "--replay",
    ];
    let ran = run(stub.session(&args));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let wanted = json!({
        "project_id": PROJECT_ID, "prompt_name": "tone", "source_action_id": ACTION_ID, "mode": "replay",
    });
    assert_eq!(last_body(&stub), wanted);

    let posts = stub.count("POST");
    for invalid in [
        &["-p", PROJECT_ID][..],
        &["--from-action", ACTION_ID],
        &["-p", PROJECT_ID, "--from-action", ACTION_ID, "--replay", "--traffic-share", "0.5"],
        &["-p", PROJECT_ID, "--from-action", ACTION_ID, "--max-duration", "90m"],
        &["-p", PROJECT_ID, "--from-action", ACTION_ID, "--traffic-share", "2"],
        &["-p", PROJECT_ID, "--template", "missing.txt"],
        &["-p", PROJECT_ID, "--template", "tone.txt", "--from-action", ACTION_ID],
    ] {
        let ran = run(stub.session(&[&["deployments", "create", "--prompt", "tone"][..], invalid].concat()));
        assert_eq!(ran.code, 2, "{invalid:?}: {}", ran.stderr);
    }
    assert_eq!(stub.count("POST"), posts);
    let ran = run(stub.session(&["deployments", "create", "--prompt", "tone", "-p", PROJECT_ID]));
    assert!(ran.stderr.contains("--template <FILE|->|--from-action <ID>"), "{}", ran.stderr);
}

#[test]
fn unknown_end_of_an_id_names_the_records_that_are_not_searched() {
    let stub = stub_of("shipped");
    for (arguments, hint) in [
        (&["deployments", "get", "ffffffff"][..], "older ones require the complete id"),
        (
            &["deployments", "get", "ffffffff", "-p", PROJECT_ID],
            "older ones, and those of other projects, require the complete id",
        ),
    ] {
        let ran = run(stub.session(arguments));
        assert_eq!(ran.code, 11, "{}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    }
}

#[test]
fn deployments_are_decided_with_a_note_after_confirmation() {
    for (verb, before, after) in [
        ("approve", "ab_passed", "shipped"),
        ("reject", "ab_passed", "rejected"),
        ("rollback", "shipped", "rolled_back"),
    ] {
        let stub = stub_of(before);
        let ran = run(stub.session(&["deployments", verb, "7e57d00d"]));
        assert_eq!((ran.code, stub.requests().len()), (2, 0), "{}", ran.stderr);
        let ran =
            run(stub.session(&["deployments", verb, "7e57d00d", "-y", "--note", "looks good", "--json"]));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(parsed(&ran.stdout)["status"], after);
        assert_eq!(last_body(&stub), json!({ "note": "looks good" }));
        let path = format!("/v1/prompts/deployments/{DEPLOYMENT_ID}/{verb}");
        assert_eq!(stub.requests().last().unwrap().path, path);
        let requests = stub.requests().len();
        let dry = run(stub.session(&["deployments", verb, DEPLOYMENT_ID, "-n", "--json"]));
        assert_eq!(parsed(&dry.stdout), json!({ "method": "POST", "path": path, "body": {} }));
        assert_eq!(stub.requests().len(), requests);
    }
}

#[test]
fn decided_deployment_is_code_12_with_its_state() {
    let stub = stub_of("rejected");
    for verb in ["approve", "reject", "rollback"] {
        let ran = run(stub.session(&["deployments", verb, DEPLOYMENT_ID, "--yes"]));
        assert_eq!((ran.code, ran.stdout.as_str()), (12, ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("state       rejected, decided by sub-7"), "{}", ran.stderr);
    }
    assert_eq!(stub.count("POST"), 3);
}

/// Runs `loupe` with these arguments, as part of a shell command on a terminal on which `n` is typed.
#[cfg(target_os = "linux")]
fn declined_on_terminal(stub: &Stub, command: &str) -> crate::stub::Ran {
    let line = command.replace("loupe", env!("CARGO_BIN_EXE_loupe"));
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
        .write_stdin("n\n");
    run(command)
}

#[cfg(target_os = "linux")]
#[test]
fn confirmation_shows_the_difference_from_the_baseline() {
    let stub = stub_of("ab_passed");
    let ran = declined_on_terminal(&stub, &format!("loupe deployments approve {DEPLOYMENT_ID}"));
    assert_eq!((ran.code, stub.count("POST")), (3, 0), "{}", ran.stdout);
    for part in ["ships tone v2", "mean 0.912", "--- tone v1", "-Version⟦ESC⟧[2J 1.", "+Version⟦ESC⟧[2J 2."]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn confirmation_fits_the_terminal_when_stdout_is_redirected() {
    let stub = Stub::new(|request, _| {
        let (id, version) =
            if request.path.ends_with(BASELINE_ID) { (BASELINE_ID, 1) } else { (DEPLOYMENT_ID, 2) };
        let mut row = deployment(id, version, "ab_passed");
        row["template"] = json!("+ be kind ".repeat(10 * version as usize));
        Reply::json(row)
    });
    let ran = declined_on_terminal(
        &stub,
        &format!("stty cols 40 rows 24; exec loupe deployments approve {DEPLOYMENT_ID} > /dev/null"),
    );
    assert_eq!((ran.code, stub.count("POST")), (3, 0), "{}", ran.stdout);
    let (_, after_head) = ran.stdout.split_once("+++ tone v2").unwrap();
    let (template, _) = after_head.split_once("Continue?").unwrap();
    let rows: Vec<&str> = template.lines().skip(1).collect();
    assert!(rows.len() > 7 && rows.iter().all(|it| it.len() <= 40), "{rows:#?}");
    assert!(rows.iter().all(|it| it.starts_with(['-', '+'])), "{rows:#?}");
}

#[test]
fn prompt_is_shown_as_an_application_gets_it() {
    let stub = stub_of("shipped");
    let ran =
        run(stub.loupe(&["prompts", "get", "tone", "--subject", "user 42", "-p", PROJECT_ID, "--json"]));
    assert_eq!((ran.code, parsed(&ran.stdout)), (0, served()), "{}", ran.stderr);
    let query = stub.requests().last().unwrap().query.clone();
    assert!(query.contains("subject=user+42") && query.contains(PROJECT_ID), "{query}");
    let raw = run(stub.loupe(&["prompts", "get", "tone", "--raw"]));
    assert_eq!((raw.code, raw.stdout.as_str()), (0, "Be kind.\tAnswer\u{1b}[2J.\n"), "{}", raw.stderr);
    let sheet = run(stub.loupe(&["prompts", "get", "tone", "-o", "table"])).stdout;
    for part in ["tone  v2", "candidate", "prompt.name=tone prompt.version=2", "Answer⟦ESC⟧[2J."] {
        assert!(sheet.contains(part), "{part}: {sheet}");
    }
    let ids = run(stub.session(&["prompts", "get", "tone", "-o", "id"])).stdout;
    assert_eq!(ids, format!("{DEPLOYMENT_ID}\n"));
    let missing = run(stub.loupe(&["prompts", "get", "other"]));
    assert_eq!(missing.code, 11);
    assert!(missing.stderr.contains("loupe deployments list --prompt 'other'"), "{}", missing.stderr);
}

#[test]
fn raw_output_needs_jq_in_other_commands() {
    let stub = stub_of("shipped");
    let ran = run(stub.session(&["deployments", "list", "--raw"]));
    assert_eq!((ran.code, stub.requests().len()), (2, 0));
    assert!(ran.stderr.contains("--raw needs --jq"), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn ci_script_ships_the_version_that_passed_its_test() {
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ci.md");
    let document = std::fs::read_to_string(document).unwrap();
    let (_, section) = document.split_once("## Ship a prompt\n").unwrap();
    let scripts: Vec<&str> =
        section.split("```sh\n").skip(1).filter_map(|it| it.split("```").next()).collect();
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_loupe")).parent().unwrap();
    let run_script = |stub: &Stub, script: &str| {
        std::fs::write(stub.dir.path().join("tone.txt"), "Be kind.\n").unwrap();
        let mut command = assert_cmd::Command::new("bash");
        command
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display()))
            .env("LOUPE_CONFIG_DIR", stub.dir.path())
            .env("LOUPE_URL", stub.url())
            .env("LOUPE_SESSION_TOKEN", "session")
            .env("GITHUB_RUN_ID", "4711")
            .current_dir(stub.dir.path())
            .args(["-euo", "pipefail", "-c", &script.replace("-p shop", &format!("-p {PROJECT_ID}"))]);
        run(command)
    };
    let stub = stub_of("ab_passed");
    let created = run_script(&stub, scripts[0]);
    assert_eq!(created.code, 0, "{}", created.stderr);
    assert_eq!(last_body(&stub)["template"], "Be kind.");
    let shipped = run_script(&stub, scripts[1]);
    assert_eq!(shipped.code, 0, "{}", shipped.stderr);
    assert_eq!(parsed(&shipped.stdout), json!({ "version": 2, "status": "shipped" }));
    assert_eq!(last_body(&stub), json!({ "note": "run 4711" }));
    // The version that was listed is decided before the script approves it.
    let late = run_script(&stub_of("rejected"), scripts[1]);
    assert_eq!((late.code, late.stdout.as_str()), (0, "another person has decided\n"), "{}", late.stderr);
}
