//! `loupe projects redaction`: shows and changes the redaction settings of a project.

use api::{
    client::{Client, calls},
    project::{RedactionPattern, RedactionSettings},
};
use clap::Args;
use serde_json::{Value, json};

use super::project_id;
use crate::{
    ctx::Ctx,
    error::Result,
    output::{
        Column, View,
        cell::{self, Cell, Style},
    },
};

/// Arguments of `projects redaction`.
#[derive(Debug, Args)]
pub struct RedactionArgs {
    /// Id, name, or the last characters of the id
    project: String,
    /// Detectors, separated by commas: all, email, phone, payment_card, iban, national_id, ip_address, secret; or none. If
    /// absent, the stored detectors stay
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    detect: Vec<String>,
    /// A regular expression whose matches are masked, with the name of its placeholder. Repeatable; the given patterns
    /// replace all stored ones
    #[arg(long = "pattern", value_name = "NAME=REGEX", value_parser = pattern)]
    patterns: Vec<RedactionPattern>,
    /// Remove all patterns
    #[arg(long, conflicts_with = "patterns")]
    no_patterns: bool,
    /// Mask nothing
    #[arg(long, conflicts_with_all = ["detect", "patterns", "no_patterns"])]
    off: bool,
}

/// Card of the settings.
const REDACTION_VIEW: View = View {
    plural: "settings",
    id: "id",
    columns: &[
        Column::new("DETECTORS", "detectors", detectors).elastic(),
        Column::new("PATTERNS", "patterns", patterns).elastic(),
        Column::new("PROJECT", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &["id", "detectors", "patterns"],
};

fn pattern(text: &str) -> std::result::Result<RedactionPattern, String> {
    match text.split_once('=') {
        Some((name, pattern)) if !name.is_empty() && !pattern.is_empty() => {
            Ok(RedactionPattern { name: name.to_owned(), pattern: pattern.to_owned() })
        }
        _ => Err("a name and a regular expression, such as employee_id=EMP-[0-9]{6}".to_owned()),
    }
}

/// Shows the settings, or changes those that an option names; the others stay.
pub async fn run(ctx: &mut Ctx, client: &Client, args: RedactionArgs) -> Result {
    ctx.out.check(&REDACTION_VIEW)?;
    let RedactionArgs { project, detect, patterns, no_patterns, off } = args;
    let id = project_id(client, &project).await?;
    let mut shown = if off || no_patterns || !detect.is_empty() || !patterns.is_empty() {
        let mut settings = match off {
            true => RedactionSettings::default(),
            false => client.call(&calls::redaction(id)).await?,
        };
        match &detect[..] {
            [] => {}
            [none] if none == "none" => settings.detectors.clear(),
            _ => settings.detectors = detect,
        }
        if no_patterns || !patterns.is_empty() {
            settings.patterns = patterns;
        }
        let Some(stored) = ctx.write(client, &calls::set_redaction(id, &settings)).await? else {
            return Ok(());
        };
        let what = if settings.is_off() { "no longer masks" } else { "now masks" };
        ctx.out.note(&format!("{} Ingest {what} values in new texts of {project}", ctx.out.style.glyphs.ok));
        stored
    } else {
        client.value(&calls::redaction(id)).await?
    };
    shown["id"] = json!(id);
    ctx.out.item(&REDACTION_VIEW, &shown)
}

fn detectors(row: &Value, style: &Style) -> Cell {
    let names = row["detectors"].as_array().into_iter().flatten().filter_map(Value::as_str);
    joined(names.collect(), style)
}

fn patterns(row: &Value, style: &Style) -> Cell {
    let names = row["patterns"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str());
    joined(names.collect(), style)
}

fn joined(names: Vec<&str>, style: &Style) -> Cell {
    cell::text_or_none(names.join(", "), style)
}
