//! `loupe traces list`: lists traces.

use clap::Args;

use super::{TRACE_VIEW, filter_args::TraceFilterArgs};
use crate::{
    commands::listing::{PageArgs, list},
    ctx::Ctx,
    error::Result,
};

/// Arguments of `traces list`.
#[derive(Debug, Args)]
pub struct TraceListArgs {
    #[command(flatten)]
    filter: TraceFilterArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// Lists traces.
pub async fn run(ctx: &mut Ctx, args: TraceListArgs) -> Result {
    ctx.out.check(&TRACE_VIEW)?;
    let filter = args.filter.resolve(ctx)?;
    let (client, project) = ctx.client_and_project().await?;
    let empty = if filter.is_empty() { "no traces" } else { "nothing matches" };
    let shows_texts = ctx.out.shows_texts();
    list(ctx, &client, &TRACE_VIEW, args.page, empty, |page| super::page(shows_texts, &filter, project, page))
        .await
}
