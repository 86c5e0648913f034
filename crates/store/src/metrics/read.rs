//! Reads the nodes and deltas of one snapshot.
//!
//! The statement is SQL, because it joins many ranges of two tables into one snapshot.

use std::fmt::Write;

use entities::dialect::Dialect;
use sea_orm::{ConnectionTrait, DbErr, Statement, Value};
use uuid::Uuid;

use super::{level::Level, range::Range};

/// The nodes and deltas of a period, in their stored encoding.
#[derive(Debug, Default)]
pub struct Reading {
    /// Nodes.
    pub nodes: Vec<StoredNode>,
    /// Deltas of all projects that are not folded yet.
    pub deltas: Vec<Vec<u8>>,
    /// Whether some traces are counted in neither, because they are older than the metrics.
    pub unmeasured: bool,
}

/// A node.
#[derive(Debug)]
pub struct StoredNode {
    /// The project of the node.
    pub project: Uuid,
    /// The level of the node.
    pub level: Level,
    /// The start of the period, in microseconds.
    pub start: i64,
    /// The encoded contents.
    pub data: Vec<u8>,
}

impl Reading {
    /// Returns the number of bytes to decode.
    pub fn bytes(&self) -> usize {
        let nodes = self.nodes.iter().map(|it| it.data.len());
        nodes.chain(self.deltas.iter().map(Vec::len)).sum()
    }
}

/// The level in result rows that are deltas, not nodes.
const DELTA_LEVEL: i32 = -1;
const UNMEASURED_LEVEL: i32 = -2;

/// Reads the nodes in these ranges and all deltas with one statement, for these projects or for all.
///
/// # Errors
/// Fails when the database fails.
pub async fn read(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    projects: Option<&[Uuid]>,
    ranges: &[Range],
) -> Result<Reading, DbErr> {
    let dialect = Dialect::of(db.get_database_backend());
    let mut values: Vec<Value> = vec![tenant.into()];
    // With the tenant, the level and the time, this is one range of the primary key per project.
    let of_project = match projects {
        Some(projects) => {
            values.extend(projects.iter().map(|it| Value::from(*it)));
            let places: Vec<String> = (2..=values.len()).map(|it| format!("${it}")).collect();
            format!("project_id IN ({})", places.join(","))
        }
        None => "project_id IN (SELECT p.id FROM project p WHERE p.tenant_id = $1)".to_owned(),
    };
    let mut sql = format!(
        "SELECT tenant_id, {DELTA_LEVEL} AS level, created_at AS start, data FROM metric_delta WHERE tenant_id = $1 \
         UNION ALL SELECT tenant_id, {UNMEASURED_LEVEL}, created_at, NULL FROM \
         (SELECT tenant_id, created_at FROM trace{} WHERE tenant_id = $1 AND NOT measured LIMIT 1) u",
        dialect.index_hint("ix_trace_unmeasured")
    );
    for Range { level, from, to, leaves } in ranges {
        let leaves = if *leaves { " AND leaf" } else { "" };
        let place = values.len();
        // Writing to a `String` cannot fail.
        _ = write!(
            sql,
            " UNION ALL SELECT project_id, CAST(level AS INTEGER), start, data FROM metric_node \
             WHERE tenant_id = $1 AND {of_project} AND level = {} AND start BETWEEN ${} AND ${}{leaves}",
            level.stored(),
            place + 1,
            place + 2,
        );
        values.extend([(*from).into(), (*to).into()]);
    }
    let statement = Statement::from_sql_and_values(dialect.backend(), sql, values);
    let mut reading = Reading::default();
    for row in db.query_all_raw(statement).await? {
        match row.try_get_by_index(1)? {
            UNMEASURED_LEVEL => reading.unmeasured = true,
            DELTA_LEVEL => reading.deltas.push(row.try_get_by_index(3)?),
            level => {
                let Some(level) = i16::try_from(level).ok().and_then(Level::of) else { continue };
                reading.nodes.push(StoredNode {
                    project: row.try_get_by_index(0)?,
                    level,
                    start: row.try_get_by_index(2)?,
                    data: row.try_get_by_index(3)?,
                });
            }
        }
    }
    Ok(reading)
}
