//! Prompts with deployments in several states, created through the API: one version is superseded, one waits for approval,
//! one has regressed. Their tests replay traces of [`super::prompt_application`].

use std::time::Duration;

use api::deployment::DeploymentStatus;
use fastrand::Rng;
use serde_json::{Value, json};

use super::{
    DemoTenant,
    chat_model::{CONCRETE_INSTRUCTION, RESTATE_INSTRUCTION, review_question},
    history::TraceWriter,
    own_api::{OwnApi, text},
    prompt_application::{self, ApplicationPrompt, DOCS_PROMPT, Question, REVIEW_PROMPT, SUPPORT_PROMPT},
    texts::{DOCS_EXCHANGES, REVIEW_COMMENTS, SUPPORT_EXCHANGES, USER_NAMES},
};
use crate::app::App;

/// The metric of all tests.
pub(super) const TESTED_METRIC: &str = "answer_relevance";
/// Number of traces that a replay test repeats, and of scores in a window of the watch.
const SAMPLE_COUNT: usize = 12;
/// Pause between two requests for a state that a job reaches.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of these requests, about ten minutes: on a busy machine, the evaluations of the history take minutes.
const MAX_POLLS: usize = 2_400;
/// Time since the start of a new trace in microseconds: longer than its spans last.
const TRACE_MICROS: i64 = 2_000_000;
/// The model to which the code reviews are moved, without a test.
const SMALL_MODEL: &str = "gpt-4.1-nano";

/// The prompts as their first versions have them.
const SUPPORT_TEMPLATE: &str =
    "You are the friendly support agent of Acme. Answer in the customer's language.";
const DOCS_TEMPLATE: &str = "You answer questions about the documentation of Acme.";
const REVIEW_TEMPLATE: &str = "You review changes of the shop's code. Name the file and the problem.";

/// The demo as a user that creates data through the API.
pub(super) struct DemoUser<'a> {
    /// The app.
    pub(super) app: &'a App,
    /// The tenant.
    pub(super) tenant: &'a DemoTenant,
    /// The API.
    pub(super) api: &'a OwnApi,
    /// Numbers that follow from the seed.
    pub(super) rng: Rng,
}

/// Creates the eval rules and the deployments.
pub(super) async fn create(user: &mut DemoUser<'_>) -> anyhow::Result<()> {
    for project in &user.tenant.projects {
        // Only traces that name their prompt, so that the demo's other traces cost no judge.
        let rule = json!({"project_id": project, "metric_name": TESTED_METRIC, "evaluator_type": "llm",
            "filter": {"tag": "prompt.name"}, "min_score_drop": 0.1});
        user.api.post("/v1/eval-rules", &rule).await?;
    }
    for (prompt, template) in
        [(SUPPORT_PROMPT, SUPPORT_TEMPLATE), (DOCS_PROMPT, DOCS_TEMPLATE), (REVIEW_PROMPT, REVIEW_TEMPLATE)]
    {
        let first = user.deploy(prompt, json!({"template": template})).await?;
        user.decide(&first, "approve", "the prompt that the application had").await?;
        user.ask_questions(prompt, prompt.model).await?;
    }
    let concrete = format!("{SUPPORT_TEMPLATE} {CONCRETE_INSTRUCTION}");
    // The tests run at the same time.
    let support = user.start_replay(SUPPORT_PROMPT, concrete).await?;
    let docs = user.start_replay(DOCS_PROMPT, format!("{DOCS_TEMPLATE} {RESTATE_INSTRUCTION}")).await?;
    let review = user.start_replay(REVIEW_PROMPT, format!("{REVIEW_TEMPLATE} {RESTATE_INSTRUCTION}")).await?;
    for id in [&support, &docs, &review] {
        user.wait_until_passed(id).await?;
    }
    user.decide(&support, "approve", "fewer evasive answers").await?;
    user.decide(&review, "approve", "").await?;
    let last = user.ask_questions(REVIEW_PROMPT, SMALL_MODEL).await?;
    user.wait_until_evaluated(&last).await
}

/// Returns the questions of a prompt's users.
fn questions(prompt: ApplicationPrompt) -> Vec<String> {
    match prompt.project {
        0 => SUPPORT_EXCHANGES.iter().map(|it| it.0.to_owned()).collect(),
        1 => DOCS_EXCHANGES.iter().map(|it| it.0.to_owned()).collect(),
        _ => REVIEW_COMMENTS.iter().map(|it| review_question(it.0)).collect(),
    }
}

impl DemoUser<'_> {
    /// Creates a version of a prompt; returns its ID.
    pub(super) async fn deploy(&self, prompt: ApplicationPrompt, mut body: Value) -> anyhow::Result<String> {
        body["project_id"] = json!(self.tenant.projects[prompt.project]);
        body["prompt_name"] = json!(prompt.name);
        let created = self.api.post("/v1/prompts/deployments", &body).await?;
        Ok(text(&created, "id")?.to_owned())
    }

    async fn decide(&self, id: &str, decision: &str, note: &str) -> anyhow::Result<()> {
        let path = format!("/v1/prompts/deployments/{id}/{decision}");
        self.api.post(&path, &json!({"note": note})).await?;
        Ok(())
    }

    /// Creates a version whose test replays stored traces; returns its ID.
    async fn start_replay(&self, prompt: ApplicationPrompt, template: String) -> anyhow::Result<String> {
        let test = json!({"metric_name": TESTED_METRIC, "min_samples": SAMPLE_COUNT});
        self.deploy(prompt, json!({"template": template, "mode": "replay", "ab": test})).await
    }

    async fn wait_until_passed(&self, id: &str) -> anyhow::Result<()> {
        let path = format!("/v1/prompts/deployments/{id}");
        let is_decided = |it: &Value| it["status"] != DeploymentStatus::AbRunning.as_str();
        let decided = self.wait_until(&path, is_decided).await?;
        anyhow::ensure!(
            decided["status"] == DeploymentStatus::AbPassed.as_str(),
            "a version of {} is {}: {}",
            decided["prompt_name"],
            decided["status"],
            decided["reason"]
        );
        Ok(())
    }

    /// Waits until the eval rule has evaluated a trace.
    async fn wait_until_evaluated(&self, trace: &str) -> anyhow::Result<()> {
        let path = format!("/v1/eval?trace_id={trace}&metric_name={TESTED_METRIC}&status=complete");
        let has_evaluation = |it: &Value| it["evaluations"].as_array().is_some_and(|it| !it.is_empty());
        self.wait_until(&path, has_evaluation).await?;
        Ok(())
    }

    /// Waits until a resource has the required state; returns it.
    pub(super) async fn wait_until(
        &self,
        path: &str,
        is_reached: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        for _ in 0..MAX_POLLS {
            let resource = self.api.get(path).await?;
            if is_reached(&resource) {
                return Ok(resource);
            }
            anyhow::ensure!(!self.app.pause(POLL_INTERVAL).await, "the demo stops");
        }
        anyhow::bail!("{path} does not reach the expected state")
    }

    /// Stores the traces of users who ask all questions of a prompt's application, some of them repeatedly; returns the ID of
    /// the last trace.
    async fn ask_questions(&mut self, prompt: ApplicationPrompt, model: &str) -> anyhow::Result<String> {
        let mut last = String::new();
        for text in questions(prompt).iter().cycle().take(SAMPLE_COUNT) {
            last = self.ask(prompt, text, model, None).await?;
        }
        Ok(last)
    }

    /// Stores the trace of a question, whose call may fail with an error; returns the trace's ID.
    pub(super) async fn ask(
        &mut self,
        prompt: ApplicationPrompt,
        question: &str,
        model: &str,
        error: Option<&str>,
    ) -> anyhow::Result<String> {
        let user = USER_NAMES[self.rng.usize(..USER_NAMES.len())];
        let order = format!("A-{:05}", self.rng.u32(10_000..99_999));
        let text = question.replace("{order}", &order);
        let project = self.tenant.projects[prompt.project];
        let served = prompt_application::fetch(self.api, prompt, project, user).await?;
        let question = Question { user, text: &text, model };
        let start = self.app.clock.now() - TRACE_MICROS;
        let item = prompt_application::trace(&mut self.rng, prompt, &served, question, (start, error));
        let mut writer = TraceWriter::new(self.app, self.tenant).await?;
        writer.write(prompt.project, item).await?;
        writer.flush().await?;
        let stored = writer.stored.pop().map(|it| it.id.to_string());
        stored.ok_or_else(|| anyhow::anyhow!("a trace of the demo was not stored"))
    }
}
