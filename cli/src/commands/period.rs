//! `--from` and `--to`, for every command that selects a period.

use api::{
    Timestamp,
    filter::when::{Clock, instant},
};
use clap::Args;

use crate::{
    env::now,
    error::{CliError, Result},
};

/// A period, both ends included.
#[derive(Clone, Debug, Default, Args)]
pub struct PeriodArgs {
    /// At or after: -15m, yesterday, 2026-11-21, RFC 3339
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// At or before
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
}

impl PeriodArgs {
    /// Parses both times, before any request.
    pub fn resolve(&self) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
        let (from, to) = (moment("--from", self.from.as_deref())?, moment("--to", self.to.as_deref())?);
        match (from, to) {
            (Some(from), Some(to)) if to < from => {
                Err(CliError::usage(format!("--to: {to} is before --from")))
            }
            both => Ok(both),
        }
    }
}

/// Parses the time of a flag, such as `-15m`, `yesterday` or a date.
fn moment(flag: &str, text: Option<&str>) -> Result<Option<Timestamp>> {
    let clock = Clock::of(&now());
    let read = text.map(|text| instant(text, &clock)).transpose();
    read.map_err(|why| {
        CliError::usage(format!("{flag}: {why}"))
            .hint(format!("for example {flag} -15m, {flag} yesterday or {flag} 2026-11-21T10:00Z"))
    })
}
