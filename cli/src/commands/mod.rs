//! The commands: one file or folder for each noun, one function for each verb, with its arguments beside
//! it.

pub mod api;
pub mod audit;
pub mod auth;
pub mod between;
pub mod completion;
pub mod config;
pub mod console;
pub mod context;
pub mod credentials;
pub mod doctor;
pub mod document;
pub mod evals;
pub mod evaluators;
pub mod feedback;
pub mod help;
pub mod keys;
pub mod listing;
pub mod man;
pub mod members;
pub mod metrics;
pub mod projects;
pub mod rules;
pub mod secret_file;
pub mod sessions;
pub mod spans;
pub mod traces;

use ::api::text::printable;
use serde_json::Value;

use crate::{args::Command, ctx::Ctx, error::Result, output::Format};

/// Runs a command.
pub async fn run(ctx: &mut Ctx, command: Command) -> Result {
    match command {
        Command::Auth(command) => auth::run(ctx, command).await,
        Command::Context(command) => context::run(ctx, command).await,
        Command::Config(command) => config::run(ctx, command).await,
        Command::Keys(command) => keys::run(ctx, command).await,
        Command::Projects(command) => projects::run(ctx, command).await,
        Command::Members(command) => members::run(ctx, command).await,
        Command::Credentials(command) => credentials::run(ctx, command).await,
        Command::Sessions(command) => sessions::run(ctx, command).await,
        Command::Traces(command) => traces::run(ctx, command).await,
        Command::Spans(spans::Command::Search(args)) | Command::Search(args) => {
            spans::search(ctx, args).await
        }
        Command::Metrics(command) => metrics::run(ctx, command).await,
        Command::Evals(command) => evals::run(ctx, command).await,
        Command::Evaluators(command) => evaluators::run(ctx, command).await,
        Command::Rules(command) => rules::run(ctx, command).await,
        Command::Feedback(command) => feedback::run(ctx, command).await,
        Command::Audit(command) => audit::run(ctx, command).await,
        Command::Api(args) => api::run(ctx, args).await,
        Command::Console(args) => console::run(ctx, args).await,
        Command::Doctor(args) => doctor::run(ctx, args).await,
        Command::Completion(args) => completion::run(ctx, &args),
        Command::Man(args) => man::run(ctx, &args),
        Command::Help(args) => help::run(ctx, &args),
    }
}

/// Reports a change without further output: a sentence on a terminal, otherwise a document or the id of
/// the changed resource.
fn report(ctx: &mut Ctx, sentence: &str, id: &str, document: Value) -> Result {
    match ctx.out.format {
        Format::Json | Format::Ndjson => ctx.out.json(&document),
        Format::Id => ctx.out.write(&format!("{}\n", printable(id))),
        _ => {
            ctx.out.note(sentence);
            Ok(())
        }
    }
}
