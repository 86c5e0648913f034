//! A custom LLM evaluator: a template of instructions and a scale.
//!
//! A placeholder such as `{{output}}` refers to a part of the trace. In the instructions it is replaced by
//! the name of that part's section, and the part itself is shown inside the fence. Text of a trace is never
//! inserted into instructions.

use serde_json::Value;

use crate::{
    config::ConfigProblem,
    judge::{Instructions, PromptPart, Scale, TracePart},
};

/// Maximum length of a template in characters.
const MAX_TEMPLATE_CHARS: usize = 20_000;
/// Maximum number of parts that one template refers to.
const MAX_PARTS: usize = 50;
/// Maximum length of a key of metadata or config in characters.
const MAX_KEY_CHARS: usize = 100;

const PLACEHOLDER_NAMES: &str = "{{input}}, {{output}}, {{documents}}, {{tools}}, {{calls}}, {{turns}}, {{metadata.key}} \
                     and {{config.key}}";

/// Compiles a template and a scale (see [`Scale::parse`]; the default scale is 0 to 1).
///
/// A judged trace must have every part that the template names, unless the placeholder ends in `?`, as in
/// `{{documents?}}`. A template that names neither `{{input}}` nor `{{output}}` is shown both, and the output
/// is required.
///
/// # Errors
/// Returns all problems of both, with paths that begin with `rubric` and `scale`.
pub fn compile(rubric: &str, scale: Option<&Value>) -> Result<Instructions, Vec<ConfigProblem>> {
    let mut problems = Vec::new();
    let scale = match scale.filter(|it| !it.is_null()).map(Scale::parse) {
        None => Scale::ZERO_TO_ONE,
        Some(Ok(scale)) => scale,
        Some(Err(found)) => {
            problems.extend(found);
            Scale::ZERO_TO_ONE
        }
    };
    match template(rubric) {
        Ok((text, needs, uses)) if problems.is_empty() => {
            Ok(Instructions::of_template(text, scale, needs, uses))
        }
        Ok(_) => Err(problems),
        Err(found) => {
            problems.splice(..0, found);
            Err(problems)
        }
    }
}

type Template = (String, Vec<PromptPart>, Vec<PromptPart>);

fn template(rubric: &str) -> Result<Template, Vec<ConfigProblem>> {
    let wrong = |message: String| ConfigProblem::new("rubric", message);
    if rubric.trim().is_empty() {
        let message =
            format!("is required: the judge's instructions, with placeholders such as {PLACEHOLDER_NAMES}");
        return Err(vec![wrong(message)]);
    }
    if rubric.chars().count() > MAX_TEMPLATE_CHARS {
        return Err(vec![wrong(format!("must be at most {MAX_TEMPLATE_CHARS} characters long"))]);
    }
    let (mut text, mut needs, mut uses, mut problems) = (String::new(), Vec::new(), Vec::new(), Vec::new());
    let mut rest = rubric.trim();
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let Some((inside, behind)) = after.split_once("}}") else {
            problems.push(wrong("has a `{{` without its `}}`".to_owned()));
            rest = "";
            break;
        };
        rest = behind;
        let (word, optional) = match inside.trim().strip_suffix('?') {
            Some(word) => (word.trim_end(), true),
            None => (inside.trim(), false),
        };
        match part(word) {
            Some(part) => {
                text.push_str(&format!("[section {}]", part.name()));
                let list = if optional { &mut uses } else { &mut needs };
                if !list.contains(&part) {
                    list.push(part);
                }
            }
            None => {
                let shown: String = word.chars().take(MAX_KEY_CHARS).collect();
                problems.push(wrong(format!(
                    "has the unknown placeholder {{{{{shown}}}}}: use {PLACEHOLDER_NAMES}"
                )));
            }
        }
    }
    text.push_str(rest);
    if needs.len() + uses.len() > MAX_PARTS {
        problems.push(wrong(format!("refers to more than {MAX_PARTS} different parts")));
    }
    if !problems.is_empty() {
        problems.truncate(10);
        return Err(problems);
    }
    uses.retain(|it| !needs.contains(it));
    let names = |need| {
        let part = PromptPart::Trace(need);
        needs.contains(&part) || uses.contains(&part)
    };
    if !names(TracePart::Input) && !names(TracePart::Output) {
        needs.push(PromptPart::Trace(TracePart::Output));
        uses.push(PromptPart::Trace(TracePart::Input));
    }
    Ok((text, needs, uses))
}

/// Returns the part that a placeholder names.
fn part(word: &str) -> Option<PromptPart> {
    let key = |key: &str| {
        let fits = (1..=MAX_KEY_CHARS).contains(&key.len())
            && key.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.'));
        fits.then(|| key.to_owned())
    };
    match word.split_once('.') {
        Some(("metadata", rest)) => key(rest).map(PromptPart::Metadata),
        Some(("config", rest)) => key(rest).map(PromptPart::Config),
        _ => TracePart::of_word(word).map(PromptPart::Trace),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_become_names_of_sections() {
        let rubric = "Is {{ output }} polite, given {{input?}} and {{metadata.user.tier}}? Also {{output}}.";
        let instructions = compile(rubric, None).unwrap();
        assert_eq!(
            instructions.needs(),
            [PromptPart::Trace(TracePart::Output), PromptPart::Metadata("user.tier".to_owned())]
        );
        assert_eq!(instructions.uses(), [PromptPart::Trace(TracePart::Input)]);
        assert_eq!(*instructions.scale(), Scale::ZERO_TO_ONE);
        assert_eq!(instructions.prefers(), None);
    }

    #[test]
    fn template_without_placeholders_shows_output_and_input() {
        let instructions = compile("Is the answer polite?", Some(&json!({"min": 1, "max": 5}))).unwrap();
        assert_eq!(instructions.needs(), [PromptPart::Trace(TracePart::Output)]);
        assert_eq!(instructions.uses(), [PromptPart::Trace(TracePart::Input)]);
    }

    #[test]
    fn all_template_problems_are_reported_together() {
        let fields = |rubric: &str, scale: Value| -> Vec<String> {
            let problems = compile(rubric, Some(&scale)).unwrap_err();
            problems.into_iter().map(|it| format!("{} {}", it.field, it.message)).collect()
        };
        let found = fields("{{outptu}} {{metadata.}} {{metadata.a b}} {{", json!({"min": 1}));
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(found[0].starts_with("rubric has the unknown placeholder {{outptu}}: use {{input}}"));
        assert!(found[3].contains("without its `}}`") && found[4].starts_with("scale "), "{found:?}");
        assert_eq!(fields("  ", json!(null)).len(), 1);
        assert_eq!(fields(&"x".repeat(MAX_TEMPLATE_CHARS + 1), json!(null)).len(), 1);
        assert_eq!(fields(&"{{".repeat(5_000), json!(null)).len(), 1);
    }
}
