//! The options of checks, one type for each kind.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check::{Bounds, Check, Condition, TextMatch};
use crate::{
    builtin::json_schema_conformance,
    config::{self, ConfigProblem, Count, TaggedOptions, one_problem, schema_of},
    form::length::LengthBounds,
    pattern::RegexOptions,
    target::Target,
};

static CHECK_OPTIONS: LazyLock<TaggedOptions<CheckOptions>> = LazyLock::new(|| TaggedOptions::new("kind"));

/// The options of a check.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum CheckOptions {
    Regex(RegexCheck),
    Contains(ContainsCheck),
    JsonSchema(json_schema_conformance::JsonSchemaConfig),
    JsonValid(JsonCheck),
    Length(LengthCheck),
    LatencyMs(NumberBounds),
    CostUsd(NumberBounds),
    TokenCount(TokenCheck),
    ToolCalled(ToolCheck),
}

/// The options of every check.
#[derive(Deserialize, JsonSchema)]
struct SharedCheckOptions {
    /// Whether the check holds if its condition is not met.
    #[serde(default)]
    negate: bool,
}

#[derive(Deserialize, JsonSchema)]
struct RegexCheck {
    #[serde(flatten)]
    regex: RegexOptions,
    #[serde(default)]
    target: Target,
}

#[derive(Deserialize, JsonSchema)]
struct ContainsCheck {
    /// The text to find.
    #[schemars(length(min = 1, max = 10_000))]
    text: String,
    /// Whether upper and lower case are equal.
    #[serde(default)]
    case_insensitive: bool,
    #[serde(default)]
    target: Target,
}

#[derive(Deserialize, JsonSchema)]
struct JsonCheck {
    /// Whether the JSON may be in a fenced block, if there is exactly one.
    #[serde(default)]
    extract: bool,
    #[serde(default)]
    target: Target,
}

#[derive(Deserialize, JsonSchema)]
struct LengthCheck {
    #[serde(flatten)]
    bounds: LengthBounds,
    #[serde(default)]
    target: Target,
}

#[derive(Deserialize, JsonSchema)]
struct NumberBounds {
    /// The lowest value.
    #[schemars(range(min = 0))]
    min: Option<f64>,
    /// The highest value.
    #[schemars(range(min = 0))]
    max: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
struct CountBounds {
    /// The lowest number.
    min: Option<Count>,
    /// The highest number.
    max: Option<Count>,
}

#[derive(Deserialize, JsonSchema)]
struct TokenCheck {
    #[serde(flatten)]
    bounds: CountBounds,
    /// The tokens that are counted.
    #[serde(default)]
    of: TokenKind,
}

/// The tokens that a check counts.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum TokenKind {
    #[default]
    Total,
    Prompt,
    Completion,
}

#[derive(Deserialize, JsonSchema)]
struct ToolCheck {
    /// The name of the tool.
    #[schemars(length(min = 1, max = 1_000))]
    name: String,
    #[serde(flatten)]
    calls: CountBounds,
}

/// Validates and compiles a check.
///
/// # Errors
/// Returns all problems, with paths below the check.
pub(super) fn compile(check: &Value) -> Result<Check, Vec<ConfigProblem>> {
    let Value::Object(options) = check else {
        return Err(one_problem("", "must be an object with a kind"));
    };
    let (kind, parsed) = CHECK_OPTIONS.parse(options, schema_of::<SharedCheckOptions>())?;
    let SharedCheckOptions { negate } = config::parse(options)?;
    let condition = match parsed {
        CheckOptions::Regex(it) => {
            let pattern = Box::new(it.regex.compile()?);
            Condition::Text(it.target, TextMatch::Regex(pattern, it.regex.pattern))
        }
        CheckOptions::Contains(it) => {
            let text = if it.case_insensitive { it.text.to_lowercase() } else { it.text };
            let test = TextMatch::Contains { text, case_insensitive: it.case_insensitive };
            Condition::Text(it.target, test)
        }
        CheckOptions::JsonSchema(it) => Condition::JsonSchema(Box::new(it.conformance()?)),
        CheckOptions::JsonValid(it) => Condition::Text(it.target, TextMatch::Json { extract: it.extract }),
        CheckOptions::Length(it) => Condition::Text(it.target, TextMatch::Length(it.bounds.checked()?)),
        CheckOptions::LatencyMs(it) => Condition::Latency(it.bounds()?),
        CheckOptions::CostUsd(it) => Condition::Cost(it.bounds()?),
        CheckOptions::TokenCount(it) => Condition::Tokens(it.bounds.bounds()?, it.of),
        CheckOptions::ToolCalled(it) => {
            let is_unbounded = it.calls.min.is_none() && it.calls.max.is_none();
            let calls = if is_unbounded { Bounds::new(Some(1.0), None) } else { it.calls.bounds() };
            Condition::Called(it.name, calls?)
        }
    };
    Ok(Check { kind, condition, negate })
}

impl NumberBounds {
    fn bounds(&self) -> Result<Bounds, Vec<ConfigProblem>> {
        Bounds::new(self.min, self.max)
    }
}

impl CountBounds {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn bounds(&self) -> Result<Bounds, Vec<ConfigProblem>> {
        Bounds::new(self.min.map(|it| it.0 as f64), self.max.map(|it| it.0 as f64))
    }
}
