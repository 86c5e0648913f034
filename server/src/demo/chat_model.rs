//! The demo's chat model: a script that knows the questions of the demo's traces, and follows a few instructions.
//!
//! Its answers depend on the system message, on the model's name and on how often the request was sent before, so that
//! retries and other prompts give better or worse answers.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

use super::texts::{DOCS_EXCHANGES, REVIEW_COMMENTS, SUPPORT_EXCHANGES};

/// The instruction after which the model begins with the question, so that its answer contains what was asked.
pub(super) const RESTATE_INSTRUCTION: &str = "Begin by repeating the question in one sentence.";
/// The instruction after which the model never evades a question that it knows.
pub(super) const CONCRETE_INSTRUCTION: &str = "Give a concrete answer.";
/// The end of the names of models that evade every question.
const SMALL_MODEL_SUFFIX: &str = "-nano";
/// The answer that evades a question.
const EVASIVE_ANSWER: &str = "Thank you for your message. A colleague will get back to you soon.";
/// Without an instruction, one in this many attempts evades the question.
const ATTEMPTS_PER_EVASION: usize = 3;
/// Maximum number of requests whose repetitions are counted.
const MAX_COUNTED_REQUESTS: usize = 10_000;

/// The model, with the number of times that each request was sent.
#[derive(Debug, Default)]
pub(super) struct ChatModel {
    repetitions: Mutex<HashMap<String, usize>>,
}

impl ChatModel {
    /// Returns the reply to a request, and counts it.
    pub(super) fn reply(&self, model: &str, messages: &[Value]) -> String {
        let key = Value::from(messages).to_string();
        let mut repetitions = self.repetitions.lock().unwrap_or_else(PoisonError::into_inner);
        if repetitions.len() >= MAX_COUNTED_REQUESTS {
            repetitions.clear();
        }
        let count = repetitions.entry(key).or_default();
        *count += 1;
        answer(model, messages, *count)
    }
}

/// Returns the answer to a request that was sent `repetition` times before.
pub(super) fn answer(model: &str, messages: &[Value], repetition: usize) -> String {
    let (system, question) = (message(messages, "system"), message(messages, "user"));
    // The summary of a review has the form of its input.
    if question.starts_with('{') {
        return question.to_owned();
    }
    let Some(known) = known_answer(question) else { return EVASIVE_ANSWER.to_owned() };
    if model.ends_with(SMALL_MODEL_SUFFIX) {
        return EVASIVE_ANSWER.to_owned();
    }
    if system.contains(RESTATE_INSTRUCTION) {
        return format!("You asked: \"{}\" {known}", first_line(question));
    }
    if system.contains(CONCRETE_INSTRUCTION) {
        return known;
    }
    let is_evaded = (first_line(question).len() + repetition).is_multiple_of(ATTEMPTS_PER_EVASION);
    if is_evaded { EVASIVE_ANSWER.to_owned() } else { known }
}

fn message<'a>(messages: &'a [Value], role: &str) -> &'a str {
    let has_role = |it: &&Value| it.get("role").and_then(Value::as_str) == Some(role);
    let found = messages.iter().rev().find(has_role);
    found.and_then(|it| it.get("content")?.as_str()).unwrap_or_default()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns the answer to a question of the demo's traces; `None` for another question.
fn known_answer(question: &str) -> Option<String> {
    let line = first_line(question);
    let mut words = line.split(|it: char| !it.is_ascii_alphanumeric() && it != '-');
    let order = words.find(|it| it.starts_with("A-") && it.len() == 7).unwrap_or("A-00000");
    let exchanges = SUPPORT_EXCHANGES.iter().chain(DOCS_EXCHANGES);
    let exchange = exchanges.into_iter().find(|it| it.0.replace("{order}", order) == line);
    if let Some((_, answer)) = exchange {
        return Some(answer.replace("{order}", order));
    }
    let review = REVIEW_COMMENTS.iter().find(|it| line == review_question(it.0));
    review.map(|it| format!("{}: {}", it.0, it.1))
}

/// Returns the request to review a file.
pub(super) fn review_question(file: &str) -> String {
    format!("Review {file}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(system: &str, question: &str) -> Vec<Value> {
        vec![json!({"role": "system", "content": system}), json!({"role": "user", "content": question})]
    }

    #[test]
    fn answer_follows_the_instructions() {
        let question = "Where is my order A-12345?";
        let asked = |system: &str| answer("gpt-4o", &messages(system, question), 0);
        assert!(
            asked(RESTATE_INSTRUCTION)
                .starts_with("You asked: \"Where is my order A-12345?\" Your order A-12345")
        );
        assert!(asked(CONCRETE_INSTRUCTION).starts_with("Your order A-12345 left our warehouse"));
        assert_eq!(answer("gpt-4.1-nano", &messages(RESTATE_INSTRUCTION, question), 0), EVASIVE_ANSWER);
        assert_eq!(answer("gpt-4o", &messages(RESTATE_INSTRUCTION, "Sing a song"), 0), EVASIVE_ANSWER);
        assert!(answer("gpt-4o", &messages("", "Review README.md"), 0).starts_with("README.md: Fine"));
    }

    #[test]
    fn repeated_request_gets_another_answer() {
        let model = ChatModel::default();
        let request = messages("Be kind.", "How do I rotate an API key?");
        let replies: Vec<String> = (0..3).map(|_| model.reply("gpt-4o", &request)).collect();
        assert_eq!(replies.iter().filter(|it| *it == EVASIVE_ANSWER).count(), 1, "{replies:?}");
        assert_eq!(replies.iter().filter(|it| it.contains("acme keys revoke")).count(), 2, "{replies:?}");
    }
}
