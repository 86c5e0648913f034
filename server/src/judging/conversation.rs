//! A conversation with a judge: the question, an answer, and once more if it can't be read.

use std::time::Duration;

use evaluators::{
    Verdict,
    judge::{Ask, Unreadable, read, repair},
};
use tokio::time::{Instant, sleep};

use super::{Chosen, Judge, Spent, ways::Course};
use crate::providers::judge::{Answer, Failure, Question};

/// Tokens that an answer may have: a few hundred for the verdict, the rest for a model that thinks.
const MAX_TOKENS: u32 = 4_096;
/// The same for the second answer, when the first one was cut off.
const MAX_TOKENS_AGAIN: u32 = 8_192;
/// Characters of an answer that can't be read which the judge is shown again.
const SHOWN_AGAIN: usize = 4_000;
/// Pause before the one request that is sent again at once.
const QUICK: Duration = Duration::from_millis(300);

/// A conversation at some point.
struct Talk<'a> {
    judge: &'a Judge,
    chosen: &'a Chosen,
    ask: &'a Ask,
    turns: Vec<String>,
    course: Course,
    max_tokens: u32,
    /// Whether something that broke was tried again at once.
    has_retried: bool,
    /// When the time for all of it is over.
    end: Instant,
    spent: Spent,
}

impl Judge {
    /// Asks for a verdict; answers what that took as well.
    pub(super) async fn converse(&self, chosen: &Chosen, ask: &Ask) -> (Spent, Result<Verdict, Failure>) {
        let mut talk = Talk {
            judge: self,
            chosen,
            ask,
            turns: vec![ask.user.clone()],
            course: self.ways.of(&chosen.endpoint),
            max_tokens: MAX_TOKENS,
            has_retried: false,
            end: Instant::now() + self.settings.timeout() * 2,
            spent: Spent::default(),
        };
        let verdict = talk.run().await;
        (talk.spent, verdict)
    }
}

impl Talk<'_> {
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
            self.max_tokens = MAX_TOKENS_AGAIN;
        } else if matches!(why, Unreadable::NoObject(_)) {
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
                Err(Failure::Unusable(format!("{why}, having been cut off at {tokens} tokens")))
            }
            Err(why) => Err(Failure::Unusable(why.to_string())),
        }
    }

    /// The judge's next answer, by whichever way it can be had.
    async fn answer(&mut self) -> Result<Answer, Failure> {
        loop {
            let failure = match self.request().await {
                Ok(Answer { declined: Some(why), .. }) => return Err(Failure::Refused(why)),
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            match failure {
                Failure::Form { why, part } => {
                    if !self.course.refused(part, self.chosen.endpoint.provider) {
                        // Nothing is left to do without: it is what is asked.
                        return Err(Failure::Refused(why));
                    }
                }
                Failure::Passing { at_once: true, .. } if !self.has_retried => {
                    self.has_retried = true;
                    sleep(QUICK).await;
                }
                other => return Err(other),
            }
        }
    }

    /// One request, counted and timed.
    async fn request(&mut self) -> Result<Answer, Failure> {
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
            self.spent.add(&answer.usage, &chosen.endpoint.model, &chosen.prices);
        }
        asked
    }
}

/// An answer as the judge is reminded of it. Nothing can't be said in that place.
fn shown_again(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(SHOWN_AGAIN) {
        _ if text.is_empty() => "(nothing)".to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
