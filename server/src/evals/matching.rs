//! Matches traces with rule filters. Pure.

use api::eval_rule::RuleFilter;
use entities::trace;
use sha2::{Digest, Sha256};
use uuid::Uuid;

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
