//! Matches traces with rule filters, and derives labels from scores. Pure.

use api::eval_rule::RuleFilter;
use entities::trace;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Lowest score with the label `pass`, unless the configuration sets another.
const DEFAULT_THRESHOLD: f64 = 0.7;
/// Width of the range below it with the label `warn`.
const WARN_WIDTH: f64 = 0.2;
/// Tolerance of comparisons with a bound: sums of tenths may differ slightly from 0.7.
const SCORE_TOLERANCE: f64 = 1e-9;

/// Returns the label of a score.
pub fn label(score: f64, config: &Map<String, Value>) -> &'static str {
    let threshold = config.get("threshold").and_then(Value::as_f64).unwrap_or(DEFAULT_THRESHOLD);
    if score >= threshold - SCORE_TOLERANCE {
        "pass"
    } else if score >= threshold - WARN_WIDTH - SCORE_TOLERANCE {
        "warn"
    } else {
        "fail"
    }
}

/// Whether a sample of this rate contains a trace. Depends only on the trace's ID, so that the result
/// is the same each time, and for every rule.
pub fn sampled(trace: Uuid, rate: f64) -> bool {
    if rate >= 1.0 {
        return true;
    }
    let digest = Sha256::digest(trace.as_bytes());
    let place = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    // A double has 53 bits of precision.
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    let place = (place >> 11) as f64 / (1_u64 << 53) as f64;
    place < rate
}

/// Returns why a filter does not match a trace; `None` if it matches. `has_span` tells whether the
/// trace has a span of a type.
pub fn unselected(
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
        let (asked, has) = if error { ("with", "none") } else { ("without", "one") };
        return Some(format!("the filter requires traces {asked} an error, and this trace has {has}"));
    }
    if let Some(tag) = tag.as_deref().filter(|it| !tagged(trace, it)) {
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
fn tagged(trace: &trace::Model, tag: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn config(threshold: f64) -> Map<String, Value> {
        Map::from_iter([("threshold".to_owned(), threshold.into())])
    }

    #[test]
    fn label_of_score_follows_threshold() {
        let usual = Map::new();
        for (score, word) in
            [(1.0, "pass"), (0.7, "pass"), (0.69, "warn"), (0.5, "warn"), (0.49, "fail"), (0.0, "fail")]
        {
            assert_eq!(label(score, &usual), word, "{score}");
        }
        assert_eq!(label(0.1 + 0.2, &config(0.3)), "pass");
        assert_eq!(label(0.7 - 0.1 - 0.1, &usual), "warn");
        assert_eq!(
            (label(1.0, &config(1.0)), label(0.8, &config(1.0)), label(0.7, &config(1.0))),
            ("pass", "warn", "fail")
        );
        assert_eq!(label(0.0, &config(0.0)), "pass");
    }

    #[test]
    fn sample_has_its_share_and_is_stable() {
        let ids: Vec<Uuid> = (0..20_000_u128).map(|it| Uuid::from_u128(it * 7_919)).collect();
        for rate in [0.0, 0.01, 0.25, 0.9, 1.0] {
            let taken = ids.iter().filter(|it| sampled(**it, rate)).count();
            let expected = rate * ids.len() as f64;
            assert!((taken as f64 - expected).abs() <= 250.0, "{rate}: {taken}");
            // A smaller sample is a subset of a larger one.
            assert!(ids.iter().all(|it| !sampled(*it, rate) || sampled(*it, 1.0)));
        }
        assert!(ids.iter().filter(|it| sampled(**it, 0.1)).all(|it| sampled(*it, 0.2)));
    }
}
