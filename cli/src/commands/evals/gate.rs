//! `--fail-under` and `--fail-on`: fail a build because of evaluations.

use clap::{Args, ValueEnum};
use present::share;
use serde_json::Value;

use super::view::text_member;
use crate::{
    error::{CliError, Result},
    exit::Exit,
};

/// Conditions under which finished evaluations make the command fail.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gate")]
pub struct GateArgs {
    /// End with code 6 if a score is below this (0.8 or 80%); waits for the result
    #[arg(long, value_name = "SCORE", value_parser = share::parse)]
    fail_under: Option<f64>,
    /// End with code 6 if a label is this (`warn` includes `fail`); waits for the result
    #[arg(long, value_enum, value_name = "LABEL")]
    fail_on: Option<FailOn>,
}

/// Values of `--fail-on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// The label `fail`.
    Fail,
    /// The labels `warn` and `fail`.
    Warn,
}

impl GateArgs {
    /// Returns whether any condition is set.
    pub fn is_set(&self) -> bool {
        self.fail_under.is_some() || self.fail_on.is_some()
    }

    /// Checks finished evaluations against the conditions. If several problems occur, the most certain
    /// decides the exit code: a bad verdict (6), then a failed evaluation (16), a label without rank (2),
    /// an unfinished evaluation (7).
    pub fn judge(&self, rows: &[Value]) -> Result {
        let failed: Vec<&Value> = rows.iter().filter(|row| text_member(row, "status") == "failed").collect();
        let unfinished: Vec<&Value> =
            rows.iter().filter(|row| !matches!(text_member(row, "status"), "failed" | "complete")).collect();
        let (mut bad, mut not_ranked) = (Vec::new(), None);
        for row in rows.iter().filter(|row| text_member(row, "status") == "complete") {
            match self.verdict(row) {
                Ok(found) => bad.extend(found),
                Err(error) => not_ranked = not_ranked.or(Some(error)),
            }
        }
        if !bad.is_empty() {
            return Err(findings_error(Exit::Failed, "do not pass", bad, rows.len()));
        }
        if !failed.is_empty() {
            let whys = failed.iter().map(|row| about(row, text_member(row, "error"))).collect();
            return Err(findings_error(Exit::EvaluationFailed, "have no score", whys, rows.len()));
        }
        if let Some(error) = not_ranked {
            return Err(error);
        }
        if !unfinished.is_empty() {
            let ids: Vec<&str> = unfinished.iter().map(|row| text_member(row, "id")).collect();
            let states = unfinished.iter().map(|row| about(row, &progress_state(row))).collect();
            let hint = format!("the evaluations continue; wait again: loupe evals wait {}", ids.join(" "));
            return Err(
                findings_error(Exit::TimedOut, "have not finished yet", states, rows.len()).hint(hint)
            );
        }
        Ok(())
    }

    /// Returns the problem of a complete evaluation, if it has one.
    fn verdict(&self, row: &Value) -> Result<Option<String>> {
        let score = row.get("score").and_then(Value::as_f64);
        if let Some(bound) = self.fail_under {
            match score {
                Some(score) if score < bound => {
                    return Ok(Some(about(row, &format!("{score} is below {bound}"))));
                }
                Some(_) => {}
                // An evaluation without a score cannot be compared with the bound, and must not pass.
                None => return Ok(Some(about(row, &format!("no score to compare with {bound}")))),
            }
        }
        match (self.fail_on, text_member(row, "label")) {
            (None, _) | (Some(_), "pass") | (Some(FailOn::Fail), "warn") => Ok(None),
            (Some(_), label @ ("warn" | "fail")) => Ok(Some(about(row, &format!("the label is {label}")))),
            (Some(_), "") => {
                Err(CliError::usage(about(row, "the evaluation has no label, which --fail-on needs"))
                    .hint("an evaluation without a label has a score; use --fail-under SCORE"))
            }
            (Some(_), label) => {
                Err(CliError::usage(about(row, &format!("--fail-on does not support the label `{label}`")))
                    .hint("custom labels have no rank; use --fail-under SCORE"))
            }
        }
    }
}

/// Formats a sentence about an evaluation, named by its id if the evaluation was not read yet.
fn about(row: &Value, what: &str) -> String {
    let name = Some(text_member(row, "metric_name")).filter(|it| !it.is_empty());
    format!("{}: {what}", name.unwrap_or_else(|| text_member(row, "id")))
}

fn progress_state(row: &Value) -> String {
    match text_member(row, "status") {
        "" => "the server did not report the progress in time".to_owned(),
        status => format!("still {status}"),
    }
}

/// Creates an error from findings: a single one is the message; several are counted in the message and
/// listed below it.
fn findings_error(exit: Exit, what: &str, findings: Vec<String>, of: usize) -> CliError {
    match findings.as_slice() {
        [one] if of == 1 => CliError::new(exit, one.clone()),
        several => {
            let mut error = CliError::new(exit, format!("{} of {of} evaluations {what}", several.len()));
            error.detail = findings;
            error
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn done(score: f64, label: &str) -> Value {
        json!({"id": "e", "metric_name": "m", "status": "complete", "score": score, "label": label})
    }

    fn exit_code(gate: &GateArgs, rows: &[Value]) -> u8 {
        gate.judge(rows).err().map_or(0, |error| error.exit.code())
    }

    #[test]
    fn score_equal_to_the_bound_passes() {
        let gate = GateArgs { fail_under: Some(0.8), fail_on: None };
        assert_eq!(exit_code(&gate, &[done(0.8, "pass"), done(0.9, "pass")]), 0);
        let error = gate.judge(&[done(0.799, "pass")]).unwrap_err();
        assert_eq!((error.exit, error.message.as_str()), (Exit::Failed, "m: 0.799 is below 0.8"));
        assert_eq!(exit_code(&gate, &[json!({"status": "complete", "score": null, "label": "pass"})]), 6);
    }

    #[test]
    fn custom_label_is_not_ranked() {
        let (fail, warn) = (
            GateArgs { fail_under: None, fail_on: Some(FailOn::Fail) },
            GateArgs { fail_under: None, fail_on: Some(FailOn::Warn) },
        );
        for (label, on_fail, on_warn) in [("pass", 0, 0), ("warn", 0, 6), ("fail", 6, 6), ("good", 2, 2)] {
            let row = [done(0.6, label)];
            assert_eq!((exit_code(&fail, &row), exit_code(&warn, &row)), (on_fail, on_warn), "{label}");
        }
    }

    #[test]
    fn bad_verdict_precedes_failed_and_unfinished_evaluations() {
        let gate = GateArgs { fail_under: Some(0.5), fail_on: None };
        let failed = json!({"metric_name": "m", "status": "failed", "error": "no key"});
        let unfinished = json!({"id": "e9", "metric_name": "m", "status": "pending"});
        let bad = done(0.1, "fail");
        assert_eq!(exit_code(&gate, &[unfinished.clone(), failed.clone(), bad]), 6);
        assert_eq!(exit_code(&gate, &[unfinished.clone(), failed.clone()]), 16);
        assert_eq!(gate.judge(&[failed]).unwrap_err().message, "m: no key");
        let error = GateArgs::default().judge(&[unfinished]).unwrap_err();
        assert_eq!(
            (error.exit, error.hint.unwrap().ends_with("loupe evals wait e9")),
            (Exit::TimedOut, true)
        );
    }

    #[test]
    fn custom_label_does_not_hide_a_bad_verdict() {
        let gate = GateArgs { fail_under: None, fail_on: Some(FailOn::Fail) };
        let (bad, own) = (done(0.1, "fail"), done(0.9, "good"));
        let failed = json!({"metric_name": "m", "status": "failed", "error": "no key"});
        let unfinished = json!({"id": "e9", "metric_name": "m", "status": "pending"});
        for (rows, code) in [
            ([bad.clone(), own.clone()], 6),
            ([own.clone(), bad], 6),
            ([own.clone(), failed.clone()], 16),
            ([failed, own.clone()], 16),
            ([own.clone(), unfinished.clone()], 2),
            ([unfinished, own], 2),
        ] {
            assert_eq!(exit_code(&gate, &rows), code, "{rows:?}");
        }
        let unlabelled = json!({"metric_name": "m", "status": "complete", "score": 0.4, "label": null});
        let error = gate.judge(&[unlabelled]).unwrap_err();
        assert_eq!(
            (error.exit, error.message.as_str()),
            (Exit::Usage, "m: the evaluation has no label, which --fail-on needs")
        );
    }
}
