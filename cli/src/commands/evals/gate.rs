//! `--fail-under` and `--fail-on`: fail a build because of evaluations.

use clap::{Args, ValueEnum};
use present::share;
use serde_json::Value;

use super::view::word;
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
        let failed: Vec<&Value> = rows.iter().filter(|row| word(row, "status") == "failed").collect();
        let open: Vec<&Value> =
            rows.iter().filter(|row| !matches!(word(row, "status"), "failed" | "complete")).collect();
        let (mut bad, mut not_ranked) = (Vec::new(), None);
        for row in rows.iter().filter(|row| word(row, "status") == "complete") {
            match self.verdict(row) {
                Ok(found) => bad.extend(found),
                Err(error) => not_ranked = not_ranked.or(Some(error)),
            }
        }
        if !bad.is_empty() {
            return Err(told(Exit::Failed, "not good enough", bad, rows.len()));
        }
        if !failed.is_empty() {
            let whys = failed.iter().map(|row| named(row, word(row, "error"))).collect();
            return Err(told(Exit::Unjudged, "without a score", whys, rows.len()));
        }
        if let Some(error) = not_ranked {
            return Err(error);
        }
        if !open.is_empty() {
            let ids: Vec<&str> = open.iter().map(|row| word(row, "id")).collect();
            let states = open.iter().map(|row| named(row, &still(row))).collect();
            let hint = format!("they are still running; wait again: loupe evals wait {}", ids.join(" "));
            return Err(told(Exit::TimedOut, "not done yet", states, rows.len()).hint(hint));
        }
        Ok(())
    }

    /// Returns the problem of a complete evaluation, if it has one.
    fn verdict(&self, row: &Value) -> Result<Option<String>> {
        let score = row.get("score").and_then(Value::as_f64);
        if let Some(bound) = self.fail_under {
            match score {
                Some(score) if score < bound => {
                    return Ok(Some(named(row, &format!("{score} is below {bound}"))));
                }
                Some(_) => {}
                // An evaluation without a score can't be compared with the bound, and must not pass.
                None => return Ok(Some(named(row, &format!("no score to compare with {bound}")))),
            }
        }
        match (self.fail_on, word(row, "label")) {
            (None, _) | (Some(_), "pass") | (Some(FailOn::Fail), "warn") => Ok(None),
            (Some(_), label @ ("warn" | "fail")) => Ok(Some(named(row, &format!("the label is {label}")))),
            (Some(_), "") => Err(CliError::usage(named(row, "there is no label for --fail-on"))
                .hint("an evaluation without a label has a score; use --fail-under SCORE")),
            (Some(_), label) => {
                Err(CliError::usage(named(row, &format!("--fail-on does not support the label `{label}`")))
                    .hint("custom labels have no rank; use --fail-under SCORE"))
            }
        }
    }
}

/// Formats a sentence about an evaluation, named by its id if the evaluation was not read yet.
fn named(row: &Value, what: &str) -> String {
    let name = Some(word(row, "metric_name")).filter(|it| !it.is_empty());
    format!("{}: {what}", name.unwrap_or_else(|| word(row, "id")))
}

fn still(row: &Value) -> String {
    match word(row, "status") {
        "" => "the server did not report the progress in time".to_owned(),
        status => format!("still {status}"),
    }
}

/// Creates an error from findings: a single one is the message; several are counted in the message and
/// listed below it.
fn told(exit: Exit, what: &str, findings: Vec<String>, of: usize) -> CliError {
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

    fn ends(gate: &GateArgs, rows: &[Value]) -> u8 {
        gate.judge(rows).err().map_or(0, |error| error.exit.code())
    }

    #[test]
    fn the_bound_itself_passes() {
        let gate = GateArgs { fail_under: Some(0.8), fail_on: None };
        assert_eq!(ends(&gate, &[done(0.8, "pass"), done(0.9, "pass")]), 0);
        let error = gate.judge(&[done(0.799, "pass")]).unwrap_err();
        assert_eq!((error.exit, error.message.as_str()), (Exit::Failed, "m: 0.799 is below 0.8"));
        assert_eq!(ends(&gate, &[json!({"status": "complete", "score": null, "label": "pass"})]), 6);
    }

    #[test]
    fn a_label_of_its_own_is_not_ranked() {
        let (fail, warn) = (
            GateArgs { fail_under: None, fail_on: Some(FailOn::Fail) },
            GateArgs { fail_under: None, fail_on: Some(FailOn::Warn) },
        );
        for (label, on_fail, on_warn) in [("pass", 0, 0), ("warn", 0, 6), ("fail", 6, 6), ("good", 2, 2)] {
            let row = [done(0.6, label)];
            assert_eq!((ends(&fail, &row), ends(&warn, &row)), (on_fail, on_warn), "{label}");
        }
    }

    #[test]
    fn what_is_certain_goes_first() {
        let gate = GateArgs { fail_under: Some(0.5), fail_on: None };
        let failed = json!({"metric_name": "m", "status": "failed", "error": "no key"});
        let open = json!({"id": "e9", "metric_name": "m", "status": "pending"});
        let bad = done(0.1, "fail");
        assert_eq!(ends(&gate, &[open.clone(), failed.clone(), bad]), 6);
        assert_eq!(ends(&gate, &[open.clone(), failed.clone()]), 16);
        assert_eq!(gate.judge(&[failed]).unwrap_err().message, "m: no key");
        let error = GateArgs::default().judge(&[open]).unwrap_err();
        assert_eq!(
            (error.exit, error.hint.unwrap().ends_with("loupe evals wait e9")),
            (Exit::TimedOut, true)
        );
    }

    #[test]
    fn a_label_of_its_own_hides_no_bad_verdict() {
        let gate = GateArgs { fail_under: None, fail_on: Some(FailOn::Fail) };
        let (bad, own) = (done(0.1, "fail"), done(0.9, "good"));
        let failed = json!({"metric_name": "m", "status": "failed", "error": "no key"});
        let open = json!({"id": "e9", "metric_name": "m", "status": "pending"});
        for (rows, code) in [
            ([bad.clone(), own.clone()], 6),
            ([own.clone(), bad], 6),
            ([own.clone(), failed.clone()], 16),
            ([failed, own.clone()], 16),
            ([own.clone(), open.clone()], 2),
            ([open, own], 2),
        ] {
            assert_eq!(ends(&gate, &rows), code, "{rows:?}");
        }
        let unlabelled = json!({"metric_name": "m", "status": "complete", "score": 0.4, "label": null});
        let error = gate.judge(&[unlabelled]).unwrap_err();
        assert_eq!((error.exit, error.message.as_str()), (Exit::Usage, "m: there is no label for --fail-on"));
    }
}
