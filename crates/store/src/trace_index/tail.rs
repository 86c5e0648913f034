//! The tail: traces that no run has in their present state. Lists read their rows.
//!
//! A transaction that inserts traces adds the range of their keys, and one that changes a trace adds its key alone,
//! always as a new row. Indexing removes exactly the rows that it read before the traces. It needs no lock: a change
//! that it did not see left a row that it did not read.

use entities::{dialect::Dialect, trace_tail};
use uuid::Uuid;

use crate::bulk::bulk_rows;

bulk_rows!(trace_tail::Model, "trace_tail", key "tenant_id, id", {
    tenant_id: "uuid", id: "int8", first_key: "int8", last_key: "int8", traces: "int4",
});

/// Returns the `FROM` with the traces of the tail as `t`, once for each row of the tail that has them. `$1` is the tenant.
///
/// PostgreSQL cannot estimate how many traces a range has, and might scan the whole table; the order and the limit make
/// it read each range along the primary key.
pub fn from_tail(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => {
            "trace_tail r CROSS JOIN trace t NOT INDEXED WHERE r.tenant_id = $1 AND t.tenant_id = $1 \
             AND t.key BETWEEN r.first_key AND r.last_key"
        }
        Dialect::Postgres => {
            "trace_tail r CROSS JOIN LATERAL (SELECT * FROM trace x WHERE x.tenant_id = $1 \
             AND x.key BETWEEN r.first_key AND r.last_key ORDER BY x.key LIMIT 1000000000) t WHERE r.tenant_id = $1"
        }
    }
}

/// Returns the row of the tail for a changed trace. `id` is a new key.
pub fn change(tenant: Uuid, key: i64, id: i64) -> trace_tail::Model {
    trace_tail::Model { tenant_id: tenant, id, first_key: key, last_key: key, traces: 1 }
}
