//! `loupe-server demo`, started like a user does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use api::profile;
use serde_json::{Value, json};
use tests::{
    Caller,
    hang::wait_until,
    process::{ServerProcess, Setup},
};

/// Starts a demo with seed 7, with its own folder for temporary files and its own profile.
fn start(folder: &Path) -> ServerProcess {
    let temporary = folder.join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    Setup::new(folder)
        .with("TMPDIR", temporary.to_str().unwrap())
        .with("LOUPE_CONFIG_DIR", folder.join("profile").to_str().unwrap())
        // The demo must not touch the configured database.
        .with("LOUPE_DATABASE_URL", &format!("sqlite://{}", folder.join("own.db").display()))
        .with("LOUPE_DATA_DIR", folder.join("own").to_str().unwrap())
        .with("LOUPE_BOOTSTRAP_API_KEY", "no key at all")
        // An unusable proxy shows that the demo sends no request to the network.
        .with("HTTP_PROXY", "http://127.0.0.1:9")
        .with("HTTPS_PROXY", "http://127.0.0.1:9")
        .start_with(&["demo", "--seed", "7"])
}

/// Stops the demo, and checks that it leaves no files.
fn stop(mut demo: ServerProcess, folder: &Path) {
    demo.terminate();
    assert!(demo.wait(Duration::from_secs(10)).success(), "{}", demo.log());
    assert_eq!(std::fs::read_dir(folder.join("tmp")).unwrap().count(), 0, "temporary files are left");
    assert!(!folder.join("own.db").exists() && !folder.join("own").exists());
    let config = profile::Config::load(&folder.join("profile")).unwrap();
    assert!(config.contexts.keys().all(|it| it != "demo"), "the context was not removed: {config:?}");
    let secrets = profile::Credentials::load(&folder.join("profile")).unwrap();
    assert!(!secrets.contexts.contains_key("demo"), "the secrets of the context were not removed");
}

/// Returns a caller with the session of the context `demo`.
fn owner(demo: &ServerProcess, folder: &Path) -> Caller {
    let secrets = profile::Credentials::load(&folder.join("profile")).unwrap();
    Caller::new(&demo.url, secrets.contexts["demo"].session_token.as_deref())
}

/// Returns every trace from before the start, by id, without values relative to the current time.
async fn history(caller: &Caller) -> BTreeMap<String, Value> {
    let (mut all, mut cursor) = (BTreeMap::new(), String::new());
    // The oldest project was created 42 days before the start. Live traces begin at most a minute before it,
    // and the history ends earlier.
    let projects = caller.get("/v1/projects").await.ok();
    let oldest = projects["projects"].as_array().unwrap().last().unwrap()["created_at"].as_str().unwrap();
    let oldest: api::Timestamp = oldest.parse().unwrap();
    let to = api::Timestamp::from_micros(oldest.micros() + (42 * 86_400 - 80) * 1_000_000);
    loop {
        let page = caller.get(&format!("/v1/traces?preview=true&limit=200&to={to}{cursor}")).await.ok();
        for mut trace in page["traces"].as_array().unwrap().iter().cloned() {
            for time in ["started_at", "ended_at", "project_id", "ready"] {
                trace.as_object_mut().unwrap().remove(time);
            }
            all.insert(trace["id"].as_str().unwrap().to_owned(), trace);
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

async fn count(caller: &Caller, path: &str, list: &str) -> usize {
    caller.get(path).await.ok()[list].as_array().unwrap().len()
}

#[tokio::test]
async fn demo_adds_traces_and_removes_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let demo = start(folder.path());
    assert!(demo.greeting.contains("3 projects, 2,400 traces"), "{}", demo.greeting);
    assert!(demo.greeting.trim_end().ends_with("loupe console"), "{}", demo.greeting);
    // The log reports readiness after the sample data is stored.
    let log = demo.wait_for_log("\"ready\"");
    let position = |text| log.find(text).unwrap();
    assert!(position("storing sample data") < position("\"ready\""), "{log}");
    let owner = owner(&demo, folder.path());
    let before = owner.get("/v1/traces?limit=1").await.ok()["traces"][0]["id"].clone();

    let traces = history(&owner).await;
    assert_eq!(traces.len(), 2_400);
    let texts: String = traces.values().filter_map(|it| it["input"].as_str()).collect();
    assert!(texts.contains('注') && texts.contains('👟') && texts.contains('ن'));
    assert_eq!(traces.values().filter(|it| it["span_count"].as_i64() > Some(600)).count(), 3);
    assert!(traces.values().filter(|it| !it["cost"].is_null()).count() > 2_000);
    for failure in ["timeout", "rate_limit", "invalid_response", "context_length"] {
        assert!(
            count(&owner, &format!("/v1/traces?failure_type={failure}"), "traces").await > 2,
            "{failure}"
        );
    }
    for tag in ["env:production", "env:staging", "vip", "job:nightly"] {
        assert!(count(&owner, &format!("/v1/traces?tag={tag}"), "traces").await > 0, "{tag}");
    }
    assert_eq!(count(&owner, "/v1/projects", "projects").await, 3);
    assert_eq!(count(&owner, "/v1/apikeys", "apikeys").await, 3);
    assert!(count(&owner, "/v1/members", "members").await >= 4);
    assert_eq!(count(&owner, "/v1/sessions?limit=200", "sessions").await, 200);

    let mut changed = false;
    // The demo sends a trace every few seconds; a loaded machine takes longer.
    for _ in 0..600 {
        let now = owner.get("/v1/traces?limit=1").await.ok()["traces"][0]["id"].clone();
        changed |= now != before;
        if changed {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(changed, "no new trace was stored");
    wait_until("the history has its feedback", async || {
        let metrics = owner.get("/v1/metrics?window=7d").await.ok()["metrics"].clone();
        metrics["trace_count"].as_i64() > Some(2_300) && metrics["feedback_good_rate"].as_f64() > Some(0.5)
    })
    .await;
    for label in ["good", "bad", "neutral"] {
        assert!(count(&owner, &format!("/v1/feedback?label={label}"), "feedback").await > 0, "{label}");
    }
    stop(demo, folder.path());
}

#[tokio::test]
async fn demo_with_same_seed_has_same_traces() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let demo = start(folder.path());
        seen.push(history(&owner(&demo, folder.path())).await);
        stop(demo, folder.path());
    }
    let ids = |i: usize| seen[i].keys().collect::<BTreeSet<_>>();
    assert_eq!(ids(0), ids(1));
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn demo_does_not_replace_the_current_context() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile");
    profile::write_context(&profile, "work", "https://loupe.example", Some("lp_secret"), None).unwrap();
    let demo = start(folder.path());
    assert!(demo.greeting.trim_end().ends_with("loupe console --context demo"), "{}", demo.greeting);
    let config = profile::Config::load(&profile).unwrap();
    assert_eq!(config.current.as_deref(), Some("work"));
    assert_eq!(config.contexts["demo"].url.as_deref(), Some(demo.url.as_str()));
    let secrets = profile::Credentials::load(&profile).unwrap();
    assert_eq!(secrets.contexts["work"].api_key.as_deref(), Some("lp_secret"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |file: &str| std::fs::metadata(profile.join(file)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(profile::CREDENTIALS_FILE), mode(profile::CONFIG_FILE)), (0o600, 0o600));
    }
    stop(demo, folder.path());
}

#[tokio::test]
async fn demo_searches_judges_and_shows_failures_without_network() {
    let folder = tempfile::tempdir().unwrap();
    let demo = start(folder.path());
    assert!(
        demo.greeting.contains("a scripted judge, a scripted chat model and an embedder"),
        "{}",
        demo.greeting
    );
    let owner = owner(&demo, folder.path());
    check_failures_anomaly_and_deliveries(&owner).await;
    check_search_and_judge(&owner).await;
    stop(demo, folder.path());
}

/// Checks that spans are found by meaning, and that the scripted judge evaluates traces.
async fn check_search_and_judge(owner: &Caller) {
    // The search finds spans some seconds after the start; the newest are embedded first.
    let mut found = Value::Null;
    for _ in 0..120 {
        found = owner.get("/v1/search/spans?q=money%20back%20for%20the%20shoes&limit=5").await.ok();
        if found["results"].as_array().unwrap().len() == 5 && found["searched"].as_i64() > Some(2_000) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let text = |results: &Value| -> Vec<String> {
        let rows = results["results"].as_array().unwrap();
        rows.iter()
            .map(|it| format!("{} {}", it["span"]["input"], it["span"]["output"]).to_lowercase())
            .collect()
    };
    // Except for the shoes, no word of the question occurs in the results.
    assert!(
        text(&found).iter().all(|it| it.contains("return") || it.contains("refund") || it.contains("返金")),
        "{found}"
    );
    let keys = owner.get("/v1/search/spans?q=exchange%20credentials&limit=3").await.ok();
    assert!(text(&keys).iter().all(|it| it.contains("key") || it.contains("token")), "{keys}");

    // An evaluation by the judge, of traces with an answer.
    let traces = owner.get("/v1/traces?error=false&limit=5").await.ok();
    for (metric, trace) in
        ["answer_relevance", "toxicity", "prompt_injection"].iter().zip(traces["traces"].as_array().unwrap())
    {
        let body =
            serde_json::json!({"trace_id": trace["id"], "metric_name": metric, "evaluator_type": "llm"});
        let asked = owner.post("/v1/eval", &body).await.ok();
        let path = format!("/v1/eval/{}", asked["id"].as_str().unwrap());
        let mut judged = Value::Null;
        for _ in 0..100 {
            judged = owner.get(&path).await.ok();
            if judged["status"] != "pending" && judged["status"] != "running" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(judged["status"], "complete", "{judged}");
        assert!(judged["score"].as_f64().is_some_and(|it| (0.0..=1.0).contains(&it)), "{judged}");
        let reasoning = judged["reasoning"].as_str().unwrap();
        assert!(reasoning.starts_with("Scripted verdict of the demo, no model was asked."), "{reasoning}");
        assert_eq!(judged["judge_model"], "demo-judge");
    }
}

/// Checks that the incident is a cluster and an anomaly, and that webhooks are delivered, repeated and disabled.
async fn check_failures_anomaly_and_deliveries(owner: &Caller) {
    wait_until("the incident is the largest cluster", async || {
        let clusters = owner.get("/v1/failures/clusters?limit=200").await.ok();
        let clusters = clusters["clusters"].as_array().unwrap();
        let largest = clusters.iter().max_by_key(|it| it["count"].as_i64());
        largest.is_some_and(|it| it["failure_type"] == "rate_limit" && it["count"].as_i64() >= Some(60))
    })
    .await;
    let clusters =
        owner.get("/v1/failures/clusters?limit=200").await.ok()["clusters"].as_array().unwrap().clone();
    let causes: BTreeSet<_> =
        clusters.iter().map(|it| format!("{} {}", it["project_id"], it["signature"])).collect();
    assert_eq!(causes.len(), clusters.len(), "a cause has one cluster: {clusters:?}");
    wait_until("the incident is an anomaly of the error rate", async || {
        let anomalies = owner.get("/v1/anomalies?metric=error_rate").await.ok();
        anomalies["anomalies"].as_array().unwrap().iter().any(|it| it["direction"] == "up")
    })
    .await;

    let webhooks = owner.get("/v1/webhooks").await.ok()["webhooks"].as_array().unwrap().clone();
    let webhook =
        |path: &str| webhooks.iter().find(|it| it["url"].as_str().unwrap().ends_with(path)).unwrap();
    let attempts = async |path: &str, status: &str| -> Vec<usize> {
        let id = webhook(path)["id"].as_str().unwrap();
        let log = owner.get(&format!("/v1/webhooks/{id}/deliveries?limit=200")).await.ok();
        let deliveries = log["deliveries"].as_array().unwrap().clone();
        deliveries
            .iter()
            .filter(|it| it["status"] == status)
            .map(|it| it["attempts"].as_array().unwrap().len())
            .collect()
    };
    wait_until("the first deliveries succeed at once", async || {
        attempts("/incidents", "delivered").await.contains(&1)
    })
    .await;
    wait_until("a refused delivery succeeds at its second attempt", async || {
        attempts("/chat-bot", "delivered").await.contains(&2)
    })
    .await;
    wait_until("the webhook whose address is gone is disabled", async || {
        let id = webhook("/old-pager")["id"].as_str().unwrap();
        let row = owner.get(&format!("/v1/webhooks/{id}")).await.ok();
        row["enabled"] == false && row["disabled_reason"].as_str().is_some_and(|it| it.contains("410"))
    })
    .await;
    let path = format!("/v1/webhooks/{}/test", webhook("/incidents")["id"].as_str().unwrap());
    let ping = owner.post(&path, &serde_json::json!({})).await.ok();
    assert_eq!((&ping["status"], &ping["body"]), (&200.into(), &r#"{"received":true}"#.into()), "{ping}");
}

/// Returns the control actions with this status.
async fn actions(owner: &Caller, status: &str) -> Vec<Value> {
    let page = owner.get(&format!("/v1/control/actions?limit=200&status={status}")).await.ok();
    page["actions"].as_array().unwrap().clone()
}

/// Returns the diff of an action, after the evaluations of its output.
async fn diff(owner: &Caller, action: &Value) -> Value {
    let path = format!("/v1/control/actions/{}/diff", action["id"].as_str().unwrap());
    let mut reply = owner.get(&path).await;
    wait_until("the output of the action is evaluated", async || {
        reply = owner.get(&path).await;
        reply.status == 200
    })
    .await;
    serde_json::from_slice(&reply.body).unwrap()
}

/// Returns the scores of the metric that triggers the policies.
fn relevance(diff: &Value) -> Value {
    let deltas = diff["eval_deltas"].as_array().unwrap();
    deltas.iter().find(|it| it["metric_name"] == "answer_relevance").unwrap().clone()
}

/// Waits until the demo has created the prompts and the actions of the control loop.
async fn wait_for_control_loop(demo: &ServerProcess, owner: &Caller) {
    // Separately, because the evaluations of the history come first.
    wait_until("the tests of the prompts have ended, and policies exist", async || {
        count(owner, "/v1/policies", "policies").await > 0
    })
    .await;
    wait_until("the control loop has acted on sample traces", async || {
        demo.log().contains("the control loop has acted on sample traces")
    })
    .await;
}

#[tokio::test]
async fn demo_control_loop_acts_on_traces_and_tests_prompts() {
    let folder = tempfile::tempdir().unwrap();
    let demo = start(folder.path());
    let owner = owner(&demo, folder.path());
    wait_for_control_loop(&demo, &owner).await;
    check_actions_of_the_control_loop(&owner).await;
    check_versions_of_prompts(&owner).await;
    stop(demo, folder.path());
}

/// Checks that an owner decides on actions, and that diffs show their effect.
async fn check_actions_of_the_control_loop(owner: &Caller) {
    let mut waiting = Vec::new();
    for reason in [json!("retry_threshold_exceeded"), json!("cascade_depth_exhausted"), Value::Null] {
        wait_until("an action waits for approval for each reason", async || {
            waiting = actions(owner, "pending_approval").await;
            waiting.iter().any(|it| it["metadata"]["escalation_reason"] == reason)
        })
        .await;
    }
    let is_retry = |it: &&Value| it["metadata"]["escalation_reason"] == "retry_threshold_exceeded";
    let escalated = waiting.iter().find(is_retry).unwrap();
    assert_eq!(
        (&escalated["action_type"], &escalated["metadata"]["retry_count"]),
        (&json!("escalate"), &json!(2))
    );
    let trace = format!("/v1/traces/{}", escalated["trace_id"].as_str().unwrap());
    assert_eq!(owner.get(&trace).await.ok()["control_loop_depth"], 2);

    let mut deltas = Vec::new();
    for action in actions(owner, "succeeded").await {
        if action["action_type"] == "prompt_modification" {
            deltas.push(relevance(&diff(owner, &action).await)["delta"].as_f64().unwrap());
        }
    }
    assert!(deltas.iter().any(|it| *it > 0.2), "a prompt modification improved an answer: {deltas:?}");
    wait_until("a retry that made an answer worse is a cluster", async || {
        let clusters = owner.get("/v1/failures/clusters?limit=200").await.ok();
        clusters["clusters"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["failure_type"] == "RemediationRegression")
    })
    .await;

    let path = format!("/v1/control/actions/{}/approve", escalated["id"].as_str().unwrap());
    assert_eq!(owner.post(&path, &json!({})).await.status, 202);
    wait_until("the approved action is executed", async || {
        actions(owner, "succeeded").await.iter().any(|it| it["id"] == escalated["id"])
    })
    .await;
    let delta = relevance(&diff(owner, escalated).await);
    assert!(delta["original_score"].is_f64() && delta["remediated_score"].is_f64(), "{delta}");
}

/// Checks that versions of prompts are tested, shipped and watched.
async fn check_versions_of_prompts(owner: &Caller) {
    let versions = async || -> BTreeMap<String, Value> {
        let page = owner.get("/v1/prompts/deployments?limit=200").await.ok();
        let rows = page["deployments"].as_array().unwrap().iter();
        rows.map(|it| (format!("{} {}", it["prompt_name"].as_str().unwrap(), it["version"]), it.clone()))
            .collect()
    };
    wait_until("the code reviews have regressed", async || {
        versions().await["review-file 2"]["status"] == "regressed"
    })
    .await;
    let versions_now = versions().await;
    let status = |version: &str| versions_now[version]["status"].as_str().unwrap();
    assert_eq!(
        ["support-answer 1", "support-answer 2", "docs-answer 1", "docs-answer 2"].map(status),
        ["superseded", "shipped", "shipped", "ab_passed"]
    );
    let test = &versions_now["docs-answer 2"]["ab"];
    assert!(test["candidate"]["n"].as_i64() >= Some(10) && test["p_value"].as_f64() < Some(0.05), "{test}");
    // The test runs for minutes of live traffic, so the demo's new traces feed it.
    let live = &versions_now["support-answer 3"];
    assert_eq!((&live["mode"], live["source_action_id"].is_string()), (&json!("live"), true));
    wait_until("scores of new traces count in the live test", async || {
        let test = versions().await["support-answer 3"]["ab"].clone();
        test["baseline"]["n"].as_i64() > Some(0) && test["candidate"]["n"].as_i64() > Some(0)
    })
    .await;
}

#[cfg(unix)]
#[tokio::test]
async fn demo_restores_the_configuration_on_stop() {
    let signal = |demo: &ServerProcess, name: &str| {
        let id = demo.id().to_string();
        assert!(std::process::Command::new("kill").args([name, &id]).status().unwrap().success());
    };
    for name in ["-INT", "-TERM", "-HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let profile = folder.path().join("profile");
        // If there was no profile, none is left; otherwise it is unchanged byte by byte.
        let with_profile = name == "-TERM";
        let config = "# mine\ncurrent = \"work\"\n\n[contexts.work]\nurl = \"https://loupe.example\"\n";
        if with_profile {
            std::fs::create_dir(&profile).unwrap();
            std::fs::write(profile.join(profile::CONFIG_FILE), config).unwrap();
        }
        let mut demo = start(folder.path());
        assert!(profile::Config::load(&profile).unwrap().contexts.contains_key("demo"));
        signal(&demo, name);
        assert!(demo.wait(Duration::from_secs(10)).success(), "{}", demo.log());
        if with_profile {
            assert_eq!(std::fs::read_to_string(profile.join(profile::CONFIG_FILE)).unwrap(), config);
            assert!(!profile.join(profile::CREDENTIALS_FILE).exists());
        } else {
            assert!(!profile.exists());
        }
    }
}

#[tokio::test]
async fn demo_never_removes_a_context_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile");
    profile::write_context(&profile, "demo", "https://demo.example", Some("lp_mine"), None).unwrap();
    let mut demo = start(folder.path());
    assert!(demo.greeting.trim_end().ends_with("loupe console --context demo-2"), "{}", demo.greeting);
    // The profile changes in another way while the demo runs.
    profile::write_context(&profile, "work", "https://loupe.example", None, None).unwrap();
    demo.terminate();
    assert!(demo.wait(Duration::from_secs(10)).success(), "{}", demo.log());
    let config = profile::Config::load(&profile).unwrap();
    assert_eq!(config.contexts.keys().collect::<Vec<_>>(), ["demo", "work"]);
    assert_eq!(config.contexts["demo"].url.as_deref(), Some("https://demo.example"));
    let secrets = profile::Credentials::load(&profile).unwrap();
    assert_eq!(secrets.contexts["demo"].api_key.as_deref(), Some("lp_mine"));
    assert!(!secrets.contexts.contains_key("demo-2"));
}

#[tokio::test]
async fn demo_replaces_the_context_of_a_killed_demo() {
    let folder = tempfile::tempdir().unwrap();
    let killed = start(folder.path());
    killed.kill();
    let profile = folder.path().join("profile");
    let stale = profile::Config::load(&profile).unwrap().contexts["demo"].url.clone();
    std::fs::remove_dir_all(folder.path().join("tmp")).unwrap();
    let demo = start(folder.path());
    assert_ne!(profile::Config::load(&profile).unwrap().contexts["demo"].url, stale);
    assert!(demo.greeting.trim_end().ends_with("loupe console"), "{}", demo.greeting);
    stop(demo, folder.path());
}
