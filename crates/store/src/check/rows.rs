//! Checks that references of rows have targets.
//!
//! Statements are SQL, because tables and columns are data.

use entities::dialect::Dialect;
use sea_orm::{ConnectionTrait, DbErr, Statement, Value};
use uuid::Uuid;

use super::{Findings, MAX_DESCRIBED_FINDINGS};
use crate::{db::Db, span_block::MAX_BLOCK_SPANS, text_rows, trace_ids, traces::child_tables};

/// Every table with a tenant.
pub const TENANT_TABLES: [&str; 48] = [
    "anomaly",
    "anomaly_detector",
    "api_key",
    "audit_record",
    "body",
    "control_action",
    "eval_bulk",
    "eval_rule",
    "evaluation",
    "evaluator",
    "event",
    "external_tenant",
    "failure",
    "failure_cluster",
    "failure_clustering",
    "failure_rule",
    "failure_rule_match",
    "failure_trend",
    "feedback",
    "held_input",
    "idempotency",
    "job",
    "member",
    "metric_delta",
    "metric_node",
    "model_price",
    "policy",
    "project",
    "prompt",
    "prompt_deployment",
    "prompt_replay",
    "prompt_score",
    "provider_credential",
    "quota_use",
    "rate_window",
    "rejected_input",
    "rule_decision",
    "span",
    "span_block",
    "span_vector",
    "trace",
    "trace_run",
    "trace_run_block",
    "trace_tail",
    "webhook",
    "webhook_attempt",
    "webhook_delivery",
    "webhook_event",
];

/// Every table whose rows belong to a project, with the column that identifies a row. Rows without a project belong
/// to all projects of the tenant.
pub const PROJECT_TABLES: [(&str, &str); 20] = [
    ("anomaly", "id"),
    ("anomaly_detector", "project_id"),
    ("api_key", "id"),
    ("control_action", "id"),
    ("eval_rule", "id"),
    ("evaluation", "id"),
    ("failure", "id"),
    ("failure_cluster", "id"),
    ("failure_clustering", "project_id"),
    ("failure_rule", "id"),
    ("feedback", "id"),
    ("held_input", "id"),
    ("metric_node", "project_id"),
    ("policy", "id"),
    ("prompt", "project_id"),
    ("prompt_deployment", "id"),
    ("rejected_input", "id"),
    ("span_vector", "id"),
    ("trace", "id"),
    ("webhook_event", "id"),
];

/// Tables whose rows refer to text blocks, with the columns that do.
const TEXT_TABLES: [(&str, &str); 4] =
    [("span", "body_id"), ("trace", "body_id"), ("trace", "input_body_id"), ("trace", "output_body_id")];

/// Finds rows of tenants that do not exist.
pub(super) async fn without_tenant(db: &Db, findings: &mut Findings) -> Result<(), DbErr> {
    for table in TENANT_TABLES {
        findings.compared("tenants", 1);
        let sql = format!(
            "SELECT COUNT(*) FROM {table} x \
             WHERE NOT EXISTS (SELECT 1 FROM tenant t WHERE t.tenant_id = x.tenant_id)"
        );
        let count = count(db, &sql, []).await?;
        if count > 0 {
            let problem = format!("{count} rows belong to tenants that do not exist");
            findings.add("tenants", None, format!("table {table}"), problem);
        }
    }
    Ok(())
}

/// Finds a tenant's rows with broken references, and feedback that a trace's row lacks.
pub(super) async fn of_tenant(db: &Db, tenant: Uuid, findings: &mut Findings) -> Result<(), DbErr> {
    // Log records may arrive before their trace.
    for (table, has_trace_key) in child_tables().filter(|it| it.0 != "held_input") {
        let key = if has_trace_key { " AND t.key = x.trace_key" } else { "" };
        let broken = format!(
            "x.trace_id IS NOT NULL \
             AND NOT EXISTS (SELECT 1 FROM {} t WHERE t.tenant_id = $1 AND t.id = x.trace_id{key})",
            trace_ids::relation(db.dialect)
        );
        let problem = format!("a row of {table} belongs to this trace, which does not exist");
        report_broken(db, tenant, findings, ("orphans", table, "trace_id"), &broken, &problem).await?;
    }
    for (table, id) in PROJECT_TABLES {
        let broken = "x.project_id IS NOT NULL AND NOT EXISTS \
             (SELECT 1 FROM project p WHERE p.tenant_id = $1 AND p.id = x.project_id)";
        let problem = format!("the row of {table} belongs to a project that does not exist");
        report_broken(db, tenant, findings, ("projects", table, id), broken, &problem).await?;
    }
    for (table, column) in TEXT_TABLES {
        let broken = format!(
            "x.{column} IS NOT NULL AND NOT EXISTS \
             (SELECT 1 FROM body b WHERE b.tenant_id = $1 AND b.id = {})",
            text_rows::row_id_sql(db.dialect, &format!("x.{column}"))
        );
        let problem = format!("the row of {table} names a text block that does not exist");
        report_broken(db, tenant, findings, ("texts", table, "id"), &broken, &problem).await?;
    }
    let missing = format!(
        "FROM ({}) x WHERE NOT EXISTS (SELECT 1 FROM body b WHERE b.tenant_id = $1 AND b.id = {})",
        texts_of_blocks(db.dialect),
        text_rows::row_id_sql(db.dialect, "x.body_id")
    );
    let problem = "the span block of this trace names a text block that does not exist";
    report(db, tenant, findings, "texts", ("trace", "trace_id"), &missing, problem).await?;
    if db.dialect == Dialect::Sqlite {
        broken_ids(db, tenant, findings).await?;
    }
    unused_texts(db, tenant, findings).await?;
    newest_feedback(db, tenant, findings).await
}

/// Finds traces that are not found by their IDs, and IDs without a trace.
async fn broken_ids(db: &Db, tenant: Uuid, findings: &mut Findings) -> Result<(), DbErr> {
    let ids = trace_ids::relation(db.dialect);
    let before = findings.problems();
    for (table, other, problem) in
        [("trace", ids, "the trace is not found by its ID"), (ids, "trace", "the ID belongs to no trace")]
    {
        let broken = format!(
            "NOT EXISTS (SELECT 1 FROM {other} o WHERE o.tenant_id = $1 AND o.id = x.id AND o.key = x.key)"
        );
        report_broken(db, tenant, findings, ("trace_ids", table, "id"), &broken, problem).await?;
    }
    if findings.problems() > before {
        findings.badly_indexed_tenants.insert(tenant);
    }
    Ok(())
}

/// Finds text blocks without a span or a trace.
async fn unused_texts(db: &Db, tenant: Uuid, findings: &mut Findings) -> Result<(), DbErr> {
    let [of_spans, of_blocks, of_traces] =
        ["s.body_id", "x.body_id", "t.body_id"].map(|it| text_rows::row_id_sql(db.dialect, it));
    let unused = format!(
        "FROM (SELECT b.id FROM body b WHERE b.tenant_id = $1 \
         EXCEPT SELECT {of_spans} FROM span s WHERE s.tenant_id = $1 AND s.body_id IS NOT NULL \
         EXCEPT SELECT {of_blocks} FROM ({}) x \
         EXCEPT SELECT {of_traces} FROM trace t WHERE t.tenant_id = $1 AND t.body_id IS NOT NULL) x",
        texts_of_blocks(db.dialect)
    );
    report(db, tenant, findings, "texts", ("text block", "id"), &unused, "no span and no trace refers to it")
        .await
}

/// Returns the statement that selects the IDs of traces and of the text blocks that their span blocks name, of the tenant
/// `$1`.
fn texts_of_blocks(dialect: Dialect) -> String {
    let (body_id, numbers) = match dialect {
        Dialect::Sqlite => (
            "substr(s.body_ids, 16 * n.number + 1, 16)",
            format!(
                "JOIN (WITH RECURSIVE numbers(number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM numbers \
                 WHERE number + 1 < {MAX_BLOCK_SPANS}) SELECT number FROM numbers) n ON n.number < length(s.body_ids) / 16"
            ),
        ),
        Dialect::Postgres => (
            "encode(substr(s.body_ids, 16 * n.number + 1, 16), 'hex')::uuid",
            "CROSS JOIN LATERAL generate_series(0, length(s.body_ids) / 16 - 1) n(number)".to_owned(),
        ),
    };
    format!("SELECT s.trace_id, {body_id} AS body_id FROM span_block s {numbers} WHERE s.tenant_id = $1")
}

/// Compares the label in the rows of traces with the newest feedback.
async fn newest_feedback(db: &Db, tenant: Uuid, findings: &mut Findings) -> Result<(), DbErr> {
    let broken = "x.feedback IS DISTINCT FROM (\
        SELECT CASE f.label WHEN 'good' THEN 1 WHEN 'bad' THEN 2 ELSE 0 END FROM feedback f \
        WHERE f.tenant_id = $1 AND f.trace_id = x.id ORDER BY f.updated_at DESC, f.id DESC LIMIT 1)";
    let problem = "the label of the trace is not that of its newest feedback";
    report_broken(db, tenant, findings, ("feedback", "trace", "id"), broken, problem).await
}

/// Reports the rows of a table for which the condition holds.
async fn report_broken(
    db: &Db,
    tenant: Uuid,
    findings: &mut Findings,
    (check, table, id): (&'static str, &str, &str),
    broken: &str,
    problem: &str,
) -> Result<(), DbErr> {
    let from = format!("FROM {table} x WHERE x.tenant_id = $1 AND {broken}");
    let kind = if id == "trace_id" { "trace" } else { table };
    report(db, tenant, findings, check, (kind, id), &from, problem).await
}

/// Reports the rows `x` of an SQL fragment; `id` is the column that identifies them.
async fn report(
    db: &Db,
    tenant: Uuid,
    findings: &mut Findings,
    check: &'static str,
    (kind, id): (&str, &str),
    from: &str,
    problem: &str,
) -> Result<(), DbErr> {
    findings.compared(check, 1);
    let sql = format!("SELECT x.{id} {from} LIMIT {MAX_DESCRIBED_FINDINGS}");
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into()]);
    let rows = db.read.query_all_raw(statement).await?;
    for row in &rows {
        let id: Uuid = row.try_get_by_index(0)?;
        findings.add(check, Some(tenant), format!("{kind} {id}"), problem.to_owned());
    }
    if rows.len() as u64 == MAX_DESCRIBED_FINDINGS {
        let all = count(db, &format!("SELECT COUNT(*) {from}"), [tenant.into()]).await?;
        findings
            .add_more(check, u64::try_from(all).unwrap_or_default().saturating_sub(MAX_DESCRIBED_FINDINGS));
    }
    Ok(())
}

async fn count<const N: usize>(db: &Db, sql: &str, values: [Value; N]) -> Result<i64, DbErr> {
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    let row = db.read.query_one_raw(statement).await?;
    row.map_or(Ok(0), |it| it.try_get_by_index(0))
}
