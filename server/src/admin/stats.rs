//! `admin stats`: shows the sizes of tables and indexes.

use serde_json::json;
use store::sizes::{self, Sizes};

use super::{CommandReport, open_existing, render};
use crate::config::Config;

/// Measures the database.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn run(config: &Config, json: bool) -> anyhow::Result<CommandReport> {
    let db = open_existing(config).await?;
    let sizes = sizes::measure(&db).await?;
    Ok(CommandReport::done(render(json, &json!(sizes), || text(&sizes))))
}

fn text(sizes: &Sizes) -> String {
    let mut lines = vec![format!("{:<28} {:>12} {:>10} {:>10}", "TABLE", "ROWS", "SIZE", "INDEXES")];
    for table in &sizes.tables {
        let rows = format!("{}{}", if table.rows_exact { "" } else { "~" }, table.rows);
        let (bytes, indexes) = (size(table.bytes), size(table.index_bytes));
        lines.push(format!("{:<28} {rows:>12} {bytes:>10} {indexes:>10}", table.name));
        for index in table.indexes.iter().filter(|it| it.bytes >= 1024 * 1024) {
            lines.push(format!("  {:<49} {:>12}", index.name, size(index.bytes)));
        }
    }
    lines.push(format!("{:<41} {:>10}", "database", size(sizes.bytes)));
    if let Some(free) = sizes.free_bytes {
        lines.push(format!("{:<41} {:>10}", "free within the file", size(free)));
    }
    lines.join("\n")
}

/// Formats a size for people.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub(super) fn size(bytes: i64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{value} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}
