//! `loupe spans search`, also `loupe search`: semantic search for spans.

use std::io::Read;

use api::{
    client::calls::{self, TextSearch},
    search::{DIMENSIONS, VectorSearch},
};
use clap::{Args, Subcommand};
use serde_json::Value;

use super::period::PeriodArgs;
use crate::{
    commands::listing::{PageArgs, listed},
    ctx::Ctx,
    error::{CliError, Result},
    output::{
        Column, View,
        cell::{self, Cell, Style},
    },
};

/// Examples in the help of both commands.
pub const SEARCH_EXAMPLES: &str = "Examples:\n  loupe search 'refund without looking at the order'\n  loupe spans search 'wrong language' --type llm --from -7d -L 10\n  loupe spans search --vector query.json --jq '.results[].span.trace_id' --raw\n";

/// Verbs of `spans`.
#[derive(Debug, Subcommand)]
pub enum SpanCommand {
    /// Search spans by meaning; requires the plan pro
    #[command(before_help = SEARCH_EXAMPLES)]
    Search(SearchArgs),
}

/// Arguments of `spans search`.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// What to look for, in plain language
    #[arg(required_unless_present = "vector")]
    text: Option<String>,
    /// Search with a vector of 1536 numbers from a file (`-` is stdin): a JSON array, or an object with
    /// the member `vector` or `embedding`
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    vector: Option<String>,
    /// Compare only with vectors of this model
    #[arg(long, value_name = "MODEL", requires = "vector")]
    embedding_model: Option<String>,
    /// Only spans of this type: llm, tool, retrieval, other
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only spans of this model
    #[arg(long)]
    model: Option<String>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    page: PageArgs,
}

const SEARCH_VIEW: View = View {
    plural: "results",
    id: "span.id",
    columns: &[
        Column::new("SCORE", "score", cell::score).right(),
        Column::new("TIME", "span.start_time", |row, style| cell::time(span(row), "start_time", style))
            .optional(),
        Column::new("SPAN", "span.name", |row, style| cell::text(span(row), "name", style)).elastic(),
        Column::new("KIND", "span.type", |row, style| cell::text(span(row), "type", style)),
        Column::new("MODEL", "span.model", |row, style| cell::text(span(row), "model", style))
            .elastic()
            .optional(),
        Column::new("TEXT", "span.output", text).elastic(),
        Column::new("INPUT", "span.input", |row, style| cell::text(span(row), "input", style))
            .elastic()
            .wide(),
        Column::new("DISTANCE", "distance", |row, style| cell::text(row, "distance", style)).right().wide(),
        Column::new("TRACE", "span.trace_id", |row, style| cell::short_id(span(row), "trace_id", style)),
        Column::new("ID", "span.id", |row, style| cell::short_id(span(row), "id", style)).wide(),
    ],
    fields: &["span", "score", "distance"],
};

fn span(row: &Value) -> &Value {
    row.get("span").unwrap_or(&Value::Null)
}

/// Returns the output of a span, or its input if it has no output.
fn text(row: &Value, style: &Style) -> Cell {
    let given = |name: &&str| span(row).get(*name).is_some_and(|it| !it.is_null());
    let name = ["output", "input"].into_iter().find(given).unwrap_or("error");
    cell::text(span(row), name, style)
}

/// Searches spans, nearest first.
pub async fn search(ctx: &mut Ctx, args: SearchArgs) -> Result {
    let SearchArgs { text, vector, embedding_model, kind, model, period, page } = args;
    ctx.out.check(&SEARCH_VIEW)?;
    let (from, to) = period.resolve()?;
    let vector = vector.as_deref().map(read_vector).transpose()?;
    let (client, project_id) = ctx.client_and_project().await?;
    let empty = "no spans; those that arrived just now may not be indexed yet";
    let last = match vector {
        Some(vector) => {
            let search = VectorSearch {
                vector: Some(vector),
                near: None,
                project_id,
                from,
                to,
                kind,
                model,
                embedding_model,
                cursor: None,
                limit: None,
            };
            let call = |page: &calls::Page| {
                let calls::Page { limit, cursor } = page.clone();
                calls::search_vector(&VectorSearch { cursor, limit: limit.map(i64::from), ..search.clone() })
            };
            listed(ctx, &client, &SEARCH_VIEW, page, empty, call).await?
        }
        None => {
            let search = TextSearch { q: text.unwrap_or_default(), project_id, from, to, kind, model };
            listed(ctx, &client, &SEARCH_VIEW, page, empty, |page| calls::search_text(&search, page)).await?
        }
    };
    let count = |name: &str| last.get(name).and_then(Value::as_i64).unwrap_or_default();
    if let other @ 1.. = count("not_searched") {
        let searched = count("searched");
        ctx.out.note(&format!("{searched} spans compared; {other} have vectors of another model"));
    }
    Ok(())
}

/// Reads and validates a query vector, before any request.
fn read_vector(file: &str) -> Result<Vec<f32>> {
    let mut text = String::new();
    let read = match file {
        "-" => std::io::stdin().read_to_string(&mut text),
        path => std::fs::File::open(path).and_then(|mut it| it.read_to_string(&mut text)),
    };
    read.map_err(|error| CliError::usage(format!("{file}: {}", api::plain::io_error(&error))))?;
    vector(&text).map_err(|why| {
        CliError::usage(format!("{file}: {why}")).hint(format!("a JSON array of {DIMENSIONS} numbers"))
    })
}

fn vector(text: &str) -> std::result::Result<Vec<f32>, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| api::plain::json_error(&error))?;
    let array = match &document {
        Value::Object(members) => members.get("vector").or_else(|| members.get("embedding")),
        other => Some(other),
    };
    let numbers: Vec<f32> = array
        .and_then(|it| serde_json::from_value(it.clone()).ok())
        .ok_or("there is no array of numbers in it")?;
    match numbers.len() {
        DIMENSIONS if numbers.iter().any(|it| !it.is_finite()) => Err("a number is too large".to_owned()),
        DIMENSIONS if numbers.iter().all(|it| *it == 0.0) => Err("all numbers are zero".to_owned()),
        DIMENSIONS => Ok(numbers),
        other => Err(format!("it has {other} numbers")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn query_vector_is_an_array_or_a_member() {
        let numbers: Vec<f32> = (0..DIMENSIONS).map(|it| it as f32).collect();
        for document in
            [json!(numbers), json!({"vector": numbers}), json!({"embedding": numbers, "index": 0})]
        {
            assert_eq!(vector(&document.to_string()).as_ref(), Ok(&numbers));
        }
        let with = |at: usize, number: f64| {
            let mut all: Vec<f64> = vec![0.0; DIMENSIONS];
            all[at] = number;
            json!(all)
        };
        for (document, why) in [
            (json!(numbers[1..]), "it has 1535 numbers"),
            (with(0, 0.0), "all numbers are zero"),
            (with(9, 1e300), "a number is too large"),
            (json!({"data": numbers}), "there is no array of numbers in it"),
            (json!(["x"]), "there is no array of numbers in it"),
        ] {
            assert_eq!(vector(&document.to_string()), Err(why.to_owned()));
        }
        assert!(vector("[").is_err());
    }
}
