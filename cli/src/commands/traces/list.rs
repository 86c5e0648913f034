//! `loupe traces list`.

use api::{
    client::calls::Page,
    page::{DEFAULT_LIMIT, MAX_LIMIT},
};
use clap::Args;
use serde_json::{Value, json};

use super::{VIEW, filter_args::FilterArgs};
use crate::{commands::next_cursor, ctx::Ctx, error::Result, find, output::Format};

/// Arguments of `traces list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Number of traces
    #[arg(short = 'L', long, value_name = "N", default_value_t = DEFAULT_LIMIT, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// All of them, page by page
    #[arg(long)]
    all: bool,
    /// Go on where a list ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

/// Lists traces. Formats of one row a line are written as pages come, the others at the end.
pub async fn run(ctx: &mut Ctx, args: ListArgs) -> Result {
    ctx.out.check(&VIEW)?;
    let filter = args.filter.resolve(ctx)?;
    let client = ctx.client()?;
    let project = find::current_project(&client, &ctx.settings).await?;
    let streams = matches!(ctx.out.format, Format::Tsv | Format::Csv | Format::Ndjson | Format::Id);

    let mut left = if args.all { usize::MAX } else { args.limit as usize };
    let mut page = Page { limit: None, cursor: args.cursor };
    let mut merged: Vec<Value> = Vec::new();
    let mut shown = 0;
    let mut document;
    loop {
        let limit = u32::try_from(left).unwrap_or(MAX_LIMIT).min(MAX_LIMIT);
        page.limit = Some(limit);
        document = client.value(&super::page(ctx, &filter, project, &page)).await?;
        page.cursor = next_cursor(&document);
        let rows = match document.get_mut(VIEW.plural).map(Value::take) {
            Some(Value::Array(rows)) => rows,
            _ => Vec::new(),
        };
        left = left.saturating_sub(rows.len());
        shown += rows.len();
        if streams {
            ctx.out.list(&VIEW, json!({ VIEW.plural: rows }))?;
        } else {
            merged.extend(rows);
        }
        if left == 0 || page.cursor.is_none() {
            break;
        }
    }
    if !streams {
        document[VIEW.plural] = Value::Array(merged);
        ctx.out.list(&VIEW, document)?;
    }
    match &page.cursor {
        _ if shown == 0 && filter.is_empty() => ctx.out.note("no traces"),
        _ if shown == 0 => ctx.out.note("nothing matches"),
        Some(cursor) => {
            ctx.out.note(&format!("{shown} shown, more on the server (--all, or --cursor {cursor})"))
        }
        None => {}
    }
    Ok(())
}
