//! `loupe traces send`: sends traces from a file or stdin.

use std::io::{BufReader, Read};

use api::{
    client::{Call, Client, Error, calls},
    ingest::MAX_BATCH,
    plain::{io_error, json_error},
};
use clap::Args;
use present::format::thousands;
use serde_json::{Value, json};

use super::send_otlp;
use crate::{
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    find,
    format::Format,
    output::{Column, View, cell, progress::Progress},
};

/// Size in bytes at which a batch is sent, well below the server's limit.
const BATCH_BYTES: usize = 4 << 20;

/// Arguments of `traces send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// File with NDJSON, one JSON object, an array, or {"traces": [...]}; `-` is stdin. `-p` names the
    /// project that receives the traces, instead of the key's own
    file: String,
    /// The file is an OTLP export request in protobuf, or such requests in JSON
    #[arg(long, conflicts_with = "id_from")]
    otlp: bool,
    /// Take each trace's id from this member, so that a trace sent twice is stored once
    #[arg(long, value_name = "FIELD")]
    id_from: Option<String>,
}

const RESULT_VIEW: View = View {
    plural: "results",
    id: "id",
    columns: &[
        Column::new("", "status", |row, style| {
            let refused = row.get("status").and_then(Value::as_str) == Some("rejected");
            cell::mark(refused, style)
        }),
        Column::new("INDEX", "index", |row, style| cell::text(row, "index", style)).right(),
        Column::new("STATUS", "status", |row, style| cell::text(row, "status", style)),
        Column::new("ERROR", "error", |row, style| cell::text(row, "error", style)),
        Column::new("ID", "id", |row, style| cell::text(row, "id", style)),
    ],
    fields: &[
        "index",
        "id",
        "status",
        "code",
        "error",
        "external_id",
        "span_count",
        "total_token_count",
        "cost",
        "accepted",
        "rejected",
        "results",
    ],
};

/// Table of the response to one trace.
const STORED_TRACE_VIEW: View = View {
    columns: &[
        Column::new("ID", "id", |row, style| cell::text(row, "id", style)),
        Column::new("EXTERNAL", "external_id", |row, style| cell::text(row, "external_id", style)),
        Column::new("SPANS", "span_count", |row, style| cell::count(row, "span_count", style)),
        Column::new("TOKENS", "total_token_count", |row, style| cell::count(row, "total_token_count", style)),
        Column::new("COST", "cost", |row, style| cell::money(row, "cost", style)),
    ],
    ..RESULT_VIEW
};

/// Sends traces and reports the result of each.
pub async fn run(ctx: &mut Ctx, args: SendArgs) -> Result {
    ctx.out.check(&RESULT_VIEW)?;
    let client = ctx.client()?;
    let input: Box<dyn Read> = match args.file.as_str() {
        "-" => Box::new(std::io::stdin()),
        path => {
            let failed = |error| CliError::usage(format!("{path}: {}", io_error(&error)));
            Box::new(std::fs::File::open(path).map_err(failed)?)
        }
    };
    let target = ProjectTarget::resolve(ctx, &client).await?;
    if args.otlp {
        return send_otlp::run(ctx, &client, &target, input).await;
    }
    let progress = ctx.out.waiting("traces");
    let mut sender =
        BatchSender { client, target, batch: Vec::new(), bytes: 0, sent: 0, results: Vec::new(), progress };
    for document in serde_json::Deserializer::from_reader(BufReader::new(input)).into_iter::<Value>() {
        let document = document.map_err(|error| unreadable(&args.file, &error))?;
        for mut item in traces_of(document)? {
            restore_tags(&mut item);
            sender.target.override_project(&mut item);
            if let Some(field) = &args.id_from {
                set_id(&mut item, field)?;
            }
            sender.add(ctx, item).await?;
        }
    }
    sender.finish(ctx).await
}

/// The project that receives the traces.
pub struct ProjectTarget {
    /// The name of the project for the server. `None` is the credential's own project.
    name: Option<String>,
    /// Whether the command line names the project, which overrides the project of a trace.
    by_flag: bool,
}

impl ProjectTarget {
    /// Returns the project of this run. It must exist: for a misspelt name the server would create a
    /// project.
    async fn resolve(ctx: &Ctx, client: &Client) -> Result<Self> {
        let Some(project) = &ctx.settings.project else { return Ok(Self { name: None, by_flag: false }) };
        let by_flag = project.source == "flag";
        let found = find::project(client, &project.value).await.map_err(|mut error| {
            if error.exit == Exit::NotFound {
                error.detail.push(format!("the project is named by {}", project.source));
                error.hint = Some(format!(
                    "create it: loupe projects create NAME{}",
                    error.hint.map(|it| format!("; {it}")).unwrap_or_default()
                ));
            }
            error
        })?;
        Ok(Self { name: Some(found.name), by_flag })
    }

    /// Removes the project of a trace if the command line names another one.
    fn override_project(&self, item: &mut Value) {
        if self.by_flag
            && let Some(members) = item.as_object_mut()
        {
            members.remove("project_name");
        }
    }

    /// Adds the project's name to the request.
    pub fn add_header<T>(&self, call: Call<T>) -> Call<T> {
        match &self.name {
            Some(name) => call.header(calls::PROJECT_NAME_HEADER, name),
            None => call,
        }
    }
}

fn unreadable(file: &str, error: &serde_json::Error) -> CliError {
    let name = if file == "-" { "stdin" } else { file };
    CliError::usage(format!("{name}: {}", json_error(error))).hint("one JSON object a line, or one document")
}

/// Returns the traces of one JSON document.
fn traces_of(document: Value) -> Result<Vec<Value>> {
    match document {
        Value::Array(traces_of) => Ok(traces_of),
        Value::Object(mut object) => match object.remove("traces") {
            Some(Value::Array(traces_of)) => Ok(traces_of),
            Some(other) => Err(CliError::usage(format!("`traces` is {}, not an array", kind(&other)))),
            None => Ok(vec![Value::Object(object)]),
        },
        other => Err(CliError::usage(format!("a trace must be a JSON object, not {}", kind(&other)))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Replaces the tags of an exported trace by its `tag_map`: an export contains the tags in two forms, and
/// ingest accepts the map.
fn restore_tags(item: &mut Value) {
    if let Some(tags) = item.get_mut("tag_map").filter(|tags| tags.is_object()).map(Value::take) {
        item["tags"] = tags;
    }
}

fn set_id(item: &mut Value, field: &str) -> Result {
    let id = match item.get(field) {
        Some(Value::String(id)) => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => return Err(CliError::usage(format!("--id-from: a trace has no text or number `{field}`"))),
    };
    item["id"] = json!(id);
    Ok(())
}

/// Collects traces into batches.
struct BatchSender {
    client: Client,
    target: ProjectTarget,
    batch: Vec<Value>,
    bytes: usize,
    sent: usize,
    results: Vec<Value>,
    progress: Progress,
}

impl BatchSender {
    async fn add(&mut self, ctx: &mut Ctx, item: Value) -> Result {
        let bytes = item.to_string().len();
        let full = self.batch.len() == MAX_BATCH || self.bytes + bytes > BATCH_BYTES;
        if full && !self.batch.is_empty() {
            self.flush(ctx).await?;
        }
        self.bytes += bytes;
        self.batch.push(item);
        Ok(())
    }

    async fn flush(&mut self, ctx: &mut Ctx) -> Result {
        let batch = std::mem::take(&mut self.batch);
        let (first, count) = (self.sent, batch.len());
        let bytes = std::mem::take(&mut self.bytes);
        self.sent += count;
        let response = ctx
            .write(&self.client, &self.target.add_header(calls::ingest_batch(batch)))
            .await
            .map_err(|mut error| {
                if first > 0 {
                    error.detail.push(format!("the first {first} traces were sent"));
                }
                error
            })?;
        if response.is_some() {
            self.progress.add(count, bytes);
        }
        if let Some(Value::Array(mut results)) = response.map(|mut response| response["results"].take()) {
            for result in &mut results {
                // Indexes count within the batch; people count within the file.
                let index = result.get("index").and_then(Value::as_u64).unwrap_or_default();
                result["index"] = json!(index + first as u64);
            }
            self.results.extend(results);
        }
        Ok(())
    }

    async fn finish(mut self, ctx: &mut Ctx) -> Result {
        if self.sent == 0 && self.batch.len() <= 1 {
            return match self.batch.pop() {
                Some(item) => send_one(ctx, &self.client, &self.target, item).await,
                None => Err(CliError::usage("the input contains no trace")),
            };
        }
        if !self.batch.is_empty() {
            self.flush(ctx).await?;
        }
        drop(self.progress);
        if ctx.global.dry_run {
            return Ok(());
        }
        let refused: Vec<&Value> = self.results.iter().filter(|it| is(it, "rejected")).collect();
        let accepted = self.results.iter().filter(|it| is(it, "accepted")).count();
        let duplicates = self.results.len() - accepted - refused.len();
        let failure = refused.first().map(|first| {
            let why = first.get("error").and_then(Value::as_str).unwrap_or("refused");
            let exit = match first.get("code").and_then(Value::as_str) {
                Some("error.project.archived") => Exit::Archived,
                Some("ingest_quota_exceeded") => Exit::Plan,
                _ => Exit::Refused,
            };
            let index = first.get("index").and_then(Value::as_u64).unwrap_or_default();
            CliError::new(exit, format!("{} of {} traces were refused", refused.len(), self.sent))
                .hint(format!("the first is number {}: {why}", index + 1))
        });
        let rejected = refused.len();
        let [stored, before, refusals] = [accepted, duplicates, rejected].map(thousands);
        ctx.out.note(&format!("{stored} stored, {before} stored before, {refusals} refused"));
        let document = json!({ "accepted": accepted, "rejected": rejected, "results": self.results });
        if ctx.out.format.is_table() {
            let refused: Vec<Value> = self.results.into_iter().filter(|it| is(it, "rejected")).collect();
            ctx.out.list(&RESULT_VIEW, json!({ "results": refused }))?;
        } else {
            ctx.out.list(&RESULT_VIEW, document)?;
        }
        failure.map_or(Ok(()), Err)
    }
}

fn is(result: &Value, status: &str) -> bool {
    result.get("status").and_then(Value::as_str) == Some(status)
}

async fn send_one(ctx: &mut Ctx, client: &Client, target: &ProjectTarget, item: Value) -> Result {
    let call = target.add_header(calls::ingest(item));
    if ctx.global.dry_run {
        return ctx.show_call(&call);
    }
    ctx.check_writable()?;
    let response = match client.value(&call).await {
        Ok(response) => response,
        Err(Error::Response(response))
            if response.status == 409 && response.body["identical"] == json!(true) =>
        {
            ctx.out.note("this trace was stored before");
            json!({ "id": response.body["trace_id"], "status": "duplicate" })
        }
        Err(error) => return Err(error.into()),
    };
    let id = cell::raw(response.get("id"));
    match ctx.out.format {
        Format::Table | Format::Wide => {
            let spans = response.get("span_count").and_then(Value::as_i64).unwrap_or_default();
            let line = api::text::printable(&format!("{} {id}  {spans} spans", ctx.out.style.glyphs.ok))
                .into_owned();
            ctx.out.write(&(line + "\n"))
        }
        _ => ctx.out.item(&STORED_TRACE_VIEW, &response),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_found_in_documents_of_every_shape() {
        for (document, count) in [
            (json!({ "name": "a" }), 1),
            (json!([{ "name": "a" }, { "name": "b" }]), 2),
            (json!({ "traces": [{}, {}, {}] }), 3),
        ] {
            assert_eq!(traces_of(document).map(|traces_of| traces_of.len()).ok(), Some(count));
        }
        assert!(traces_of(json!("x")).is_err() && traces_of(json!({ "traces": 1 })).is_err());
    }

    #[test]
    fn exported_trace_can_be_sent_again() {
        let mut exported = json!({ "tags": ["env:prod"], "tag_map": { "env": "prod" } });
        restore_tags(&mut exported);
        assert_eq!(exported["tags"], json!({ "env": "prod" }));
        let mut item = json!({ "tags": { "a": "b" } });
        restore_tags(&mut item);
        assert_eq!(item, json!({ "tags": { "a": "b" } }));
    }

    #[test]
    fn trace_id_is_taken_from_a_member() {
        let mut item = json!({ "ref": 17 });
        assert!(set_id(&mut item, "ref").is_ok());
        assert_eq!(item["id"], "17");
        assert!(set_id(&mut item, "none").is_err());
    }
}
