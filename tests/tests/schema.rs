//! The schema of the databases after all migrations: the same on both, and suitable for distribution by
//! tenant.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use sqlx::Row;
use store::{
    Db,
    check::{PROJECT_TABLES, TENANT_TABLES},
    sqlite_url,
    traces::child_tables,
};
use tests::postgres::Database;

/// Tables without a tenant: the list of migrations, the settings of the installation, and tables for look-ups
/// before the tenant is known (keys by hash, tenants by external ID).
const NOT_OF_A_TENANT: [&str; 4] = ["seaql_migrations", "setting", "api_key", "external_tenant"];

/// Indexes and columns for vector search and for IDs of traces, which differ between the databases.
const OF_ONE_DATABASE: [&str; 6] = [
    "ix_span_vector_arrival",
    "ix_span_vector_near",
    "ix_span_vector_unindexed",
    "coarse",
    "indexed",
    "ux_trace_id",
];

/// The tables that SQLite has in place of the index of IDs.
const TABLES_OF_SQLITE: [&str; 3] = ["trace_id_new", "trace_id_recent", "trace_id_old"];

const SQLITE_COLUMNS: &str = "SELECT m.name, p.name, CAST(p.\"notnull\" AS BOOLEAN) \
     FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
const SQLITE_INDEXES: &str = "SELECT m.name, l.name, CAST(l.\"unique\" AS BOOLEAN), l.origin = 'pk', i.name \
     FROM sqlite_master m JOIN pragma_index_list(m.name) l JOIN pragma_index_info(l.name) i \
     WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND i.name IS NOT NULL ORDER BY 1, 2, i.seqno";
const SQLITE_FOREIGN_KEYS: &str = "SELECT m.name, CAST(f.id AS TEXT), f.\"from\", f.on_delete \
     FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table' ORDER BY 1, 2, f.seq";

const POSTGRES_COLUMNS: &str = "SELECT table_name::text, column_name::text, is_nullable = 'NO' \
     FROM information_schema.columns WHERE table_schema = 'public'";
const POSTGRES_INDEXES: &str = "SELECT t.relname::text, i.relname::text, x.indisunique, x.indisprimary, a.attname::text \
     FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid \
     CROSS JOIN unnest(x.indkey) WITH ORDINALITY k(number, place) \
     JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number \
     WHERE t.relnamespace = 'public'::regnamespace ORDER BY 1, 2, k.place";
const POSTGRES_FOREIGN_KEYS: &str = "SELECT t.relname::text, c.conname::text, a.attname::text, \
     CASE c.confdeltype WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' ELSE '' END \
     FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid \
     CROSS JOIN unnest(c.conkey) WITH ORDINALITY k(number, place) \
     JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number \
     WHERE c.contype = 'f' AND t.relnamespace = 'public'::regnamespace ORDER BY 1, 2, k.place";

/// The parts of the schema that the tests check.
#[derive(Debug, Default)]
struct Schema {
    /// Table, column, and whether the column is required.
    columns: BTreeSet<(String, String, bool)>,
    indexes: BTreeMap<(String, String), Index>,
    /// Table and key, with its columns and the action when the referenced row is deleted.
    foreign_keys: BTreeMap<(String, String), (Vec<String>, String)>,
}

#[derive(Debug, Default)]
struct Index {
    unique: bool,
    primary: bool,
    columns: Vec<String>,
}

impl Schema {
    fn of<R: Row>(columns: Vec<R>, indexes: Vec<R>, foreign_keys: Vec<R>) -> Self
    where
        usize: sqlx::ColumnIndex<R>,
        String: for<'r> sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
        bool: for<'r> sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
    {
        let mut schema = Self::default();
        for it in columns {
            schema.columns.insert((it.get(0), it.get(1), it.get(2)));
        }
        for it in indexes {
            let index = schema.indexes.entry((it.get(0), it.get(1))).or_default();
            (index.unique, index.primary) = (it.get(2), it.get(3));
            index.columns.push(it.get(4));
        }
        for it in foreign_keys {
            let key = schema.foreign_keys.entry((it.get(0), it.get(1))).or_default();
            key.0.push(it.get(2));
            key.1 = it.get(3);
        }
        assert!(schema.columns.len() > 20, "too few columns: did the migrations run?");
        schema
    }

    /// Returns the columns except those of one database only.
    fn shared_columns(&self) -> Vec<&(String, String, bool)> {
        let shared = |it: &&(String, String, bool)| {
            !OF_ONE_DATABASE.contains(&it.1.as_str()) && !TABLES_OF_SQLITE.contains(&it.0.as_str())
        };
        self.columns.iter().filter(shared).collect()
    }

    /// Returns the indexed columns, sorted, without expressions. The names of indexes of constraints differ
    /// between the databases.
    fn indexed(&self) -> Vec<(&str, bool, Vec<&str>)> {
        let shared = |name: &str| !OF_ONE_DATABASE.contains(&name);
        let chosen = self.indexes.iter().filter(|(key, it)| !it.primary && shared(&key.1));
        fn columns<'s>(table: &str, all: &'s [String]) -> Vec<&'s str> {
            // On SQLite, the key of a trace is the row ID, with which every index ends.
            all.iter().map(String::as_str).filter(|it| table != "trace" || *it != "key").collect()
        }
        let mut indexed: Vec<_> =
            chosen.map(|((table, _), it)| (table.as_str(), it.unique, columns(table, &it.columns))).collect();
        indexed.sort_unstable();
        indexed
    }

    fn assert_distributable(&self) {
        let owned = |table: &str| !NOT_OF_A_TENANT.contains(&table);
        let tenant_first = |columns: &[String]| columns.first().is_some_and(|it| it == "tenant_id");
        for ((table, name), index) in self.indexes.iter().filter(|(key, _)| owned(&key.0)) {
            assert!(
                !index.unique || tenant_first(&index.columns),
                "{table}: `{name}` is unique over {:?}: put tenant_id first",
                index.columns
            );
        }
        let keyed: BTreeSet<&str> =
            self.indexes.iter().filter(|(_, it)| it.primary).map(|(key, _)| key.0.as_str()).collect();
        for (table, _, _) in self.columns.iter().filter(|it| owned(&it.0)) {
            assert!(keyed.contains(table.as_str()), "{table} has no primary key");
        }
        for ((table, name), (columns, on_delete)) in self.foreign_keys.iter().filter(|(key, _)| owned(&key.0))
        {
            assert!(
                tenant_first(columns),
                "{table}: foreign key {name} over {columns:?}: put tenant_id first"
            );
            let clears = on_delete.starts_with("SET");
            assert!(
                !clears,
                "{table}: foreign key {name} would clear the tenant with the rest: use CASCADE, or nothing"
            );
        }
    }
}

async fn on_sqlite() -> Schema {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(&sqlite_url(folder.path()), None, 1).await.unwrap();
    db.migrate().await.unwrap();
    let pool = db.write.get_sqlite_connection_pool();
    let mut schema = Schema::of(
        sqlx::query(SQLITE_COLUMNS).fetch_all(pool).await.unwrap(),
        sqlx::query(SQLITE_INDEXES).fetch_all(pool).await.unwrap(),
        sqlx::query(SQLITE_FOREIGN_KEYS).fetch_all(pool).await.unwrap(),
    );
    // The key of a trace is the row ID of these tables, a primary key that is not in the list of indexes.
    for (table, key) in [("trace", "key"), ("span_block", "trace_key")] {
        let row_id =
            Index { unique: true, primary: true, columns: vec!["tenant_id".to_owned(), key.to_owned()] };
        schema.indexes.insert((table.to_owned(), "row ID".to_owned()), row_id);
    }
    schema
}

async fn on_postgres() -> Schema {
    let database = Database::create().await.unwrap();
    let db = Db::open(&database.url(), None, 2).await.unwrap();
    let pool = db.write.get_postgres_connection_pool();
    Schema::of(
        sqlx::query(POSTGRES_COLUMNS).fetch_all(pool).await.unwrap(),
        sqlx::query(POSTGRES_INDEXES).fetch_all(pool).await.unwrap(),
        sqlx::query(POSTGRES_FOREIGN_KEYS).fetch_all(pool).await.unwrap(),
    )
}

#[tokio::test]
async fn both_databases_have_the_same_columns_and_indexes() {
    let (sqlite, postgres) = (on_sqlite().await, on_postgres().await);
    assert_eq!(sqlite.shared_columns(), postgres.shared_columns());
    assert_eq!(sqlite.indexed(), postgres.indexed());
}

#[tokio::test]
async fn tables_can_be_distributed_by_tenant() {
    on_sqlite().await.assert_distributable();
    on_postgres().await.assert_distributable();
}

/// `loupe-server admin check` reads the tables of these lists, and deleting a trace deletes the rows of its tables.
#[tokio::test]
async fn tables_of_tenants_projects_and_traces_are_listed_completely() {
    let schema = on_sqlite().await;
    let tables_with = |column: &str| -> BTreeSet<&str> {
        schema
            .columns
            .iter()
            .filter(|it| it.1 == column && it.0 != "tenant" && !TABLES_OF_SQLITE.contains(&it.0.as_str()))
            .map(|it| it.0.as_str())
            .collect()
    };
    assert_eq!(tables_with("tenant_id"), BTreeSet::from(TENANT_TABLES));
    assert_eq!(tables_with("project_id"), PROJECT_TABLES.iter().map(|it| it.0).collect());
    assert_eq!(tables_with("trace_id"), child_tables().map(|it| it.0).collect());
}

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    let database = Database::create().await.unwrap();
    let db = Db::open(&database.url(), None, 2).await.unwrap();
    db.migrate().await.unwrap();
    db.migrate().await.unwrap();
}
