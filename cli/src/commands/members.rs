//! `loupe members`: members and their seats. Every command requires a session token.

use api::client::{Auth, Client, calls};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::{
    commands::{
        listing::{PageArgs, list},
        report,
    },
    ctx::Ctx,
    error::Result,
    find,
    output::{Column, View, cell},
    prompt,
};

/// Verbs of `members`.
#[derive(Debug, Subcommand)]
pub enum MemberCommand {
    /// List the members, including removed ones
    #[command(
        before_help = "Examples:\n  loupe members list\n  loupe members list --raw \\\n    --jq '.members[] | select(.status == \"active\") | .subject'\n"
    )]
    List,
    /// Remove a member, who loses access at once
    #[command(
        before_help = "Examples:\n  loupe members remove ann@example.com\n  loupe members remove c07b44d1 --yes\n"
    )]
    Remove(MemberArgs),
    /// Restore a removed member
    #[command(before_help = "Examples:\n  loupe members restore ann@example.com\n")]
    Restore(MemberArgs),
}

/// Argument that names a member.
#[derive(Debug, Args)]
pub struct MemberArgs {
    /// Subject of the member's tokens, id, or the last characters of the id
    member: String,
}

const MEMBER_VIEW: View = View {
    plural: "members",
    id: "id",
    columns: &[
        Column::new("SUBJECT", "subject", |row, style| cell::text(row, "subject", style)).elastic(),
        Column::new("ROLE", "role", |row, style| cell::text(row, "role", style)),
        Column::new("STATUS", "status", |row, style| cell::text(row, "status", style)),
        Column::new("FIRST SEEN", "created_at", |row, style| cell::date(row, "created_at", style)).optional(),
        Column::new("LAST SEEN", "last_seen_at", |row, style| cell::date(row, "last_seen_at", style)),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &["id", "subject", "role", "status", "created_at", "last_seen_at"],
};

/// Runs a verb of `members`.
pub async fn run(ctx: &mut Ctx, command: MemberCommand) -> Result {
    ctx.out.check(&MEMBER_VIEW)?;
    match command {
        MemberCommand::List => {
            let client = ctx.session_client("listing members")?;
            list(ctx, &client, &MEMBER_VIEW, PageArgs::whole(), "no members", calls::members).await?;
            seats(ctx, &client).await
        }
        MemberCommand::Remove(args) => remove(ctx, &args.member).await,
        MemberCommand::Restore(args) => restore(ctx, &args.member).await,
    }
}

/// Prints the number of used seats below a table, if the plan has a limit.
async fn seats(ctx: &mut Ctx, client: &Client) -> Result {
    if !ctx.out.format.is_table() || ctx.global.quiet {
        return Ok(());
    }
    let me = client.call(&calls::me().with(Auth::SessionOnly)).await?;
    if let Some(limit) = me.limits.members {
        ctx.out.note(&format!("{} of {limit} seats used (plan {})", me.usage.members, me.tenant.plan));
    }
    Ok(())
}

async fn remove(ctx: &mut Ctx, wanted: &str) -> Result {
    prompt::require_answer(ctx)?;
    let client = ctx.session_client("removing a member")?;
    if ctx.global.dry_run
        && let Ok(id) = wanted.parse()
    {
        return ctx.show_call(&calls::remove_member(id));
    }
    let member = find::member(&client, wanted).await?;
    let what = format!(
        "This removes {} ({}), who loses access at once, and frees the seat.",
        member.subject, member.role
    );
    prompt::confirm(ctx, &what, &member.subject).await?;
    if ctx.write(&client, &calls::remove_member(member.id)).await?.is_none() {
        return Ok(());
    }
    let document = json!({ "id": member.id, "subject": member.subject, "status": "removed" });
    report(ctx, &format!("removed {}", member.subject), &member.id.to_string(), document)
}

async fn restore(ctx: &mut Ctx, wanted: &str) -> Result {
    let client = ctx.session_client("restoring a member")?;
    if ctx.global.dry_run
        && let Ok(id) = wanted.parse()
    {
        return ctx.show_call(&calls::restore_member(id));
    }
    let member = find::member(&client, wanted).await?;
    let Some(restored) = ctx.write(&client, &calls::restore_member(member.id)).await? else {
        return Ok(());
    };
    report(ctx, &format!("{} is a member again", member.subject), &member.id.to_string(), restored)
}
