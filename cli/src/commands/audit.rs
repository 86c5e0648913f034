//! `loupe audit`: the audit log.

use api::client::calls::{self, AuditFilter};
use clap::{Args, Subcommand};
use serde_json::Value;
use uuid::Uuid;

use super::period::PeriodArgs;
use crate::{
    commands::listing::{PageArgs, list},
    ctx::Ctx,
    error::Result,
    output::{
        Column, View,
        cell::{self, Cell, Style, Tone},
    },
};

/// Verbs of `audit`.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List audit records, newest first; requires the role owner
    #[command(
        before_help = "Examples:\n  loupe audit list --from yesterday\n  loupe audit list --action api_key.create --actor ann@example.com\n  loupe audit list --all -o ndjson > audit.ndjson\n"
    )]
    List(AuditListArgs),
}

/// Arguments of `audit list`.
#[derive(Debug, Args)]
pub struct AuditListArgs {
    /// Only records of this action, such as api_key.create
    #[arg(long)]
    action: Option<String>,
    /// Only records of this actor: a session's subject or a key's id
    #[arg(long)]
    actor: Option<String>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    page: PageArgs,
}

const AUDIT_VIEW: View = View {
    plural: "audit_log",
    id: "id",
    columns: &[
        Column::new("TIME", "created_at", |row, style| cell::time(row, "created_at", style)),
        Column::new("ACTION", "action", |row, style| cell::text(row, "action", style)),
        Column::new("ACTOR", "actor.id", |row, style| member(row, "actor", "id", style)).elastic(),
        Column::new("BY", "actor.kind", |row, style| member(row, "actor", "kind", style)).optional(),
        Column::new("TARGET", "target.id", |row, style| member(row, "target", "id", style)).elastic(),
        Column::new("RESULT", "result", result).elastic(),
        Column::new("DETAIL", "detail", |row, style| cell::text(row, "detail", style)).elastic().wide(),
        Column::new("REQUEST", "request_id", |row, style| cell::text(row, "request_id", style)).wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)).wide(),
    ],
    fields: &["id", "action", "actor", "target", "result", "request_id", "detail", "created_at"],
};

/// Returns the cell of a nested member; ids are shortened.
fn member(row: &Value, object: &str, name: &str, style: &Style) -> Cell {
    let Some(object) = row.get(object) else { return cell::none(style) };
    let is_id = object.get(name).and_then(Value::as_str).is_some_and(|text| text.parse::<Uuid>().is_ok());
    if is_id { cell::short_id(object, name, style) } else { cell::text(object, name, style) }
}

fn result(row: &Value, style: &Style) -> Cell {
    let result = cell::text(row, "result", style).text;
    let tone = if result == "ok" { Tone::Plain } else { Tone::Bad };
    Cell::toned(result, tone)
}

/// Runs a verb of `audit`.
pub async fn run(ctx: &mut Ctx, command: AuditCommand) -> Result {
    let AuditCommand::List(args) = command;
    ctx.out.check(&AUDIT_VIEW)?;
    let (from, to) = args.period.resolve()?;
    let filter = AuditFilter { action: args.action, actor: args.actor, from, to };
    let client = ctx.client()?;
    list(ctx, &client, &AUDIT_VIEW, args.page, "no records", |page| calls::audit_log(&filter, page)).await
}
