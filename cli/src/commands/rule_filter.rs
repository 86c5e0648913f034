//! The filter of eval rules and failure rules: its flags and its display.

use api::eval_rule::RuleFilter;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::output::cell;

/// Filter of an eval rule or a failure rule, as flags.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which traces")]
pub struct RuleFilterArgs {
    /// Only traces of this model
    #[arg(long, value_name = "MODEL")]
    filter_model: Option<String>,
    /// Only traces with this tag: KEY, or KEY:VALUE
    #[arg(long, value_name = "TAG")]
    filter_tag: Option<String>,
    /// Only traces of this name
    #[arg(long, value_name = "NAME")]
    filter_name: Option<String>,
    /// Only traces with an error
    #[arg(long, conflicts_with = "no_error")]
    error: bool,
    /// Only traces without an error
    #[arg(long)]
    no_error: bool,
    /// Only traces with a span of this type, such as llm, tool, retrieval
    #[arg(long, value_name = "TYPE")]
    span_type: Option<String>,
}

impl RuleFilterArgs {
    /// Returns whether any flag is set.
    pub fn is_given(&self) -> bool {
        let Self { filter_model, filter_tag, filter_name, error, no_error, span_type } = self;
        *error
            || *no_error
            || [filter_model, filter_tag, filter_name, span_type].iter().any(|it| it.is_some())
    }

    /// Applies the flags to an existing filter, or to an empty one. `none` removes a part of an existing
    /// filter; in a new filter it is an ordinary value.
    pub fn apply_to(&self, old: Option<RuleFilter>) -> RuleFilter {
        let changes = old.is_some();
        let old = old.unwrap_or_default();
        let text = |new: &Option<String>, old: Option<String>| match new.as_deref() {
            Some("none") if changes => None,
            Some(new) => Some(new.to_owned()),
            None => old,
        };
        RuleFilter {
            model: text(&self.filter_model, old.model),
            tag: text(&self.filter_tag, old.tag),
            name: text(&self.filter_name, old.name),
            error: if self.error || self.no_error { Some(self.error) } else { old.error },
            span_type: text(&self.span_type, old.span_type),
            unknown: old.unknown,
        }
    }
}

/// Formats the filter of a rule as terms; `all` for an empty filter.
pub fn filter_terms(rule: &Value) -> String {
    let Some(filter) = rule.get("filter") else { return String::new() };
    match RuleFilter::deserialize(filter) {
        Ok(filter) if filter.is_empty() => "all".to_owned(),
        Ok(filter) => filter.to_string(),
        Err(_) => cell::raw(Some(filter)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_filter_keeps_fields_without_flags() {
        let nothing = RuleFilterArgs {
            filter_model: None,
            filter_tag: None,
            filter_name: None,
            error: false,
            no_error: false,
            span_type: None,
        };
        let old = RuleFilter { model: Some("m".into()), error: Some(true), ..RuleFilter::default() };
        assert!(!nothing.is_given());
        assert_eq!(nothing.apply_to(Some(old.clone())), old);
        let given = RuleFilterArgs {
            filter_model: Some("none".into()),
            filter_tag: Some("env:prod".into()),
            no_error: true,
            ..nothing
        };
        let new = RuleFilter { tag: Some("env:prod".into()), error: Some(false), ..RuleFilter::default() };
        assert!(given.is_given());
        assert_eq!(given.apply_to(Some(old)), new);
        let unfiltered = RuleFilter { model: Some("none".into()), ..new };
        assert_eq!(given.apply_to(None), unfiltered, "`none` is an ordinary value of a new filter");
    }
}
