//! `loupe sessions`: sessions, which group the traces of a conversation.

use api::client::calls::{self, SessionFilter};
use clap::{Args, Subcommand};

use super::period::PeriodArgs;
use crate::{
    commands::listing::{PageArgs, list},
    ctx::Ctx,
    error::Result,
    output::{Column, View, cell},
};

/// Verbs of `sessions`.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List sessions, sorted by their last trace, newest first
    #[command(
        before_help = "Examples:\n  loupe sessions list --from -1h\n  loupe sessions list --user u-42 --all -o ndjson\n  loupe traces list --filter \"session:$(loupe sessions list -L 1 -o id)\"\n"
    )]
    List(SessionListArgs),
}

/// Arguments of `sessions list`.
#[derive(Debug, Args)]
pub struct SessionListArgs {
    /// Only of this user of the application
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    page: PageArgs,
}

const SESSION_VIEW: View = View {
    plural: "sessions",
    id: "session_id",
    columns: &[
        Column::new("LAST", "last_seen", |row, style| cell::time(row, "last_seen", style)),
        Column::new("FIRST", "first_seen", |row, style| cell::time(row, "first_seen", style)).optional(),
        Column::new("TRACES", "trace_count", |row, style| cell::count(row, "trace_count", style)).right(),
        Column::new("ERRORS", "error_count", |row, style| cell::count(row, "error_count", style)).right(),
        Column::new("TOKENS", "total_token_count", |row, style| cell::count(row, "total_token_count", style))
            .right()
            .optional(),
        Column::new("COST", "cost", |row, style| cell::money(row, "cost", style)).right().optional(),
        Column::new("SESSION", "session_id", |row, style| cell::text(row, "session_id", style)).elastic(),
    ],
    fields: &[
        "session_id",
        "trace_count",
        "error_count",
        "first_seen",
        "last_seen",
        "cost",
        "total_token_count",
    ],
};

/// Runs a verb of `sessions`.
pub async fn run(ctx: &mut Ctx, command: SessionCommand) -> Result {
    let SessionCommand::List(args) = command;
    ctx.out.check(&SESSION_VIEW)?;
    let (from, to) = args.period.resolve()?;
    let (client, project_id) = ctx.client_and_project().await?;
    let filter = SessionFilter { project_id, user_id: args.user, from, to };
    list(ctx, &client, &SESSION_VIEW, args.page, "no sessions", |page| calls::sessions(&filter, page)).await
}
