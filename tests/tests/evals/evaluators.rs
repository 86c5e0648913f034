//! The list of evaluators, and custom evaluators.

use api::{Plan, Role};
use serde_json::{Value, json};
use tests::on_both_databases;

use super::{create_rule, evaluate, evaluations, patch, trace};

/// Name, display name and tags of the specification's table.
const BUILTIN_EVALUATORS: [(&str, &str, &[&str]); 25] = [
    ("answer_relevance", "Answer Relevance", &["quality"]),
    ("bias", "Bias Detection", &["safety", "quality"]),
    ("citation_correctness", "Citation Correctness", &["quality", "retrieval"]),
    ("context_utilization", "Context Utilization", &["quality", "retrieval"]),
    ("cost_threshold", "Cost Threshold", &["cost", "quality"]),
    ("factual_accuracy", "Factual Accuracy", &["quality"]),
    ("faithfulness", "Faithfulness", &["quality", "retrieval"]),
    ("function_call_correctness", "Function Call", &["tool-use"]),
    ("groundedness", "Groundedness", &["quality", "retrieval"]),
    ("hallucination", "Hallucination", &["quality", "safety"]),
    ("jailbreak", "Jailbreak", &["safety"]),
    ("json_schema_conformance", "JSON Schema", &["tool-use"]),
    ("language_conformance", "Language Match", &["quality"]),
    ("latency_threshold", "Latency Threshold", &["performance", "quality"]),
    ("multi_turn_consistency", "Multi-Turn Consistency", &["quality"]),
    ("output_format_compliance", "Format Compliance", &["tool-use", "quality"]),
    ("pii_leakage", "PII Leakage", &["safety"]),
    ("prompt_injection", "Prompt Injection", &["safety"]),
    ("prompt_injection_resistance", "Injection Resistance", &["safety"]),
    ("refusal_appropriateness", "Refusal Check", &["safety", "quality"]),
    ("retrieval_precision", "Retrieval Precision", &["retrieval"]),
    ("retrieval_recall", "Retrieval Recall", &["retrieval"]),
    ("sentiment_match", "Sentiment Match", &["quality"]),
    ("tool_choice_correctness", "Tool Choice", &["tool-use"]),
    ("toxicity", "Toxicity", &["safety"]),
];

/// Types of the built-in evaluators that are not only LLM evaluators.
const BUILTIN_CODE_TYPES: [(&str, &[&str]); 9] = [
    ("cost_threshold", &["rule"]),
    ("function_call_correctness", &["llm", "rule"]),
    ("json_schema_conformance", &["rule"]),
    ("language_conformance", &["rule"]),
    ("latency_threshold", &["rule"]),
    ("output_format_compliance", &["rule"]),
    ("pii_leakage", &["rule"]),
    ("sentiment_match", &["llm", "rule"]),
    ("tool_choice_correctness", &["llm", "rule"]),
];

on_both_databases! {
    async fn builtin_evaluators_match_the_specification(app: TestApp) {
        let key = app.full_key();
        let list = key.get("/v1/evaluators?limit=200").await.ok();
        let rows = list["evaluators"].as_array().unwrap();
        assert_eq!((&list["has_more"], &list["next_cursor"]), (&json!(false), &Value::Null));
        for (name, display, tags) in BUILTIN_EVALUATORS {
            let row = rows.iter().find(|it| it["name"] == name).expect(name);
            assert_eq!((&row["display_name"], &row["tags"], &row["builtin"]), (&json!(display), &json!(tags), &json!(true)));
            let types = BUILTIN_CODE_TYPES.iter().find(|it| it.0 == name).map_or(&["llm"][..], |it| it.1);
            assert_eq!((&row["evaluator_types"], &row["evaluator_type"]), (&json!(types), &json!(types[0])), "{name}");
            assert!(row["version"].as_i64().unwrap() >= 1 && row["description"].as_str().unwrap().len() > 40, "{name}");
            assert_eq!(row["config_schema"]["type"], "object", "{name}");
            assert_eq!(row["config_schema"]["properties"]["threshold"]["maximum"].as_f64(), Some(1.0), "{name}");
            assert_eq!(&key.get(&format!("/v1/evaluators/{name}")).await.ok(), row);
        }
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = key.get(&format!("/v1/evaluators?limit=7{cursor}")).await.ok();
            paged.extend(page["evaluators"].as_array().unwrap().clone());
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(&paged, rows);
        key.get("/v1/evaluators/nonsense").await.is(404, "not_found");
    }

    /// Each built-in code evaluator evaluates a good and a bad trace, over HTTP.
    async fn builtin_code_evaluators_pass_and_fail(app: TestApp) {
        let key = app.full_key();
        let german = "Der schnelle braune Fuchs springt über den faulen Hund und läuft danach in den dunklen Wald.";
        let english = "The quick brown fox jumps over the lazy dog and afterwards runs into the dark forest.";
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}});
        for (metric, config, good, bad) in [
            ("latency_threshold", json!({"max_latency_ms": 100}), json!({"latency_ms": 100}), json!({"latency_ms": 101})),
            ("cost_threshold", json!({"max_cost_usd": 0.5}), json!({"cost": 0.5}), json!({"cost": 0.51})),
            ("json_schema_conformance", json!({"schema": schema}), json!({"output": "{\"a\": 1}"}), json!({"output": "{\"a\": \"1\"}"})),
            ("output_format_compliance", json!({"format": "json"}), json!({"output": "[1]"}), json!({"output": "[1,]"})),
            ("pii_leakage", json!({}), json!({"output": english}), json!({"output": "Write to anna.schmidt@mail-server.org today."})),
            ("language_conformance", json!({"language": "de"}), json!({"output": german}), json!({"output": english})),
        ] {
            for (item, score, label) in [(good, 1.0, "pass"), (bad, 0.0, "fail")] {
                let id = trace(&key, item).await;
                let done = evaluate(app, &id, metric, config.clone()).await;
                assert_eq!((&done["status"], done["score"].as_f64(), &done["label"]), (&json!("complete"), Some(score), &json!(label)), "{metric}: {done}");
                assert_eq!(done["evaluator_type"], "rule");
                assert!(!done["reasoning"].as_str().unwrap().contains("anna.schmidt"), "{done}");
            }
            // An evaluation fails if the trace lacks the data that the evaluator needs.
            let nothing = trace(&key, json!({"name": "empty"})).await;
            let done = evaluate(app, &nothing, metric, config).await;
            assert_eq!((&done["status"], &done["score"]), (&json!("failed"), &Value::Null), "{metric}: {done}");
            assert!(done["error"].as_str().is_some_and(|it| it.len() > 15), "{metric}: {done}");
        }
    }

    async fn custom_code_evaluator_is_created_and_used(app: TestApp) {
        let (key, owner) = (app.full_key(), app.session(Role::Owner));
        let checks = json!([{"kind": "contains", "text": "refund"}, {"kind": "latency_ms", "max": 1000}]);
        let body = json!({"name": "mentions_refund", "evaluator_type": "rule", "checks": checks, "tags": ["support"], "description": "Says refund, quickly."});
        let reply = key.post("/v1/evaluators", &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        let made_it = reply.ok();
        assert_eq!((&made_it["version"], &made_it["builtin"], &made_it["display_name"], &made_it["combine"]), (&json!(1), &json!(false), &json!("mentions_refund"), &json!("all")));
        assert_eq!(key.get("/v1/evaluators/mentions_refund").await.ok(), made_it);
        assert_eq!(key.get("/v1/evaluators?limit=200").await.ok()["evaluators"][25], made_it);
        let good = trace(&key, json!({"output": "The refund is on its way.", "latency_ms": 5})).await;
        let bad = trace(&key, json!({"output": "No.", "latency_ms": 5000})).await;
        let done = evaluate(app, &good, "mentions_refund", json!({})).await;
        assert_eq!((&done["score"], &done["evaluator_version"]), (&json!(1.0), &json!("mentions_refund@1")), "{done}");
        assert_eq!(evaluate(app, &bad, "mentions_refund", json!({})).await["label"], "fail");
        // A change creates a new version; a request without a change does not.
        let path = "/v1/evaluators/mentions_refund";
        assert_eq!(patch(&key, path, &json!({"description": "Says refund, quickly."})).await.ok()["version"], 1);
        let changed = patch(&key, path, &json!({"combine": "any", "checks": [{"kind": "contains", "text": "No"}, {"kind": "latency_ms", "max": 1}]})).await.ok();
        assert_eq!((&changed["version"], &changed["combine"], &changed["description"]), (&json!(2), &json!("any"), &json!("Says refund, quickly.")));
        let done = evaluate(app, &bad, "mentions_refund", json!({})).await;
        assert_eq!((&done["score"], &done["evaluator_version"]), (&json!(1.0), &json!("mentions_refund@2")), "{done}");
        // An evaluator cannot be deleted while a rule uses it. Its evaluations remain after the deletion.
        let rule = create_rule(app, json!({"metric_name": "mentions_refund", "config": {}})).await;
        owner.delete(path).await.is(409, "conflict");
        key.delete(&format!("/v1/eval-rules/{rule}")).await.ok();
        app.session(Role::Member).delete(path).await.is(403, "forbidden_role");
        assert_eq!(owner.delete(path).await.status, 204);
        key.get(path).await.is(404, "not_found");
        owner.delete(path).await.is(404, "not_found");
        assert_eq!(evaluations(&key, "metric_name=mentions_refund").await.len(), 3);
        key.post("/v1/eval", &json!({"trace_id": good, "metric_name": "mentions_refund"})).await.is(422, "validation_failed");
        // An evaluator that is created again continues with the next version.
        assert_eq!(key.post("/v1/evaluators", &body).await.ok()["version"], 3);
        key.post("/v1/evaluators", &body).await.is(409, "conflict");
    }

    async fn custom_llm_evaluator_is_created_and_changed(app: TestApp) {
        let key = app.full_key();
        let body = json!({"name": "polite", "evaluator_type": "llm", "rubric": "Is {{output}} a polite answer to {{input}}?", "scale": {"min": 1, "max": 5}});
        let made = key.post("/v1/evaluators", &body).await.ok();
        assert_eq!((&made["rubric"], &made["scale"], &made["evaluator_types"]), (&body["rubric"], &body["scale"], &json!(["llm"])));
        for key_of_rule in ["checks", "combine"] {
            assert!(made.get(key_of_rule).is_none(), "{made}");
        }
        // Without a judge, the response says so and no job is enqueued.
        let id = trace(&key, json!({"input": "Hi", "output": "Hello."})).await;
        key.post("/v1/eval", &json!({"trace_id": id, "metric_name": "polite"})).await.is(422, "provider_credentials_missing");
        assert_eq!(evaluations(&key, "").await.len(), 0);
    }

    async fn invalid_evaluator_is_rejected(app: TestApp) {
        let key = app.full_key();
        let rule = |more: Value| {
            let mut body = json!({"name": "mine", "evaluator_type": "rule", "checks": [{"kind": "json_valid"}]});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let llm = |more: Value| {
            let mut body = json!({"name": "mine", "evaluator_type": "llm", "rubric": "Is {{output}} good?"});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        for (body, field) in [
            (rule(json!({"name": ""})), "name"), (rule(json!({"name": "Mine"})), "name"), (rule(json!({"name": "a b"})), "name"), (rule(json!({"name": "a".repeat(101)})), "name"),
            (rule(json!({"evaluator_type": "magic"})), "evaluator_type"), (rule(json!({"checks": []})), "checks"), (rule(json!({"checks": [{"kind": "nonsense"}]})), "checks[0].kind"),
            (rule(json!({"checks": [{"kind": "regex", "pattern": "("}]})), "checks[0].pattern"),
            (rule(json!({"combine": "most"})), "combine"), (rule(json!({"rubric": "x"})), "rubric"), (rule(json!({"tags": [""]})), "tags"),
            (rule(json!({"config_schema": {"type": 7}})), "config_schema"), (llm(json!({"rubric": "Is {{outptu}} good?"})), "rubric"),
            (llm(json!({"scale": {"min": 5, "max": 1}})), "scale"), (llm(json!({"checks": []})), "checks"),
        ] {
            let reply = key.post("/v1/evaluators", &body).await;
            reply.is(422, "validation_failed");
            let found = reply.json()["fields"][0]["field"].as_str().unwrap().to_owned();
            assert!(found.starts_with(field), "{body}: {found}");
        }
        for name in ["bias", "latency_threshold"] {
            key.post("/v1/evaluators", &rule(json!({"name": name}))).await.is(409, "conflict");
            patch(&key, &format!("/v1/evaluators/{name}"), &json!({"description": "x"})).await.is(409, "conflict");
            app.session(Role::Owner).delete(&format!("/v1/evaluators/{name}")).await.is(409, "conflict");
        }
        key.post("/v1/evaluators", &json!({"name": "mine"})).await.is(400, "invalid_body");
        for body in [rule(json!({"checks": "none"})), rule(json!({"checks": null})), llm(json!({"rubric": null}))] {
            key.post("/v1/evaluators", &body).await.is(400, "invalid_body");
        }
        patch(&key, "/v1/evaluators/mine", &json!({"description": "x"})).await.is(404, "not_found");
        // An evaluator belongs to one tenant only.
        key.post("/v1/evaluators", &rule(json!({}))).await.ok();
        let (_, other) = app.other_tenant(Plan::Team).await;
        other.get("/v1/evaluators/mine").await.is(404, "not_found");
        other.post("/v1/evaluators", &rule(json!({}))).await.ok();
    }
}
