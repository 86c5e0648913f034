//! The filters of eval rules and failure rules: validates them, and matches traces with them. Pure.

use api::eval_rule::RuleFilter;
use entities::trace;
use store::row_text::MAX_LABEL;

use crate::error::Problem;

/// Maximum length of a text in a filter, in characters: a key and a value of a tag, and the colon.
const MAX_TEXT_CHARS: usize = 2 * MAX_LABEL + 1;

/// Validates a filter.
///
/// # Errors
///
/// Fails with `validation_failed`.
pub fn validate(filter: &RuleFilter) -> Result<(), Problem> {
    let RuleFilter { model, tag, name, error: _, span_type, unknown } = filter;
    if let Some(member) = unknown.keys().next() {
        let message = "is not a filter of rules; filters: model, tag, name, error, span_type";
        return Err(Problem::field(format!("filter.{member}"), message));
    }
    for (member, text) in [("model", model), ("tag", tag), ("name", name), ("span_type", span_type)] {
        let is_valid =
            |it: &String| !it.is_empty() && !it.contains('\0') && it.chars().count() <= MAX_TEXT_CHARS;
        if !text.as_ref().is_none_or(is_valid) {
            let message = format!("must have 1 to {MAX_TEXT_CHARS} characters, none of them NUL");
            return Err(Problem::field(format!("filter.{member}"), message));
        }
    }
    Ok(())
}

/// Returns why a filter does not match a trace; `None` if it matches. `has_span` tells whether the
/// trace has a span of a type.
pub fn mismatch_reason(
    filter: &RuleFilter,
    trace: &trace::Model,
    has_span: impl FnOnce(&str) -> bool,
) -> Option<String> {
    let RuleFilter { model, tag, name, error, span_type, unknown: _ } = filter;
    if let Some(model) = model.as_deref().filter(|it| Some(*it) != trace.model.as_deref()) {
        return Some(format!(
            "the trace's model is {}, and the filter requires `{model}`",
            shown(trace.model.as_deref())
        ));
    }
    if let Some(name) = name.as_deref().filter(|it| Some(*it) != trace.name.as_deref()) {
        return Some(format!(
            "the trace's name is {}, and the filter requires `{name}`",
            shown(trace.name.as_deref())
        ));
    }
    if let Some(error) = error.filter(|it| *it != trace.error.is_some()) {
        let (required, has) = if error { ("with", "none") } else { ("without", "one") };
        return Some(format!("the filter requires traces {required} an error, and this trace has {has}"));
    }
    if let Some(tag) = tag.as_deref().filter(|it| !has_tag(trace, it)) {
        return Some(format!("the trace has no tag `{tag}`, which the filter requires"));
    }
    if let Some(kind) = span_type.as_deref().filter(|it| !has_span(it)) {
        return Some(format!("the trace has no span of type `{kind}`, which the filter requires"));
    }
    None
}

fn shown(text: Option<&str>) -> String {
    text.map_or_else(|| "unknown".to_owned(), |it| format!("`{it}`"))
}

/// Whether a trace has a tag: `key` with any value, or `key:value`.
fn has_tag(trace: &trace::Model, tag: &str) -> bool {
    let Some(tags) = trace.tags.as_deref() else { return false };
    let Ok(tags) = serde_json::from_str::<std::collections::BTreeMap<String, String>>(tags) else {
        return false;
    };
    tags.iter().any(|(key, value)| match tag.strip_prefix(key.as_str()) {
        Some("") => true,
        Some(rest) => rest.strip_prefix(':') == Some(value.as_str()),
        None => false,
    })
}
