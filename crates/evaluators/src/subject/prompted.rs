//! Context in a prompt. Many applications send the retrieved text to the model under a heading such as
//! `Context:`, without a span for the retrieval.

use super::{Document, Message};

/// Headings of context at the beginning of a line.
const CONTEXT_HEADINGS: &[&str] = &[
    "context:",
    "<context>",
    "context information:",
    "retrieved context:",
    "documents:",
    "<documents>",
    "retrieved documents:",
    "sources:",
    "<sources>",
    "search results:",
    "<search_results>",
    "passages:",
    "excerpts:",
    "knowledge base:",
    "reference material:",
];
/// Texts at the beginning of a line that end the context.
const CONTEXT_ENDS: &[&str] = &[
    "</context>",
    "</documents>",
    "</sources>",
    "</search_results>",
    "question:",
    "<question>",
    "user question:",
    "query:",
    "q:",
    "user query:",
    "user:",
    "instructions:",
    "task:",
    "answer:",
];

/// Returns the context in the messages to a model, as one document per message.
pub(super) fn documents(messages: &[Message]) -> Vec<Document> {
    messages
        .iter()
        .filter(|it| matches!(it.role.as_str(), "system" | "user"))
        .filter_map(|it| context(&it.text))
        .map(|text| Document { id: Some("context of the prompt".to_owned()), score: None, text })
        .collect()
}

fn context(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let first = lines.find_map(|line| {
        let line = line.trim_start();
        CONTEXT_HEADINGS.iter().find_map(|it| behind(line, it))
    })?;
    let mut context = first.trim().trim_end_matches("</context>").to_owned();
    for line in lines {
        if CONTEXT_ENDS.iter().any(|it| behind(line.trim_start(), it).is_some()) {
            break;
        }
        context.push('\n');
        context.push_str(line);
    }
    let context = context.trim();
    (!context.is_empty()).then(|| context.to_owned())
}

/// Returns the text after a prefix, ignoring case.
fn behind<'a>(line: &'a str, beginning: &str) -> Option<&'a str> {
    let (start, rest) = line.split_at_checked(beginning.len())?;
    start.eq_ignore_ascii_case(beginning).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_is_found_under_its_heading() {
        for text in [
            "Context: A.\nB.\nQuestion: What?",
            "Answer from this.\n\nCONTEXT:\nA.\nB.\n\nQ: What?",
            "<context>\nA.\nB.\n</context>\nWhat?",
            "Use the following.\n  Search results:\n  A.\nB.",
        ] {
            let found = context(text).unwrap();
            assert!(found.starts_with("A.\nB."), "{found:?}");
            assert!(!found.contains("What"), "{found:?}");
        }
    }

    #[test]
    fn prompt_without_text_under_a_heading_has_no_context() {
        for text in ["What is context: a word?", "Context:\nQuestion: What?", "", "contexts: é", "é"] {
            assert_eq!(context(text), None, "{text}");
        }
    }
}
