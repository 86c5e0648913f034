//! A conversation with a judge: the prompt, the reply, and a repair request if it cannot be parsed.

use std::time::Duration;

use evaluators::{
    Verdict,
    judge::{JudgeRequest, UnreadableResponse, build_repair_message, parse_response},
};
use store::evaluations::JudgeUsage;
use tokio::time::{Instant, sleep};

use super::{Judge, SelectedJudge, judge_result::add_reply, output_modes::OutputModeAttempt};
use crate::providers::judge::{JudgePrompt, JudgeProviderFailure, JudgeReply};

/// Maximum number of tokens of a reply: a few hundred for the verdict, the rest for reasoning models.
const MAX_TOKENS: u32 = 4_096;
/// Maximum number of tokens of the second reply, if the first one was truncated.
const MAX_RETRY_TOKENS: u32 = 8_192;
/// Number of characters of an unparsable reply that are sent back to the judge.
const MAX_QUOTED_REPLY_CHARS: usize = 4_000;
/// Delay before the one immediate retry.
const RETRY_DELAY: Duration = Duration::from_millis(300);

/// The state of a conversation.
struct Conversation<'a> {
    judge: &'a Judge,
    selected: &'a SelectedJudge,
    request: &'a JudgeRequest,
    messages: Vec<String>,
    attempt: OutputModeAttempt,
    max_tokens: u32,
    /// Whether the immediate retry was used.
    has_retried: bool,
    /// The deadline of the conversation.
    deadline: Instant,
    usage: JudgeUsage,
}

impl Judge {
    /// Requests a verdict; returns the usage as well.
    pub(super) async fn converse(
        &self,
        selected: &SelectedJudge,
        request: &JudgeRequest,
    ) -> (JudgeUsage, Result<Verdict, JudgeProviderFailure>) {
        let mut conversation = Conversation {
            judge: self,
            selected,
            request,
            messages: vec![request.user.clone()],
            attempt: self.output_modes.first_attempt(&selected.endpoint),
            max_tokens: MAX_TOKENS,
            has_retried: false,
            deadline: Instant::now() + self.settings.timeout() * 2,
            usage: selected.no_usage(),
        };
        let verdict = conversation.run().await;
        (conversation.usage, verdict)
    }
}

impl Conversation<'_> {
    async fn run(&mut self) -> Result<Verdict, JudgeProviderFailure> {
        let reply = self.next_reply().await?;
        let error = match parse_response(self.request, &reply.text) {
            Ok(verdict) => {
                self.judge.output_modes.record_success(&self.selected.endpoint, self.attempt);
                return Ok(verdict);
            }
            Err(error) => error,
        };
        self.judge.telemetry.judge.repairs.inc();
        if reply.is_cut {
            self.max_tokens = MAX_RETRY_TOKENS;
        } else if matches!(error, UnreadableResponse::NoObject(_)) {
            self.attempt.relax_after_prose(self.selected.endpoint.provider);
        }
        self.messages.push(quoted_reply(&reply.text));
        self.messages.push(build_repair_message(self.request, &error));
        let reply = self.next_reply().await?;
        match parse_response(self.request, &reply.text) {
            Ok(verdict) => {
                self.judge.output_modes.record_success(&self.selected.endpoint, self.attempt);
                Ok(verdict)
            }
            Err(error) if reply.is_cut => {
                let tokens = self.max_tokens;
                Err(JudgeProviderFailure::InvalidResponse(format!(
                    "{error}; the reply was truncated at {tokens} tokens"
                )))
            }
            Err(error) => Err(JudgeProviderFailure::InvalidResponse(error.to_string())),
        }
    }

    /// Returns the judge's next reply in the best supported mode.
    async fn next_reply(&mut self) -> Result<JudgeReply, JudgeProviderFailure> {
        loop {
            let failure = match self.send().await {
                Ok(JudgeReply { declined: Some(error), .. }) => {
                    return Err(JudgeProviderFailure::TextRejected(error));
                }
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            match failure {
                JudgeProviderFailure::UnsupportedFeature { why, feature } => {
                    if !self.attempt.drop_feature(feature, self.selected.endpoint.provider) {
                        // No feature is left to omit, so the content itself is rejected.
                        return Err(JudgeProviderFailure::TextRejected(why));
                    }
                }
                JudgeProviderFailure::Temporary { retry_immediately: true, .. } if !self.has_retried => {
                    self.has_retried = true;
                    sleep(RETRY_DELAY).await;
                }
                other => return Err(other),
            }
        }
    }

    /// Sends one request, with metrics.
    async fn send(&mut self) -> Result<JudgeReply, JudgeProviderFailure> {
        let (judge, selected) = (self.judge, self.selected);
        let began = Instant::now();
        let timeout = self.deadline.saturating_duration_since(began).min(judge.settings.timeout());
        let prompt = JudgePrompt {
            system: &self.request.system,
            messages: &self.messages,
            schema: &self.request.schema,
            max_tokens: self.max_tokens,
        };
        let reply = judge
            .client
            .send(&selected.endpoint, &prompt, self.attempt.features, timeout, judge.clock.now())
            .await;
        let outcome = reply.as_ref().map_or_else(JudgeProviderFailure::word, |_| "ok");
        judge.telemetry.judge.count_request(outcome, began.elapsed());
        if let Ok(reply) = &reply {
            add_reply(&mut self.usage, &reply.usage, &selected.endpoint.model, &selected.prices);
        }
        reply
    }
}

/// Returns the part of a reply that is sent back to the judge. An empty reply is replaced, because APIs
/// reject empty messages.
fn quoted_reply(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_QUOTED_REPLY_CHARS) {
        _ if text.is_empty() => "(nothing)".to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
