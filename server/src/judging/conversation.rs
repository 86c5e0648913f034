//! A conversation with a judge: the prompt, the reply, and a repair request if it can't be parsed.

use std::time::Duration;

use evaluators::{
    Verdict,
    judge::{JudgeRequest, UnreadableResponse, read, repair},
};
use store::evaluations::JudgeUsage;
use tokio::time::{Instant, sleep};

use super::{Judge, SelectedJudge, outcome::add_reply, ways::OutputModeAttempt};
use crate::providers::judge::{Failure, JudgeReply, Question};

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
    chosen: &'a SelectedJudge,
    ask: &'a JudgeRequest,
    turns: Vec<String>,
    course: OutputModeAttempt,
    max_tokens: u32,
    /// Whether the immediate retry was used.
    has_retried: bool,
    /// The deadline of the conversation.
    end: Instant,
    usage: JudgeUsage,
}

impl Judge {
    /// Requests a verdict; returns the usage as well.
    pub(super) async fn converse(
        &self,
        chosen: &SelectedJudge,
        ask: &JudgeRequest,
    ) -> (JudgeUsage, Result<Verdict, Failure>) {
        let mut conversation = Conversation {
            judge: self,
            chosen,
            ask,
            turns: vec![ask.user.clone()],
            course: self.ways.of(&chosen.endpoint),
            max_tokens: MAX_TOKENS,
            has_retried: false,
            end: Instant::now() + self.settings.timeout() * 2,
            usage: chosen.no_usage(),
        };
        let verdict = conversation.run().await;
        (conversation.usage, verdict)
    }
}

impl Conversation<'_> {
    async fn run(&mut self) -> Result<Verdict, Failure> {
        let answer = self.answer().await?;
        let why = match read(self.ask, &answer.text) {
            Ok(verdict) => {
                self.judge.ways.works(&self.chosen.endpoint, self.course);
                return Ok(verdict);
            }
            Err(why) => why,
        };
        self.judge.telemetry.judge.repairs.inc();
        if answer.is_cut {
            self.max_tokens = MAX_RETRY_TOKENS;
        } else if matches!(why, UnreadableResponse::NoObject(_)) {
            self.course.ignored(self.chosen.endpoint.provider);
        }
        self.turns.push(shown_again(&answer.text));
        self.turns.push(repair(self.ask, &why));
        let answer = self.answer().await?;
        match read(self.ask, &answer.text) {
            Ok(verdict) => {
                self.judge.ways.works(&self.chosen.endpoint, self.course);
                Ok(verdict)
            }
            Err(why) if answer.is_cut => {
                let tokens = self.max_tokens;
                Err(Failure::Unusable(format!("{why}; the reply was truncated at {tokens} tokens")))
            }
            Err(why) => Err(Failure::Unusable(why.to_string())),
        }
    }

    /// Returns the judge's next reply in the best supported mode.
    async fn answer(&mut self) -> Result<JudgeReply, Failure> {
        loop {
            let failure = match self.request().await {
                Ok(JudgeReply { declined: Some(why), .. }) => return Err(Failure::Refused(why)),
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            match failure {
                Failure::Form { why, part } => {
                    if !self.course.refused(part, self.chosen.endpoint.provider) {
                        // No feature is left to omit, so the content itself is rejected.
                        return Err(Failure::Refused(why));
                    }
                }
                Failure::Passing { at_once: true, .. } if !self.has_retried => {
                    self.has_retried = true;
                    sleep(RETRY_DELAY).await;
                }
                other => return Err(other),
            }
        }
    }

    /// Sends one request, with metrics.
    async fn request(&mut self) -> Result<JudgeReply, Failure> {
        let (judge, chosen) = (self.judge, self.chosen);
        let began = Instant::now();
        let timeout = self.end.saturating_duration_since(began).min(judge.settings.timeout());
        let question = Question {
            system: &self.ask.system,
            turns: &self.turns,
            schema: &self.ask.schema,
            max_tokens: self.max_tokens,
        };
        let asked =
            judge.client.ask(&chosen.endpoint, &question, self.course.way, timeout, judge.clock.now()).await;
        let outcome = asked.as_ref().map_or_else(Failure::word, |_| "ok");
        judge.telemetry.judge.requested(outcome, began.elapsed());
        if let Ok(answer) = &asked {
            add_reply(&mut self.usage, &answer.usage, &chosen.endpoint.model, &chosen.prices);
        }
        asked
    }
}

/// Returns the part of a reply that is sent back to the judge. An empty reply is replaced, because APIs
/// reject empty messages.
fn shown_again(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_QUOTED_REPLY_CHARS) {
        _ if text.is_empty() => "(nothing)".to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
