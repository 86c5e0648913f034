//! An application that gets its prompt from the server: asks for the prompt of a user, answers with the demo's chat model,
//! and sends a trace with the prompt's tags.

use api::{SpanType, deployment::ServedPrompt, ingest::TraceItem};
use fastrand::Rng;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{chat_model, own_api::OwnApi, trace_builder::TraceBuilder};

/// Duration of the model call of a trace in milliseconds.
const CALL_MILLIS: i64 = 900;

/// A prompt of an application.
#[derive(Clone, Copy)]
pub(super) struct ApplicationPrompt {
    /// The name of the prompt.
    pub(super) name: &'static str,
    /// The name of the traces.
    pub(super) trace_name: &'static str,
    /// The index of the project in `PROJECT_NAMES`.
    pub(super) project: usize,
    /// The model.
    pub(super) model: &'static str,
}

/// The support agent's prompt, whose live test runs with the demo's live traffic.
pub(super) const SUPPORT_PROMPT: ApplicationPrompt = ApplicationPrompt {
    name: "support-answer",
    trace_name: "support.answer",
    project: 0,
    model: "gpt-4o-mini",
};
/// The prompt of the search over documentation.
pub(super) const DOCS_PROMPT: ApplicationPrompt =
    ApplicationPrompt { name: "docs-answer", trace_name: "docs.ask", project: 1, model: "gpt-4.1-mini" };
/// The prompt of the code reviews.
pub(super) const REVIEW_PROMPT: ApplicationPrompt = ApplicationPrompt {
    name: "review-file",
    trace_name: "review.file",
    project: 2,
    model: "claude-sonnet-4-5",
};

/// Returns the version of a prompt that a user gets.
pub(super) async fn fetch(
    api: &OwnApi,
    prompt: ApplicationPrompt,
    project: Uuid,
    user: &str,
) -> anyhow::Result<ServedPrompt> {
    let subject = utf8_percent_encode(user, NON_ALPHANUMERIC);
    let path = format!("/v1/prompts/{}?project_id={project}&subject={subject}", prompt.name);
    Ok(serde_json::from_value(api.get(&path).await?)?)
}

/// Returns the messages of a request to the model.
pub(super) fn messages(system: &str, question: &str) -> Value {
    json!([{"role": "system", "content": system}, {"role": "user", "content": question}])
}

/// A question of a user.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    /// The user.
    pub(super) user: &'a str,
    /// The text.
    pub(super) text: &'a str,
    /// The model that answers.
    pub(super) model: &'a str,
}

/// Returns the trace of an answered question, which begins at `start` (microseconds). With `error`, the call fails.
pub(super) fn trace(
    rng: &mut Rng,
    prompt: ApplicationPrompt,
    served: &ServedPrompt,
    question: Question<'_>,
    (start, error): (i64, Option<&str>),
) -> TraceItem {
    let Question { user, text, model } = question;
    let messages = messages(&served.template, text);
    let answer = chat_model::answer(model, messages.as_array().map_or(&[], Vec::as_slice), 0);
    let mut builder = TraceBuilder::new(rng, prompt.trace_name, start);
    let mut tags = vec![("env", "production")];
    tags.extend(served.tags.iter().map(|it| (it.0.as_str(), it.1.as_str())));
    builder.set_user(user, None, &tags);
    let call = builder.step("answer", SpanType::Llm, CALL_MILLIS);
    builder.set_texts(call, messages.to_string(), answer.as_str());
    builder.set_model_call(rng, call, model);
    if let Some(error) = error {
        builder.set_error(call, error);
    }
    builder.end(text, error.map_or(Ok(&answer), Err))
}
