//! Reads lists page by page, in the same way for every command.

use api::{
    client::{Call, Client, calls::Page},
    page::{DEFAULT_LIMIT, MAX_LIMIT},
};
use clap::Args;
use serde_json::{Value, json};

use crate::{args::positive, ctx::Ctx, error::Result, format::Format, output::View, pages::next_cursor};

/// Flags that select a part of a list.
#[derive(Clone, Debug, Args)]
pub struct PageArgs {
    /// Number of rows
    #[arg(
        short = 'L',
        long,
        value_name = "N",
        default_value_t = DEFAULT_LIMIT,
        value_parser = positive::<u32>
    )]
    limit: u32,
    /// Show all rows
    #[arg(long)]
    all: bool,
    /// Continue after the end of an earlier page
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl PageArgs {
    /// Returns the arguments for a complete list, for resources with few rows.
    pub fn whole() -> Self {
        Self { limit: DEFAULT_LIMIT, all: true, cursor: None }
    }
}

/// Reads a list and writes it. Line-based formats are written page by page, the others at the end as one
/// document in the shape of a page. `empty` is the message for an empty list.
pub async fn list<T>(
    ctx: &mut Ctx,
    client: &Client,
    view: &View,
    args: PageArgs,
    empty: &str,
    call: impl Fn(&Page) -> Call<T>,
) -> Result {
    listed(ctx, client, view, args, empty, call).await.map(drop)
}

/// Writes a list like [`list`] and returns the last page without its rows, for the other members of the
/// response.
pub async fn listed<T>(
    ctx: &mut Ctx,
    client: &Client,
    view: &View,
    args: PageArgs,
    empty: &str,
    call: impl Fn(&Page) -> Call<T>,
) -> Result<Value> {
    let streams = matches!(ctx.out.format, Format::Tsv | Format::Csv | Format::Ndjson | Format::Id);
    let mut left = if args.all { usize::MAX } else { args.limit as usize };
    let mut page = Page { limit: None, cursor: args.cursor };
    let mut merged: Vec<Value> = Vec::new();
    let mut shown = 0;
    let mut document;
    loop {
        page.limit = Some(u32::try_from(left).unwrap_or(MAX_LIMIT).min(MAX_LIMIT));
        document = client.value(&call(&page)).await?;
        page.cursor = next_cursor(&document);
        let rows = match document.get_mut(view.plural).map(Value::take) {
            Some(Value::Array(rows)) => rows,
            _ => Vec::new(),
        };
        left = left.saturating_sub(rows.len());
        shown += rows.len();
        if streams {
            ctx.out.list(view, json!({ view.plural: rows }))?;
        } else {
            merged.extend(rows);
        }
        if left == 0 || page.cursor.is_none() {
            break;
        }
    }
    if !streams {
        let mut whole = document.clone();
        whole[view.plural] = Value::Array(merged);
        ctx.out.list(view, whole)?;
    }
    match &page.cursor {
        _ if shown == 0 => ctx.out.note(empty),
        Some(cursor) => {
            ctx.out.note(&format!("{shown} shown, more on the server (--all, or --cursor {cursor})"));
        }
        None => {}
    }
    Ok(document)
}

/// Returns rows as one document in the shape of a last page.
pub fn last_page(plural: &str, rows: Vec<Value>) -> Value {
    json!({ plural: rows, "has_more": false, "next_cursor": null })
}
