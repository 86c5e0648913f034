//! Flags that select traces; each corresponds to a term of the filter grammar.

use api::filter::Filter;
use clap::Args;

use crate::{
    ctx::Ctx,
    env::now,
    error::{CliError, Result},
};

/// Flags that select traces.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which traces")]
pub struct FilterArgs {
    /// Terms such as `error:true latency:>=2s from:-1h`, see `loupe help filters`
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// Only traces of this model
    #[arg(long)]
    pub model: Option<String>,
    /// Only traces with an error
    #[arg(long, conflicts_with = "no_error")]
    pub error: bool,
    /// Only traces without an error
    #[arg(long)]
    pub no_error: bool,
    /// Only traces with a span of this failure type: timeout, rate_limit, invalid_response, context_length
    #[arg(long, value_name = "TYPE")]
    pub failure_type: Option<String>,
    /// Only traces started at or after: -15m, yesterday, 2026-11-21, RFC 3339
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// Only traces started at or before
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// Minimum latency: 250ms, 2s
    #[arg(long, value_name = "DURATION")]
    pub latency_min: Option<String>,
    /// Maximum latency
    #[arg(long, value_name = "DURATION")]
    pub latency_max: Option<String>,
    /// Minimum number of tokens
    #[arg(long, value_name = "N")]
    pub token_count_min: Option<String>,
    /// Maximum number of tokens
    #[arg(long, value_name = "N")]
    pub token_count_max: Option<String>,
    /// Only traces with this tag; may be given once
    #[arg(long, value_name = "KEY=VALUE")]
    pub tag: Option<String>,
}

impl FilterArgs {
    /// Builds and validates the filter from the flags, before any request.
    pub fn resolve(&self, ctx: &mut Ctx) -> Result<Filter> {
        let now = now();
        let mut filter = match &self.filter {
            Some(text) => Filter::parse(text, &ctx.settings.filters, &now)?,
            None => Filter::default(),
        };
        for (flag, field, value) in self.terms() {
            filter.set(field, &value, &now).map_err(|why| CliError::usage(format!("--{flag}: {why}")))?;
        }
        if let Some(note) = filter.note() {
            ctx.out.note(&format!("note: {note}"));
        }
        Ok(filter)
    }

    /// Returns flag, field and value of each given flag.
    fn terms(&self) -> Vec<(&'static str, &'static str, String)> {
        let plain = |value: &Option<String>| value.clone();
        let at_least = |value: &Option<String>| value.as_ref().map(|value| format!(">={value}"));
        let at_most = |value: &Option<String>| value.as_ref().map(|value| format!("<={value}"));
        [
            ("model", "model", plain(&self.model)),
            ("error", "error", self.error.then(|| "true".to_owned())),
            ("no-error", "error", self.no_error.then(|| "false".to_owned())),
            ("failure-type", "failure", plain(&self.failure_type)),
            ("from", "from", plain(&self.from)),
            ("to", "to", plain(&self.to)),
            ("latency-min", "latency", at_least(&self.latency_min)),
            ("latency-max", "latency", at_most(&self.latency_max)),
            ("token-count-min", "tokens", at_least(&self.token_count_min)),
            ("token-count-max", "tokens", at_most(&self.token_count_max)),
            ("tag", "tag", plain(&self.tag)),
        ]
        .into_iter()
        .filter_map(|(flag, field, value)| Some((flag, field, value?)))
        .collect()
    }
}
