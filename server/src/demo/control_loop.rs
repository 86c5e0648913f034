//! The control loop's share of the demo, created through the API: policies, actions that they trigger on new traces, and
//! actions that wait for approval.

use api::control::ActionStatus;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    chat_model::RESTATE_INSTRUCTION,
    error_messages::RATE_LIMIT_MESSAGE,
    own_api::text,
    prompt_application::{DOCS_PROMPT, REVIEW_PROMPT, SUPPORT_PROMPT},
    prompt_history::{DemoUser, TESTED_METRIC},
};

/// A question to which no prompt gets an answer, so that its actions reach the depth of the cascade.
const UNANSWERABLE_QUESTION: &str = "Which of your shops repairs umbrellas?";
/// A question whose answer is judged as poor, and better after the prompt repeats it.
const POORLY_ANSWERED_QUESTION: &str = "Das Paket {order} ist beschädigt angekommen. Was nun?";
/// A question whose second retry is worse than the original answer.
const RETRIED_QUESTION: &str = "What is the rate limit of the search endpoint?";
/// The error of a review that no parser reads.
const UNREADABLE_REVIEW: &str =
    "json.decoder.JSONDecodeError: Expecting ',' delimiter: line 4 column 12 (char 96)";
/// Number of scores of each version at which the live test is decided: a few minutes of live traffic.
const LIVE_SAMPLES: usize = 60;

/// Creates policies, and traces on which they act. `last_trace` is the newest trace of the history.
pub(super) async fn create(user: &mut DemoUser<'_>, last_trace: Uuid) -> anyhow::Result<()> {
    // The policies must not act on the history, which is stored without them.
    user.wait_until(&format!("/v1/traces/{last_trace}"), |it| it["ready"] == true).await?;
    create_policies(user).await?;
    user.ask(SUPPORT_PROMPT, "Where is my order {order}?", SUPPORT_PROMPT.model, Some(RATE_LIMIT_MESSAGE))
        .await?;
    user.ask(SUPPORT_PROMPT, UNANSWERABLE_QUESTION, SUPPORT_PROMPT.model, None).await?;
    user.ask(DOCS_PROMPT, RETRIED_QUESTION, DOCS_PROMPT.model, None).await?;
    user.ask(REVIEW_PROMPT, "Review web/cart.tsx", REVIEW_PROMPT.model, Some(UNREADABLE_REVIEW)).await?;
    let improved = user.ask(SUPPORT_PROMPT, POORLY_ANSWERED_QUESTION, SUPPORT_PROMPT.model, None).await?;
    start_live_test(user, &improved).await
}

async fn create_policies(user: &DemoUser<'_>) -> anyhow::Result<()> {
    let [support, docs, review] =
        [SUPPORT_PROMPT, DOCS_PROMPT, REVIEW_PROMPT].map(|it| user.tenant.projects[it.project]);
    let policies = [
        json!({"name": "Retry failed answers", "project_id": support, "action_type": "retry",
            "trigger": {"type": "failure", "failure_types": ["timeout", "rate_limit"]},
            "cooldown_seconds": 30, "daily_budget_usd": 5.0}),
        json!({"name": "Repeat the question in poor answers", "project_id": support,
            "action_type": "prompt_modification", "action_config": {"system_suffix": RESTATE_INSTRUCTION},
            "trigger": {"type": "evaluation", "metric_name": TESTED_METRIC, "max_score": 0.45},
            "max_cascade_depth": 2, "daily_budget_usd": 2.0}),
        json!({"name": "Retry incomplete answers", "project_id": docs, "action_type": "retry",
            "trigger": {"type": "evaluation", "metric_name": TESTED_METRIC, "max_score": 0.9}, "max_retry_depth": 2}),
        json!({"name": "Larger model for unreadable reviews", "project_id": review,
            "action_type": "fallback_model", "action_config": {"model": "gpt-4o"},
            "trigger": {"type": "failure", "failure_types": ["invalid_response"]}, "require_approval": true}),
    ];
    for policy in &policies {
        user.api.post("/v1/policies", policy).await?;
    }
    let rule =
        json!({"name": "Remediation made an answer worse", "failure_types": ["RemediationRegression"]});
    user.api.post("/v1/failure-rules", &rule).await?;
    Ok(())
}

/// Tests the prompt of a successful action in the application's live traffic.
async fn start_live_test(user: &DemoUser<'_>, trace: &str) -> anyhow::Result<()> {
    let path = format!("/v1/control/actions?trace_id={trace}");
    let has_succeeded = |it: &Value| it["status"] == ActionStatus::Succeeded.as_str();
    let oldest = |it: &Value| it["actions"].as_array().and_then(|it| it.last().cloned());
    let actions = user.wait_until(&path, |it| oldest(it).is_some_and(|it| has_succeeded(&it))).await?;
    let action = oldest(&actions).unwrap_or_default();
    let test = json!({"metric_name": TESTED_METRIC, "min_samples": LIVE_SAMPLES});
    user.deploy(SUPPORT_PROMPT, json!({"source_action_id": text(&action, "id")?, "ab": test})).await?;
    Ok(())
}
