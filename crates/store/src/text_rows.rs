//! Reads and removes text blocks.
//!
//! Statements are SQL, because rows are read in bulk, by the position of their columns.

use std::collections::{BTreeSet, HashMap};

use entities::{body, dialect::Dialect};
use sea_orm::{
    ActiveValue::Set, ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter, QuerySelect, Value,
    sea_query::Expr,
};
use uuid::Uuid;

use crate::{bulk, db::Db, text_page};

/// Size in bytes up to which a row is read together with others. A larger row is a block with a single text.
pub const MAX_SMALL_ROW_BYTES: usize = 72 * 1024;
/// Maximum number of rows that one statement reads: at most 5 MiB if they are small.
pub const ROWS_PER_STATEMENT: usize = 64;
/// Maximum number of rows that one statement measures or removes.
const IDS_PER_STATEMENT: usize = 500;

/// Returns the blocks with these IDs, except missing ones. A block in a row with more than `max_row_bytes` is empty.
///
/// # Errors
/// Fails when the database fails.
pub async fn read(
    db: &Db,
    tenant: Uuid,
    block_ids: impl IntoIterator<Item = Uuid>,
    max_row_bytes: usize,
) -> Result<HashMap<Uuid, Vec<u8>>, DbErr> {
    let block_ids: BTreeSet<Uuid> = block_ids.into_iter().collect();
    let mut found = HashMap::with_capacity(block_ids.len());
    let empty = match db.dialect {
        Dialect::Sqlite => "x''",
        Dialect::Postgres => "''::bytea",
    };
    for row_ids in rows_of(&block_ids).chunks(ROWS_PER_STATEMENT) {
        let max_row_bytes = i64::try_from(max_row_bytes).unwrap_or(i64::MAX);
        let mut values: Vec<Value> = vec![tenant.into(), max_row_bytes.into()];
        let places = bulk::add_placeholders(&mut values, row_ids);
        // Rows are never empty, so an empty one stands for a large one.
        let sql = format!(
            "SELECT b.tenant_id, b.id, CASE WHEN length(b.data) <= $2 THEN b.data ELSE {empty} END \
             FROM body b WHERE b.tenant_id = $1 AND b.id IN ({places})"
        );
        for row in bulk::fetch::<body::Model>(&db.read, sql, values).await? {
            if text_page::is_in_page(row.id) {
                found.extend(blocks_of_page(&row, blocks_in(&block_ids, row.id)));
            } else {
                found.insert(row.id, row.data);
            }
        }
    }
    Ok(found)
}

/// Returns the blocks with these IDs of a page. All are empty if the page is.
fn blocks_of_page(page: &body::Model, block_ids: impl Iterator<Item = Uuid>) -> Vec<(Uuid, Vec<u8>)> {
    if page.data.is_empty() {
        return block_ids.map(|it| (it, Vec::new())).collect();
    }
    let blocks = text_page::blocks(&page.data);
    let block = |id: Uuid| match &blocks {
        Some(blocks) => {
            let number = usize::from(text_page::number_in_page(id));
            blocks.get(number).copied().filter(|it| !it.is_empty())
        }
        // A page is not a block, so that each reader of its texts reports the damage.
        None => Some(page.data.as_slice()),
    };
    block_ids.filter_map(|it| Some((it, block(it)?.to_vec()))).collect()
}

/// Returns the size in bytes of the row of each of these blocks.
///
/// # Errors
/// Fails when the database fails.
pub async fn row_sizes(
    db: &Db,
    tenant: Uuid,
    block_ids: impl IntoIterator<Item = Uuid>,
) -> Result<HashMap<Uuid, usize>, DbErr> {
    let block_ids: BTreeSet<Uuid> = block_ids.into_iter().collect();
    let mut found = HashMap::with_capacity(block_ids.len());
    for row_ids in rows_of(&block_ids).chunks(IDS_PER_STATEMENT) {
        let query = body::Entity::find()
            .select_only()
            .column(body::Column::Id)
            .expr(Expr::cust("CAST(length(data) AS BIGINT)"))
            .filter(body::Column::TenantId.eq(tenant))
            .filter(body::Column::Id.is_in(row_ids.iter().copied()));
        let rows: Vec<(Uuid, i64)> = query.into_tuple().all(&db.read).await?;
        for (id, size) in rows {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            found.extend(blocks_in(&block_ids, id).map(|it| (it, size)));
        }
    }
    Ok(found)
}

/// Removes the blocks with these IDs. A page is removed with its last block. To avoid deadlocks, a transaction calls this
/// once, after it has locked all of its traces.
///
/// # Errors
/// Fails when the database fails.
pub async fn remove(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    block_ids: impl IntoIterator<Item = Uuid>,
) -> Result<(), DbErr> {
    let (mut unused, pages) = text_page::rows_of(block_ids);
    // Pages are locked in the order of their IDs, so that two transactions cannot deadlock.
    for (id, removed) in pages {
        let Some(page) = body::Entity::find_by_id((tenant, id)).lock_exclusive().one(txn).await? else {
            continue;
        };
        if text_page::blocks(&page.data).is_none() {
            tracing::error!(%tenant, page = %id, "a text page is damaged; the texts of all of its traces are removed");
        }
        let Some(data) = text_page::without(&page.data, &removed) else {
            unused.push(id);
            continue;
        };
        let change = body::ActiveModel { data: Set(data), ..Default::default() };
        body::Entity::update_many()
            .set(change)
            .filter(body::Column::TenantId.eq(tenant))
            .filter(body::Column::Id.eq(id))
            .exec(txn)
            .await?;
    }
    for row_ids in unused.chunks(IDS_PER_STATEMENT) {
        body::Entity::delete_many()
            .filter(body::Column::TenantId.eq(tenant))
            .filter(body::Column::Id.is_in(row_ids.iter().copied()))
            .exec(txn)
            .await?;
    }
    Ok(())
}

/// Returns an SQL expression for the ID of the row of a block, from the column with the block's ID.
pub fn row_id_sql(dialect: Dialect, column: &str) -> String {
    match dialect {
        Dialect::Sqlite => format!(
            "CASE WHEN substr(hex({column}), 13, 1) = '8' THEN CAST(substr({column}, 1, 14) || x'0000' AS BLOB) ELSE {column} END"
        ),
        Dialect::Postgres => format!(
            "CASE WHEN substr({column}::text, 15, 1) = '8' THEN (left({column}::text, 32) || '0000')::uuid ELSE {column} END"
        ),
    }
}

/// Returns the IDs of the rows with these blocks.
fn rows_of(block_ids: &BTreeSet<Uuid>) -> Vec<Uuid> {
    let mut row_ids: Vec<Uuid> = block_ids.iter().map(|it| text_page::row_of(*it)).collect();
    // Blocks of the same page are next to each other.
    row_ids.dedup();
    row_ids
}

/// Returns those of the blocks that are in this row.
fn blocks_in(block_ids: &BTreeSet<Uuid>, row: Uuid) -> impl Iterator<Item = Uuid> {
    let last = if text_page::is_in_page(row) { text_page::block_id(row, u16::MAX) } else { row };
    block_ids.range(row..=last).copied()
}
