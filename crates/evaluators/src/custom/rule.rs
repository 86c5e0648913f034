//! A custom code evaluator: a list of checks, combined into one verdict.
//!
//! With `all`, the score is the share of the checks that hold. The label is `pass` if all checks hold, else
//! `fail`; with a `threshold` in the config, the label follows from the score. With `any`, the score is 1.0
//! if one check holds, else 0.0.
//!
//! A check without the data that it needs is not guessed: there is no verdict, unless another check already
//! decides `any`.

mod check;
mod options;

use api::evaluator::Combine;
use serde_json::{Map, Value};

use self::check::Check;
use crate::{
    budget,
    code::{CodeEvaluator, CompiledEvaluator},
    config::{ConfigProblem, below, one_problem},
    subject::Subject,
    verdict::{Measurement, NotEvaluated},
};

/// Maximum number of checks of one evaluator.
pub const MAX_CHECKS: usize = 50;
/// Maximum size of all checks as JSON text, in bytes.
const MAX_CHECKS_BYTES: usize = 512 * 1024;
/// Maximum memory of all compiled checks of a code evaluator, in bytes.
const MAX_RULE_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of checks whose reason the reasoning gives.
const MAX_LISTED_FAILURES: usize = 10;

struct CheckList {
    checks: Vec<Check>,
    combine: Combine,
    /// The memory of the checks in bytes.
    bytes: usize,
}

/// Compiles the checks of a code evaluator. [`super::config::check`] validates `config` against the
/// evaluator's schema; only `threshold` is read here.
///
/// # Errors
/// Returns all problems, with paths such as `checks.2.pattern`.
pub fn compile(
    checks: &[Value],
    combine: Combine,
    config: &Map<String, Value>,
) -> Result<CompiledEvaluator, Vec<ConfigProblem>> {
    let one = |message: String| Err(one_problem("checks", message));
    if checks.is_empty() || checks.len() > MAX_CHECKS {
        return one(format!("must be a list of 1 to {MAX_CHECKS} checks, each an object with a kind"));
    }
    if checks.iter().map(|it| it.to_string().len()).sum::<usize>() > MAX_CHECKS_BYTES {
        return one(format!("are longer than {} KiB", MAX_CHECKS_BYTES / 1024));
    }
    let (mut compiled, mut problems, mut bytes) = (Vec::with_capacity(checks.len()), Vec::new(), 0);
    for (index, check) in checks.iter().enumerate() {
        budget::poll();
        match options::compile(check) {
            Ok(check) => {
                bytes += check.bytes();
                compiled.push(check);
            }
            Err(found) => problems.extend(below(&format!("checks.{index}"), found)),
        }
        if bytes > MAX_RULE_BYTES {
            return one(
                "grow too large together when they are compiled: use fewer or smaller expressions and \
                        schemas, or several evaluators"
                    .into(),
            );
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    CompiledEvaluator::new(Box::new(CheckList { checks: compiled, combine, bytes }), config)
}

impl CodeEvaluator for CheckList {
    fn evaluate(&self, subject: &Subject) -> Result<Measurement, NotEvaluated> {
        let (mut holding, mut failing, mut missing) = (0, Vec::new(), None);
        for (index, check) in self.checks.iter().enumerate() {
            budget::poll();
            match check.violation(subject) {
                Ok(None) => holding += 1,
                Ok(Some(why)) => failing.push(format!("check {} ({}): {why}", index + 1, check.kind)),
                Err(it) => {
                    let reason = format!("check {} ({}) is not possible: {it}", index + 1, check.kind);
                    missing = missing.or(Some(NotEvaluated::new(reason)));
                }
            }
            if holding > 0 && self.combine == Combine::Any {
                return Ok(Measurement::good(format!("check {} ({}) holds", index + 1, check.kind)));
            }
        }
        if let Some(missing) = missing {
            return Err(missing);
        }
        let (count, all) = (self.checks.len(), failing.is_empty());
        let mut reasoning = match (self.combine, all) {
            (_, true) => format!("all {count} checks hold"),
            (Combine::Any, false) => format!("none of the {count} checks holds"),
            (Combine::All, false) => format!("{holding} of {count} checks hold"),
        };
        let more = failing.len().saturating_sub(MAX_LISTED_FAILURES);
        failing.truncate(MAX_LISTED_FAILURES);
        for why in &failing {
            reasoning.push_str("; ");
            reasoning.push_str(why);
        }
        if more > 0 {
            reasoning.push_str(&format!("; and {more} more"));
        }
        Ok(match self.combine {
            Combine::All => Measurement::new(holding as f64 / count as f64, reasoning),
            Combine::Any => Measurement::bad(reasoning),
        })
    }

    fn needs_full_score(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
