//! Compares redundant data: counters, totals and roll-ups with the rows that they are derived from, and
//! references with their targets.
//!
//! Every comparison reads one snapshot, so that a server can go on writing. Reads are paged or summed up by
//! the database: the memory of a check does not grow with a tenant's size.
//!
//! Statements are SQL, because they are commands of the databases, or differences of sets and sums that
//! sea-orm cannot express.

mod metrics;
mod quotas;
mod rows;
mod totals;
mod trace_index;

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{ConnectionTrait, DbErr, Statement};
use serde::Serialize;
use uuid::Uuid;

use entities::dialect::Dialect;

pub use rows::{PROJECT_TABLES, TENANT_TABLES};

use crate::db::Db;

/// Findings of one check that are described; further ones are only counted.
const MAX_DESCRIBED_FINDINGS: u64 = 20;

/// Number of tenants read at once.
const TENANTS_PER_PAGE: usize = 200;

/// An inconsistency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check that found it.
    pub check: &'static str,
    /// The tenant of the row; none for the database itself.
    pub tenant_id: Option<Uuid>,
    /// The affected row or rows.
    pub subject: String,
    /// The problem of the rows.
    pub problem: String,
}

/// The counts of one check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckCount {
    /// Number of comparisons.
    pub compared: u64,
    /// Number of failed comparisons.
    pub problems: u64,
}

/// The result of all checks.
#[derive(Debug, Default)]
pub struct Findings {
    /// The first findings of each check.
    pub described: Vec<Finding>,
    /// The counts of each check.
    pub checks: BTreeMap<&'static str, CheckCount>,
    /// The tenants with findings of the checks `trace_index` and `trace_ids`.
    pub badly_indexed_tenants: BTreeSet<Uuid>,
}

impl Findings {
    /// Returns the number of findings.
    pub fn problems(&self) -> u64 {
        self.checks.values().map(|it| it.problems).sum()
    }

    fn compared(&mut self, check: &'static str, count: u64) {
        self.checks.entry(check).or_default().compared += count;
    }

    fn add(&mut self, check: &'static str, tenant: Option<Uuid>, subject: String, problem: String) {
        let count = self.checks.entry(check).or_default();
        count.problems += 1;
        if count.problems <= MAX_DESCRIBED_FINDINGS {
            self.described.push(Finding { check, tenant_id: tenant, subject, problem });
        }
    }

    /// Adds `count` findings without descriptions.
    fn add_more(&mut self, check: &'static str, count: u64) {
        self.checks.entry(check).or_default().problems += count;
    }
}

/// Checks the whole database. `month` (year * 100 + month) is the current month. Traces that a job of one of
/// these `kinds` is about to change are not compared with their spans.
///
/// # Errors
/// Fails when the database fails.
pub async fn run(db: &Db, month: i32, kinds: [&'static str; 2]) -> Result<Findings, DbErr> {
    let mut findings = Findings::default();
    if db.dialect == Dialect::Sqlite {
        // Sorting uses temporary files: a database may be larger than the memory.
        db.read.execute_unprepared("PRAGMA temp_store = FILE").await?;
        integrity(db, &mut findings).await?;
    }
    rows::without_tenant(db, &mut findings).await?;
    let mut last = Uuid::nil();
    loop {
        let tenants = tenants_after(db, last).await?;
        for tenant in &tenants {
            rows::of_tenant(db, *tenant, &mut findings).await?;
            let months = totals::of_tenant(db, *tenant, kinds, &mut findings).await?;
            quotas::of_tenant(db, *tenant, months, month, &mut findings).await?;
            metrics::of_tenant(db, *tenant, &mut findings).await?;
            trace_index::of_tenant(db, *tenant, &mut findings).await?;
        }
        match tenants.last() {
            Some(tenant) if tenants.len() == TENANTS_PER_PAGE => last = *tenant,
            _ => return Ok(findings),
        }
    }
}

/// Runs SQLite's own checks of its file.
async fn integrity(db: &Db, findings: &mut Findings) -> Result<(), DbErr> {
    for (check, sql) in
        [("integrity", "PRAGMA integrity_check(20)"), ("foreign_keys", "PRAGMA foreign_key_check")]
    {
        findings.compared(check, 1);
        let rows = db.read.query_all_raw(Statement::from_string(db.dialect.backend(), sql)).await?;
        for row in rows {
            let text: String = row.try_get_by_index(0)?;
            match check {
                "integrity" if text == "ok" => {}
                "integrity" => findings.add(check, None, "the database file".to_owned(), text),
                _ => findings.add(
                    check,
                    None,
                    format!("table {text}"),
                    "a row refers to one that does not exist".to_owned(),
                ),
            }
        }
    }
    Ok(())
}

async fn tenants_after(db: &Db, last: Uuid) -> Result<Vec<Uuid>, DbErr> {
    let sql = format!(
        "SELECT tenant_id FROM tenant WHERE tenant_id > $1 ORDER BY tenant_id LIMIT {TENANTS_PER_PAGE}"
    );
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [last.into()]);
    db.read.query_all_raw(statement).await?.iter().map(|it| it.try_get_by_index(0)).collect()
}

/// Returns whether two sums of whole numbers are equal; the second was added up in floating point.
fn is_same(whole: i128, sum: f64) -> bool {
    // Up to 2^53, floating point represents every whole number exactly.
    #[expect(clippy::cast_precision_loss, reason = "compared with a sum that has the same precision")]
    let whole = whole as f64;
    (whole - sum).abs() <= whole.abs().max(sum.abs()) * 1e-9
}
