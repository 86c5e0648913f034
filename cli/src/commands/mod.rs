//! The commands: a noun a file or folder, a verb a function, each with its arguments beside it.

pub mod api;
pub mod auth;
pub mod completion;
pub mod console;
pub mod context;
pub mod doctor;
pub mod help;
pub mod keys;
pub mod man;
pub mod projects;
pub mod secret_file;
pub mod traces;

use ::api::client::{Call, Client};
use serde_json::{Value, json};

use crate::{args::Command, ctx::Ctx, error::Result};

/// Runs a command.
pub async fn run(ctx: &mut Ctx, command: Command) -> Result {
    match command {
        Command::Auth(command) => auth::run(ctx, command).await,
        Command::Context(command) => context::run(ctx, command).await,
        Command::Keys(command) => keys::run(ctx, command).await,
        Command::Projects(command) => projects::run(ctx, command).await,
        Command::Traces(command) => traces::run(ctx, command).await,
        Command::Api(args) => api::run(ctx, args).await,
        Command::Console(args) => console::run(ctx, args).await,
        Command::Doctor(args) => doctor::run(ctx, args).await,
        Command::Completion(args) => completion::run(ctx, &args),
        Command::Man(args) => man::run(ctx, &args),
        Command::Help(args) => help::run(ctx, &args),
    }
}

/// Reads a list to its end and merges the pages into one document, in the shape of a page.
async fn all_pages<T>(
    ctx: &mut Ctx,
    client: &Client,
    plural: &str,
    page: impl Fn(Option<String>) -> Call<T>,
) -> Result<Value> {
    let mut rows: Vec<Value> = Vec::new();
    let mut cursor = None;
    loop {
        let mut document = client.value(&page(cursor)).await?;
        if let Some(Value::Array(more)) = document.get_mut(plural).map(Value::take) {
            rows.extend(more);
        }
        cursor = next_cursor(&document);
        if cursor.is_none() {
            if rows.is_empty() {
                ctx.out.note(&format!("no {plural}"));
            }
            document[plural] = Value::Array(rows);
            document["has_more"] = json!(false);
            document["next_cursor"] = Value::Null;
            return Ok(document);
        }
    }
}

/// Where a list goes on, if it does.
fn next_cursor(document: &Value) -> Option<String> {
    let more = document.get("has_more").and_then(Value::as_bool).unwrap_or_default();
    document.get("next_cursor").and_then(Value::as_str).filter(|_| more).map(str::to_owned)
}
