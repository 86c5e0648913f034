//! The filter line of evaluations: `metric:faithfulness label:fail score:<0.5 from:-1h`.

use api::{
    eval::EvaluationFilter,
    filter::when::{Clock, instant},
};
use uuid::Uuid;

use crate::{
    ids::is_suffix,
    shell::{FilterField, LineError, check_period, parse_terms, parse_value},
};

/// Every field.
pub const FIELDS: &[FilterField] = &[
    FilterField { name: "metric", help: "metric:faithfulness, by this evaluator", values: &[] },
    FilterField {
        name: "status",
        help: "status:failed, with this status",
        values: &["pending", "running", "complete", "failed"],
    },
    FilterField {
        name: "context",
        help: "context:remediation, of traces as ingested or of remediated outputs",
        values: &["fresh", "remediation"],
    },
    FilterField { name: "label", help: "label:fail, with this label", values: &["pass", "warn", "fail"] },
    FilterField { name: "type", help: "type:rule, by judges or by code", values: &["llm", "rule"] },
    FilterField {
        name: "rule",
        help: "rule:ID, requested by this rule: its id or the end of it",
        values: &[],
    },
    FilterField { name: "trace", help: "trace:ID, of this trace, its id or the end of it", values: &[] },
    FilterField {
        name: "score",
        help: "score:<0.5, also >=0.7, 0.2..0.8 or a number",
        values: &["<0.5", "<0.7", ">=0.7"],
    },
    FilterField {
        name: "from",
        help: "from:-1h, requested at or after: -1h, today, yesterday, 2026-11-21, RFC 3339",
        values: &["-1h", "-24h", "-7d", "today", "yesterday"],
    },
    FilterField {
        name: "to",
        help: "to:yesterday, requested at or before; same forms as from",
        values: &["-1h", "today", "yesterday"],
    },
];

/// A parsed line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvalsLine {
    /// The filter of the line without the ids that are not complete.
    pub filter: EvaluationFilter,
    /// The ends of ids to resolve: the field, the position of the value, and the value.
    pub short: Vec<(&'static str, usize, String)>,
}

impl EvalsLine {
    /// Parses a line; the clock anchors times such as `-1h`. `field:*` selects everything.
    ///
    /// # Errors
    /// Fails with the position of the first wrong character, from 0, and the problem.
    pub fn parse(text: &str, clock: &Clock) -> Result<Self, LineError> {
        let mut line = Self::default();
        parse_terms(text, FIELDS, |field, at, value| line.add(field, at, value, clock))?;
        check_period(line.filter.from, line.filter.to)?;
        Ok(line)
    }

    fn add(&mut self, field: &FilterField, at: usize, value: &str, clock: &Clock) -> Result<(), String> {
        let filter = &mut self.filter;
        match field.name {
            "metric" => filter.metric_name = Some(value.to_owned()),
            "status" => filter.status = Some(parse_value(value)?),
            "context" => filter.context = Some(parse_value(value)?),
            "label" => filter.label = Some(value.to_owned()),
            "type" => filter.evaluator_type = Some(parse_value(value)?),
            "score" => (filter.min_score, filter.max_score) = score(value)?,
            "from" => filter.from = Some(instant(value, clock)?),
            "to" => filter.to = Some(instant(value, clock)?),
            name => match (value.parse::<Uuid>(), name) {
                (Ok(id), "rule") => filter.rule_id = Some(id),
                (Ok(id), _) => filter.trace_id = Some(id),
                (Err(_), _) if is_suffix(value) => self.short.push((field.name, at, value.to_owned())),
                (Err(_), _) => return Err(format!("`{value}` is neither an id nor the end of one")),
            },
        }
        Ok(())
    }
}

/// Parses the bounds of a score, both inclusive.
fn score(text: &str) -> Result<(Option<f64>, Option<f64>), String> {
    let number = |text: &str| {
        let number = text.parse::<f64>().ok().filter(|it| it.is_finite());
        number.ok_or_else(|| {
            format!("`{text}` is not a score; write score:<0.5, score:>=0.7 or score:0.2..0.8")
        })
    };
    if let Some((low, high)) = text.split_once("..") {
        let bound = |text: &str| if text.is_empty() { Ok(None) } else { number(text).map(Some) };
        let (low, high) = (bound(low)?, bound(high)?);
        return match (low, high) {
            (Some(low), Some(high)) if low > high => Err(format!("nothing is between {low} and {high}")),
            (None, None) => Err("`..` has no bound".to_owned()),
            bounds => Ok(bounds),
        };
    }
    // The bounds of the server are inclusive: an exclusive bound becomes the next number.
    for (sign, low, left_out) in
        [(">=", true, false), ("<=", false, false), (">", true, true), ("<", false, true)]
    {
        let Some(rest) = text.strip_prefix(sign) else { continue };
        let bound = number(rest)?;
        return Ok(match (low, left_out) {
            (true, false) => (Some(bound), None),
            (true, true) => (Some(bound.next_up()), None),
            (false, false) => (None, Some(bound)),
            (false, true) => (None, Some(bound.next_down())),
        });
    }
    let exact = Some(number(text)?);
    Ok((exact, exact))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::{
        Timestamp,
        eval::{EvaluationContext, EvaluationStatus, EvaluatorType},
    };

    use super::*;
    use crate::fixture::{BASE_MICROS, id};
    use present::format::Zone;

    fn parse(text: &str) -> Result<EvalsLine, (usize, String)> {
        EvalsLine::parse(text, &Clock::of(&Zone::Utc.of(Timestamp::from_micros(BASE_MICROS))))
    }

    #[test]
    fn filter_terms_become_request_parameters() {
        let line =
            parse("metric:faithfulness status:failed  context:remediation label:fail type:llm from:-1h");
        let filter = line.unwrap().filter;
        assert_eq!(filter.metric_name.as_deref(), Some("faithfulness"));
        assert_eq!(filter.status, Some(EvaluationStatus::Failed));
        assert_eq!(filter.context, Some(EvaluationContext::Remediation));
        assert_eq!(filter.evaluator_type, Some(EvaluatorType::Llm));
        assert_eq!(filter.from, Some(Timestamp::from_micros(BASE_MICROS - 3_600_000_000)));
        assert_eq!(parse("metric:* status:* context:*").unwrap(), EvalsLine::default());
    }

    #[test]
    fn bounds_of_scores_are_inclusive_on_the_wire() {
        for (text, low, high) in [
            ("0.5", Some(0.5), Some(0.5)),
            (">=0.7", Some(0.7), None),
            ("<=0.7", None, Some(0.7)),
            ("<0.5", None, Some(0.5_f64.next_down())),
            (">0.5", Some(0.5_f64.next_up()), None),
            ("0.2..0.8", Some(0.2), Some(0.8)),
            ("..0.8", None, Some(0.8)),
        ] {
            let filter = parse(&format!("score:{text}")).unwrap().filter;
            assert_eq!((filter.min_score, filter.max_score), (low, high), "{text}");
        }
        for text in ["high", "NaN", "..", "0.8..0.2", ">"] {
            assert_eq!(parse(&format!("score:{text}")).unwrap_err().0, 6, "{text}");
        }
    }

    #[test]
    fn filter_ids_are_complete_or_suffixes() {
        let whole = parse(&format!("trace:{} rule:{}", id(1), id(2).simple())).unwrap().filter;
        assert_eq!((whole.trace_id, whole.rule_id), (Some(id(1)), Some(id(2))));
        let line = parse("label:fail trace:00000024").unwrap();
        assert_eq!(line.short, [("trace", 17, "00000024".to_owned())]);
        assert_eq!(parse("trace:AB12").unwrap().short, [("trace", 6, "AB12".to_owned())]);
        assert_eq!(parse("rule:faithful").unwrap_err().0, 5);
    }

    #[test]
    fn invalid_evals_line_marks_the_error() {
        assert_eq!(parse("é metric:x").unwrap_err().0, 0);
        assert_eq!(parse("label:fail status:").unwrap_err().0, 11);
        assert_eq!(parse("status:done").unwrap_err().0, 7);
        assert_eq!(parse("label:a label:b").unwrap_err().0, 8);
        assert!(parse("score:1 metrc:x").unwrap_err().1.contains("fields: metric, status"));
        assert!(parse("from:today to:yesterday").unwrap_err().1.contains("between"));
    }
}
