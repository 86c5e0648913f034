//! `loupe failures`: failures and failure clusters. Every command requires a session token.

mod view;

use api::{
    FailureType,
    client::{Client, calls},
    failure::{ClusterFilter, ClusterStatus, FailureFilter},
};
use clap::{Args, Subcommand};
use uuid::Uuid;

use crate::{
    commands::{
        listing::{PageArgs, list},
        period::PeriodArgs,
    },
    ctx::Ctx,
    error::Result,
    find::{self, RecordKind},
};
use view::{CLUSTER_VIEW, FAILURE_VIEW, cluster_sheet};

const CLUSTER_KIND: RecordKind =
    RecordKind { article: "a", name: "failure cluster", plural: "clusters", list: "loupe failures clusters" };

/// Verbs of `failures`.
#[derive(Debug, Subcommand)]
pub enum FailureCommand {
    /// List failures, newest first
    #[command(
        before_help = "Examples:\n  loupe failures list --type timeout --from -1h\n  loupe failures list --cluster 5e1f09aa --all -o ndjson\n  loupe failures list --trace c07b44d1\n"
    )]
    List(FailureListArgs),
    /// List failure clusters by their newest failures, newest first
    #[command(
        before_help = "Examples:\n  loupe failures clusters --status open\n  loupe failures clusters --type rate_limit --from -24h -o wide\n  loupe failures clusters --json --jq '.clusters[].title' --raw\n"
    )]
    Clusters(ClusterListArgs),
    /// Show one failure cluster with its trend and samples
    #[command(
        before_help = "Examples:\n  loupe failures cluster 5e1f09aa\n  loupe failures cluster 5e1f09aa --json --fields title,samples\n"
    )]
    Cluster(ClusterArgs),
    /// Mark a cluster as solved; it reopens when such a failure occurs again
    #[command(before_help = "Examples:\n  loupe failures resolve 5e1f09aa\n")]
    Resolve(ClusterArgs),
    /// Ignore a cluster: its failures are counted, and fire no failure rule
    #[command(before_help = "Examples:\n  loupe failures mute 5e1f09aa\n")]
    Mute(ClusterArgs),
    /// Reopen a resolved or muted cluster
    #[command(before_help = "Examples:\n  loupe failures reopen 5e1f09aa\n")]
    Reopen(ClusterArgs),
}

/// Arguments of `failures list`.
#[derive(Debug, Args)]
pub struct FailureListArgs {
    /// Only of this type: timeout, rate_limit, invalid_response, context_length, other or
    /// RemediationRegression
    #[arg(long = "type", value_name = "TYPE")]
    failure_type: Option<FailureType>,
    /// Only of this cluster: id, or its last characters
    #[arg(long, value_name = "ID")]
    cluster: Option<String>,
    /// Only of this trace: id, the last characters of a recent id, or an OpenTelemetry trace id
    #[arg(long, value_name = "ID")]
    trace: Option<String>,
    /// Only of this model
    #[arg(long)]
    model: Option<String>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// Arguments of `failures clusters`. The period is that of the newest failure.
#[derive(Debug, Args)]
pub struct ClusterListArgs {
    /// Only with this status: open, resolved or muted
    #[arg(long)]
    status: Option<ClusterStatus>,
    /// Only of this type, such as timeout
    #[arg(long = "type", value_name = "TYPE")]
    failure_type: Option<FailureType>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// Argument that names a failure cluster.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// Id, or its last characters
    cluster: String,
}

/// Runs a verb of `failures`.
pub async fn run(ctx: &mut Ctx, command: FailureCommand) -> Result {
    match command {
        FailureCommand::List(args) => list_failures(ctx, args).await,
        FailureCommand::Clusters(args) => {
            ctx.out.check(&CLUSTER_VIEW)?;
            let client = ctx.session_client("listing failure clusters")?;
            let (from, to) = args.period.resolve()?;
            let project_id = find::current_project(&client, &ctx.settings).await?;
            let filter =
                ClusterFilter { project_id, status: args.status, failure_type: args.failure_type, from, to };
            list(ctx, &client, &CLUSTER_VIEW, args.page, "no failure clusters", |page| {
                calls::failure_clusters(&filter, page)
            })
            .await
        }
        FailureCommand::Cluster(args) => {
            ctx.out.check(&CLUSTER_VIEW)?;
            let client = ctx.session_client("showing a failure cluster")?;
            let id = cluster_id(ctx, &client, &args.cluster).await?;
            let cluster = client.value(&calls::failure_cluster(id)).await?;
            ctx.out.whole(&CLUSTER_VIEW, &cluster, cluster_sheet)
        }
        FailureCommand::Resolve(args) => set_status(ctx, &args.cluster, ClusterStatus::Resolved).await,
        FailureCommand::Mute(args) => set_status(ctx, &args.cluster, ClusterStatus::Muted).await,
        FailureCommand::Reopen(args) => set_status(ctx, &args.cluster, ClusterStatus::Open).await,
    }
}

async fn list_failures(ctx: &mut Ctx, args: FailureListArgs) -> Result {
    ctx.out.check(&FAILURE_VIEW)?;
    let client = ctx.session_client("listing failures")?;
    let (from, to) = args.period.resolve()?;
    let project_id = find::current_project(&client, &ctx.settings).await?;
    let cluster_id = match &args.cluster {
        Some(wanted) => Some(cluster_id(ctx, &client, wanted).await?),
        None => None,
    };
    let trace_id = match &args.trace {
        Some(wanted) => Some(find::trace(&client, &ctx.settings, wanted).await?),
        None => None,
    };
    let filter = FailureFilter {
        project_id,
        failure_type: args.failure_type,
        cluster_id,
        trace_id,
        model: args.model,
        from,
        to,
    };
    list(ctx, &client, &FAILURE_VIEW, args.page, "no failures", |page| calls::failures(&filter, page)).await
}

async fn cluster_id(ctx: &Ctx, client: &Client, wanted: &str) -> Result<Uuid> {
    find::record(client, &ctx.settings, CLUSTER_KIND, wanted, |project_id, page| {
        calls::failure_clusters(&ClusterFilter { project_id, ..ClusterFilter::default() }, page)
    })
    .await
}

async fn set_status(ctx: &mut Ctx, wanted: &str, status: ClusterStatus) -> Result {
    ctx.out.check(&CLUSTER_VIEW)?;
    let client = ctx.session_client("changing a failure cluster")?;
    let id = cluster_id(ctx, &client, wanted).await?;
    let Some(cluster) = ctx.write(&client, &calls::update_failure_cluster(id, status)).await? else {
        return Ok(());
    };
    ctx.out.note(&format!("{} The cluster {wanted} is {status}", ctx.out.style.glyphs.ok));
    ctx.out.whole(&CLUSTER_VIEW, &cluster, cluster_sheet)
}
