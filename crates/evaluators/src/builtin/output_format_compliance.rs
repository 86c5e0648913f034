//! Evaluates whether a text has the required format.

mod format;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Map;

use self::format::{Format, FormatOptions};
use crate::{
    budget,
    code::{CodeConfig, CodeEvaluator, EvaluatorCode},
    config::{ConfigProblem, SharedOptions, below, one_problem, schema_of},
    definition::{Definition, Method},
    pattern::MAX_COMPILED_BYTES_TOGETHER,
    subject::Subject,
    target::Target,
    verdict::{Measurement, NotEvaluated},
};

/// The definition of the evaluator `output_format_compliance`.
pub static DEFINITION: Definition = Definition {
    name: "output_format_compliance",
    display_name: "Format Compliance",
    tags: &["tool-use", "quality"],
    description: "Whether the output, as a whole but for blanks around it, has the form that `format` names: \
                  1.0 if it has, 0.0 if not. JSON (RFC 8259), YAML 1.2, well-formed XML 1.0, CSV (RFC 4180), a \
                  Markdown table (GFM), a regular expression or a length; several by `all_of`, where 1.0 needs all.",
    version: 2,
    method: Method::Code(EvaluatorCode::of::<FormatComplianceConfig>()),
};

/// Maximum number of formats in one config.
const MAX_FORMATS: usize = 20;

#[derive(Deserialize, JsonSchema)]
struct FormatComplianceConfig {
    #[serde(default)]
    target: Target,
    /// Several formats, each with its options; instead of `format`.
    #[schemars(length(min = 1, max = MAX_FORMATS))]
    all_of: Option<Vec<FormatOptions>>,
    #[serde(flatten)]
    single: Option<FormatOptions>,
}

impl CodeConfig for FormatComplianceConfig {
    fn compile(self) -> Result<impl CodeEvaluator + 'static, Vec<ConfigProblem>> {
        let single = self.single.unwrap_or_default();
        let formats = match (single.has_format(), self.all_of) {
            (true, Some(_)) => {
                return Err(one_problem(
                    "all_of",
                    "can't be combined with format: put all formats into all_of",
                ));
            }
            (false, None) => return Err(one_problem("format", "is required unless all_of is set")),
            (true, None) => vec![single.compile(schema_of::<SharedOptions>())?],
            (false, Some(all)) => {
                if let Some(other) = single.own_option() {
                    return Err(one_problem(
                        other,
                        "is an option of one format: put it into all_of, beside its format",
                    ));
                }
                let compile = |(index, it): (usize, FormatOptions)| {
                    it.compile(Map::new()).map_err(|problems| below(&format!("all_of.{index}"), problems))
                };
                all.into_iter().enumerate().map(compile).collect::<Result<Vec<_>, _>>()?
            }
        };
        if formats.iter().map(Format::bytes).sum::<usize>() > MAX_COMPILED_BYTES_TOGETHER {
            let message = "has regular expressions that grow too large together: use fewer, or repeat less";
            return Err(one_problem("all_of", message));
        }
        Ok(FormatCompliance { formats, target: self.target })
    }
}

struct FormatCompliance {
    formats: Vec<Format>,
    target: Target,
}

impl CodeEvaluator for FormatCompliance {
    fn evaluate(&self, subject: &Subject) -> Result<Measurement, NotEvaluated> {
        let text = self.target.bounded_text(subject)?;
        let mut violations = Vec::new();
        for format in &self.formats {
            budget::poll();
            if let Err(why) = format.check(text) {
                violations.push(format!("{}: {why}", format.violation()));
            }
        }
        if violations.is_empty() {
            let names: Vec<&str> = self.formats.iter().map(Format::name).collect();
            return Ok(Measurement::good(format!("the text has the format {}", names.join(", "))));
        }
        Ok(Measurement::bad(violations.join("; ")))
    }

    fn bytes(&self) -> usize {
        self.formats.iter().map(Format::bytes).sum()
    }
}

#[cfg(test)]
mod tests;
