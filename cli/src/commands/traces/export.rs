//! `loupe traces export`: writes the traces that match a filter, with their spans, as lines to a file.
//!
//! The export is written to a partial file, which is renamed when it is complete, so that an incomplete
//! export is not mistaken for a complete one. `resume.rs` continues a partial file.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use api::{
    client::{Client, calls},
    filter::Filter,
};
use clap::{Args, ValueEnum};
use present::format;
use uuid::Uuid;

use super::{
    blocks::{ResponseBlocks, count},
    filter_args::TraceFilterArgs,
    partial::PartialExport,
};
use crate::{
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    output::progress::Progress,
};

/// Arguments of `traces export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// File to write; `-` is stdout
    file: PathBuf,
    /// Content of a line
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    format: ExportFormat,
    /// Continue an interrupted export to this file
    #[arg(long)]
    resume: bool,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    filter: TraceFilterArgs,
}

/// Values of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// A trace with its spans and events, as `traces get --json` shows it.
    Jsonl,
    /// An OTLP export request, as `traces send --otlp` takes it.
    Otlp,
}

impl ExportFormat {
    fn as_str(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Otlp => "otlp",
        }
    }

    /// Returns the unit of a line, for progress messages.
    fn unit(self) -> &'static str {
        match self {
            Self::Jsonl => "traces",
            Self::Otlp => "requests",
        }
    }
}

/// Exports traces.
pub async fn run(ctx: &mut Ctx, args: ExportArgs) -> Result {
    let filter = args.filter.resolve(ctx)?;
    if args.resume && args.format == ExportFormat::Otlp {
        return Err(CliError::usage(
            "--resume requires --format jsonl, in which each line contains its trace",
        ));
    }
    let (client, project) = ctx.client_and_project().await?;
    let export = Export { client, filter, project, format: args.format };
    if args.file == Path::new("-") {
        return export.to_stdout(ctx).await;
    }
    if !args.force && args.file.exists() {
        let message = format!("{} exists already and is not overwritten", args.file.display());
        return Err(CliError::new(Exit::Unexpected, message).hint("replace it: --force"));
    }
    let written = export.to_file(ctx, &args.file, args.resume).await?;
    let written = format::thousands(written);
    ctx.out.note(&format!("{written} {} in {}", args.format.unit(), args.file.display()));
    Ok(())
}

/// An export: the client and the selected traces.
struct Export {
    client: Client,
    filter: Filter,
    project: Option<Uuid>,
    format: ExportFormat,
}

impl Export {
    async fn to_stdout(&self, ctx: &mut Ctx) -> Result {
        let mut progress = ctx.out.progress(self.format.unit(), true);
        let call = calls::export_traces(&self.filter, self.project, self.format.as_str());
        // On a terminal, control characters are made visible, which requires whole characters.
        let mut blocks = ResponseBlocks::new(self.client.download(&call).await?, ctx.env.stdout_tty);
        while let Some(block) = blocks.next().await? {
            progress.add(count(&block), block.len());
            ctx.out.lines(&block)?;
        }
        Ok(())
    }

    /// Writes the file, and returns the number of its lines.
    async fn to_file(&self, ctx: &mut Ctx, path: &Path, resume: bool) -> Result<usize> {
        let partial = partial(path);
        let failed = |error: std::io::Error| {
            let why = api::plain::io_error(&error);
            CliError::new(Exit::Unexpected, format!("can't write {}: {why}", partial.display()))
        };
        let existing =
            if resume { PartialExport::read(&partial).map_err(failed)? } else { PartialExport::default() };
        let filter = existing.rest_of(&self.filter);
        let call = calls::export_traces(&filter, self.project, self.format.as_str());
        // The request comes before the file, so that a refusal leaves no file behind.
        let download = self.client.download(&call).await?;
        let mut file =
            OpenOptions::new().create(true).write(true).truncate(false).open(&partial).map_err(failed)?;
        existing.cut(&mut file).map_err(failed)?;

        let mut progress = ctx.out.progress(self.format.unit(), false);
        let ended =
            append(&mut file, ResponseBlocks::new(download, existing.lines > 0), &existing, &mut progress)
                .await;
        drop(progress);
        let added = ended.map_err(|mut error| {
            error.detail.push(format!("the partial export is in {}", partial.display()));
            if self.format == ExportFormat::Jsonl {
                error.hint = Some("continue the export: repeat the command with --resume".to_owned());
            }
            error
        })?;
        file.sync_all().and_then(|()| fs::rename(&partial, path)).map_err(failed)?;
        Ok(existing.lines + added)
    }
}

/// Appends the missing lines to a partial file, and returns their number.
async fn append(
    file: &mut File,
    mut blocks: ResponseBlocks,
    existing: &PartialExport,
    progress: &mut Progress,
) -> Result<usize> {
    let mut written = 0;
    while let Some(block) = blocks.next().await? {
        let block = existing.without_known(block);
        progress.add(count(&block), block.len());
        written += count(&block);
        file.write_all(&block).map_err(|error| {
            let why = api::plain::io_error(&error);
            CliError::new(Exit::Unexpected, format!("can't write the export: {why}"))
        })?;
    }
    Ok(written)
}

/// Returns the path of the partial file of an export.
fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}
