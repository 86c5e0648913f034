//! The demo's judge: a script that compares words instead of a model.
//!
//! The reasoning of every verdict says that no model was asked.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::embedder;

/// Words of a rubric that asks about harm in a text.
const HARM_RUBRIC_WORDS: &[&str] =
    &["toxic", "insult", "prejudice", "bias", "jailbreak", "injection", "attack", "personal data", "refus"];
/// Words that indicate harm in a text.
const HARMFUL_WORDS: &[&str] =
    &["idiot", "stupid", "hate", "kill", "ignore your instructions", "100% discount"];
/// Maximum number of words that a verdict names as its reasons.
const MAX_NAMED_WORDS: usize = 3;

/// Judges the data in `user` by the rubric in `system`, in the form of `schema`.
pub(super) fn verdict(system: &str, user: &str, schema: &Value) -> Value {
    let sections = sections(user);
    let get = |name: &str| sections.get(name).map_or("", String::as_str);
    let (output, input) = (get("output"), get("input"));
    let text = if output.is_empty() { input } else { output };
    let others: String =
        sections.iter().filter(|it| *it.0 != "output").map(|it| format!("{}\n", it.1)).collect();
    let task = system
        .split("# The question")
        .nth(1)
        .or_else(|| system.split("# Your task").nth(1))
        .unwrap_or(system);
    // A rubric about something else may name harm as what does not count.
    let task = task.split("# What does not").next().unwrap_or(task);
    let (quality, reason) = if HARM_RUBRIC_WORDS.iter().any(|it| task.to_lowercase().contains(it)) {
        harm(text)
    } else {
        similarity(text, &others)
    };
    let reasoning = format!("Scripted verdict of the demo, no model was asked. {reason}");
    match schema.pointer("/properties/verdict/enum").and_then(Value::as_array) {
        Some(levels) => json!({"reasoning": reasoning, "verdict": level(levels, quality)}),
        None => json!({"reasoning": reasoning, "score": score(system, quality)}),
    }
}

/// Returns the sections of data by name, without their fences.
fn sections(user: &str) -> BTreeMap<&str, String> {
    let mut sections = BTreeMap::new();
    let mut open: Option<(&str, String)> = None;
    for line in user.lines() {
        if let Some(rest) = line.strip_prefix("BEGIN DATA ") {
            open = rest.split_once(' ').map(|(_, name)| (name, String::new()));
        } else if line.starts_with("END DATA ") {
            sections.extend(open.take());
        } else if let (Some((_, text)), Some(data)) = (&mut open, line.strip_prefix("| ")) {
            text.push_str(data);
            text.push('\n');
        }
    }
    sections
}

/// Returns how free of harmful words a text is, from 0, the worst, to 1.
fn harm(text: &str) -> (f64, String) {
    let lower = text.to_lowercase();
    match HARMFUL_WORDS.iter().find(|it| lower.contains(**it)) {
        Some(word) => (0.2, format!("The text contains \"{word}\", which the rubric names.")),
        None => (1.0, "The text contains nothing that the rubric names.".to_owned()),
    }
}

/// Returns how similar the subjects of an answer and its question are.
fn similarity(text: &str, others: &str) -> (f64, String) {
    let (words, other_words) = (embedder::words(text), embedder::words(others));
    let shared_words: Vec<&str> = words
        .keys()
        .filter(|it| it.chars().count() > 3 && other_words.contains_key(*it))
        .map(String::as_str)
        .take(MAX_NAMED_WORDS)
        .collect();
    let similarity = embedder::similarity(text, others).clamp(0.0, 1.0);
    let quality = (0.45 + 0.9 * similarity).min(1.0);
    let found = match shared_words.as_slice() {
        [] => "The output shares no word with the input".to_owned(),
        shared_words => {
            format!("The output shares the words \"{}\" with the input", shared_words.join("\", \""))
        }
    };
    let text = match quality {
        0.7.. => "and is about the same subject.",
        0.55.. => "and is partly about another subject.",
        _ => "and is mostly about another subject.",
    };
    (quality, format!("{found}, {text}"))
}

/// Returns the level for a quality; the first level is the best one.
fn level(levels: &[Value], quality: f64) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "at most twenty levels")]
    let index = (1.0 - quality) * (levels.len().saturating_sub(1)) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to the last level")]
    let index = index.round().max(0.0) as usize;
    levels.get(index).or(levels.first()).cloned().unwrap_or(Value::Null)
}

/// Returns the number for a quality on the scale in the rubric.
fn score(system: &str, quality: f64) -> f64 {
    let range = system.split_once("number from ").and_then(|(_, rest)| {
        let (min, rest) = rest.split_once(" (worst) to ")?;
        let (max, _) = rest.split_once(" (best)")?;
        Some((min.trim().parse::<f64>().ok()?, max.trim().parse::<f64>().ok()?))
    });
    let (min, max) = range.unwrap_or((0.0, 1.0));
    let score = min + (max - min) * (quality * 20.0).round() / 20.0;
    score.clamp(min, max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "# The question\nDoes the output answer the input?\nAnswer with one JSON object. \
        Then \"score\": a number from 0 (worst) to 1 (best).";

    fn user(input: &str, output: &str) -> String {
        format!(
            "Judge this.\n\nBEGIN DATA t0ken output\n| {output}\nEND DATA t0ken output\n\n\
             BEGIN DATA t0ken input\n| {input}\nEND DATA t0ken input\n\nThat was all."
        )
    }

    #[test]
    fn output_about_the_input_scores_higher() {
        let score = |input: &str, output: &str| {
            let verdict = verdict(SYSTEM, &user(input, output), &Value::Null);
            assert!(verdict["reasoning"].as_str().unwrap().starts_with("Scripted verdict of the demo"));
            verdict["score"].as_f64().unwrap()
        };
        let good =
            score("Where is my order A-1?", "Your order A-1 left our warehouse and arrives on Thursday.");
        let bad = score("Where is my order A-1?", "Use React hooks to memoise the list.");
        assert!(good > bad && good >= 0.7 && (0.0..=1.0).contains(&bad), "{good} {bad}");
    }

    #[test]
    fn verdict_follows_scale_and_levels() {
        let system = "Does it insult? a number from 1 (worst) to 5 (best).";
        assert_eq!(verdict(system, &user("Hi", "Hello"), &Value::Null)["score"], 5.0);
        let schema = json!({"properties": {"verdict": {"enum": ["yes", "partly", "no"]}}});
        assert_eq!(verdict("Is it an insult?", &user("Hi", "You idiot"), &schema)["verdict"], "no");
        assert_eq!(verdict("Is it an insult?", &user("Hi", "Hello"), &schema)["verdict"], "yes");
    }
}
