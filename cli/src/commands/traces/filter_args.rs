//! Flags that select traces; each corresponds to a term of the filter grammar.

use api::{
    filter::{Field, Filter},
    trace_filter::{Flag, FlagValue, TraceFilter, ValueType},
};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::{
    ctx::Ctx,
    env::now,
    error::{CliError, Result},
};

/// The heading of these flags in the help.
const HELP_HEADING: &str = "Which traces";
/// The flag that takes a whole filter.
const FILTER_FLAG: &str = "filter";

/// Flags that select traces: `--filter` and those of the table of trace filters.
#[derive(Clone, Debug, Default)]
pub struct TraceFilterArgs {
    filter: Option<String>,
    terms: Vec<FlagTerm>,
}

/// A flag that was given, as a term of the filter grammar.
#[derive(Clone, Debug)]
struct FlagTerm {
    flag: &'static str,
    field: &'static str,
    value: String,
}

impl TraceFilterArgs {
    /// Builds and validates the filter from the flags, before any request.
    pub fn resolve(&self, ctx: &mut Ctx) -> Result<Filter> {
        let now = now();
        let mut filter = match &self.filter {
            Some(text) => Filter::parse(text, &ctx.settings.filters, &now)?,
            None => Filter::default(),
        };
        for FlagTerm { flag, field, value } in &self.terms {
            filter.set(field, value, &now).map_err(|why| CliError::usage(format!("--{flag}: {why}")))?;
        }
        if let Some(note) = filter.note() {
            ctx.out.note(&format!("note: {note}"));
        }
        Ok(filter)
    }
}

// Not derived: the flags are rows of the table of trace filters.
impl Args for TraceFilterArgs {
    fn augment_args(command: Command) -> Command {
        let filter = Arg::new(FILTER_FLAG)
            .long(FILTER_FLAG)
            .value_name("FILTER")
            .help("Terms such as `error:true latency:>=2s from:-1h`, see `loupe help filters`");
        let flags = flags().map(|(field, flag)| {
            let arg = arg(flag).allow_hyphen_values(field.filter.value_type == ValueType::Time);
            // Fixed values of one filter contradict each other.
            let others = field.term.flags.iter().skip_while(|it| it.name != flag.name).skip(1);
            let fixed = others.filter(|it| matches!(it.value, FlagValue::Fixed(_)));
            arg.conflicts_with_all(fixed.map(|it| it.name))
        });
        command.next_help_heading(HELP_HEADING).arg(filter).args(flags)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for TraceFilterArgs {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let filter = matches.get_one::<String>(FILTER_FLAG).cloned();
        let terms = flags().filter_map(|(field, flag)| {
            let value = match flag.value {
                FlagValue::Fixed(value) => matches.get_flag(flag.name).then(|| value.to_owned())?,
                FlagValue::Given { prefix, .. } => {
                    format!("{prefix}{}", matches.get_one::<String>(flag.name)?)
                }
            };
            Some(FlagTerm { flag: flag.name, field: field.term.name, value })
        });
        Ok(Self { filter, terms: terms.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns all flags with their fields, in the order of the table.
fn flags() -> impl Iterator<Item = (Field, &'static Flag)> {
    let fields = TraceFilter::ALL.iter().filter_map(|it| Field::of(*it));
    fields.flat_map(|field| field.term.flags.iter().map(move |flag| (field, flag)))
}

fn arg(flag: &'static Flag) -> Arg {
    let arg = Arg::new(flag.name).long(flag.name).help(flag.help);
    match flag.value {
        FlagValue::Fixed(_) => arg.action(ArgAction::SetTrue),
        FlagValue::Given { name, .. } => arg.value_name(name),
    }
}
