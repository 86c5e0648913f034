//! `admin check`: verifies that the database is intact and that counters and roll-ups match the rows.

use std::collections::BTreeSet;

use anyhow::Context;
use queue::Job;
use serde_json::json;
use store::{
    check::{self, Findings},
    quotas::month,
    trace_ids, trace_index,
};

use super::{CommandReport, open_existing, render};
use crate::{clock::Clock, config::Config, long_trace::LongTrace, trace_removal::TraceRemoval};

/// Runs all checks. The output is unsuccessful if there is a finding. With `rebuild_index`, the trace index of tenants
/// with findings is rebuilt.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn run(
    config: &Config,
    rebuild_index: bool,
    json: bool,
    clock: &dyn Clock,
) -> anyhow::Result<CommandReport> {
    let db = open_existing(config).await?;
    let pending = db.pending_migrations().await.context("can't read the schema's version")?;
    anyhow::ensure!(
        pending == 0,
        "the database lacks {pending} migrations of this version: start the server once, or check with the older version"
    );
    let findings = check::run(&db, month(clock.now()), [LongTrace::KIND, TraceRemoval::KIND]).await?;
    let problems = findings.problems();
    let rebuilt = if rebuild_index { &findings.badly_indexed_tenants } else { &BTreeSet::new() };
    for tenant in rebuilt {
        trace_ids::rebuild(&db, *tenant).await?;
        trace_index::rebuild(&db, *tenant, clock.now()).await?;
    }
    let value = json!({
        "ok": problems == 0, "problems": problems, "checks": findings.checks, "findings": findings.described,
        "rebuilt": rebuilt,
    });
    Ok(CommandReport {
        text: render(json, &value, || text(&findings, rebuilt.len())),
        is_successful: problems == 0,
    })
}

fn text(findings: &Findings, rebuilt: usize) -> String {
    let mut lines = Vec::new();
    for (name, count) in &findings.checks {
        let outcome = match count.problems {
            0 => "ok".to_owned(),
            1 => "1 problem".to_owned(),
            many => format!("{many} problems"),
        };
        lines.push(format!("{name:<14} {:>10} compared  {outcome}", count.compared));
        for finding in findings.described.iter().filter(|it| it.check == *name) {
            let tenant = finding.tenant_id.map(|it| format!("tenant {it}, ")).unwrap_or_default();
            lines.push(format!("  {tenant}{}: {}", finding.subject, finding.problem));
        }
        let described = findings.described.iter().filter(|it| it.check == *name).count() as u64;
        if let more @ 1.. = count.problems.saturating_sub(described) {
            lines.push(format!("  and {more} more"));
        }
    }
    lines.push(match findings.problems() {
        0 => "the database is consistent".to_owned(),
        _ => "the database is inconsistent: see docs/operations.md for what to do".to_owned(),
    });
    if rebuilt > 0 {
        lines.push(format!("tenants whose trace index was rebuilt: {rebuilt}"));
    }
    lines.join("\n")
}
