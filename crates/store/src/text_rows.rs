//! Reads and removes text blocks.
//!
//! Statements are SQL, because rows are read in bulk, by the position of their columns.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use entities::{body, dialect::Dialect};
use sea_orm::{
    ActiveValue::Set, ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter, QuerySelect, Value,
    sea_query::Expr,
};
use uuid::Uuid;

use crate::{bulk, db::Db, text_page};

/// Size in bytes up to which a row is read together with others. A larger row is a block with a single text.
pub const MAX_SMALL_ROW_BYTES: usize = 72 * 1024;
/// Number of rows that one statement reads: at most 5 MiB if they are small.
const ROWS_PER_STATEMENT: usize = 64;
/// Number of rows that one statement measures or removes.
const IDS_PER_STATEMENT: usize = 500;

/// Returns the blocks with these references, except missing ones. A block in a row with more than `max_row_bytes` is empty.
///
/// # Errors
/// Fails when the database fails.
pub async fn read(
    db: &Db,
    tenant: Uuid,
    references: impl IntoIterator<Item = Uuid>,
    max_row_bytes: usize,
) -> Result<HashMap<Uuid, Vec<u8>>, DbErr> {
    let references: BTreeSet<Uuid> = references.into_iter().collect();
    let mut found = HashMap::with_capacity(references.len());
    let empty = match db.dialect {
        Dialect::Sqlite => "x''",
        Dialect::Postgres => "''::bytea",
    };
    for ids in rows_of(&references).chunks(ROWS_PER_STATEMENT) {
        let max_row_bytes = i64::try_from(max_row_bytes).unwrap_or(i64::MAX);
        let mut values: Vec<Value> = vec![tenant.into(), max_row_bytes.into()];
        let first = values.len() + 1;
        values.extend(bulk::padded(ids).map(Value::from));
        let places: Vec<String> = (first..=values.len()).map(|it| format!("${it}")).collect();
        // Rows are never empty, so an empty one stands for a large one.
        let sql = format!(
            "SELECT b.tenant_id, b.id, CASE WHEN length(b.data) <= $2 THEN b.data ELSE {empty} END \
             FROM body b WHERE b.tenant_id = $1 AND b.id IN ({})",
            places.join(",")
        );
        for row in bulk::fetch::<body::Model>(&db.read, sql, values).await? {
            if !text_page::is_in_page(row.id) || row.data.is_empty() {
                found.extend(references_to(&references, row.id).map(|it| (it, row.data.clone())));
                continue;
            }
            let blocks = text_page::blocks(&row.data);
            for reference in references_to(&references, row.id) {
                let block = match &blocks {
                    Some(blocks) => blocks.get(usize::from(text_page::block_number(reference))).copied(),
                    // Its texts cannot be decompressed, which reports the damage to readers of each trace.
                    None => Some(row.data.as_slice()),
                };
                if let Some(block) = block.filter(|it| !it.is_empty()) {
                    found.insert(reference, block.to_vec());
                }
            }
        }
    }
    Ok(found)
}

/// Returns the sizes in bytes of the rows with these blocks.
///
/// # Errors
/// Fails when the database fails.
pub async fn row_sizes(
    db: &Db,
    tenant: Uuid,
    references: impl IntoIterator<Item = Uuid>,
) -> Result<HashMap<Uuid, usize>, DbErr> {
    let references: BTreeSet<Uuid> = references.into_iter().collect();
    let mut found = HashMap::with_capacity(references.len());
    for ids in rows_of(&references).chunks(IDS_PER_STATEMENT) {
        let query = body::Entity::find()
            .select_only()
            .column(body::Column::Id)
            .expr(Expr::cust("CAST(length(data) AS BIGINT)"))
            .filter(body::Column::TenantId.eq(tenant))
            .filter(body::Column::Id.is_in(ids.iter().copied()));
        let rows: Vec<(Uuid, i64)> = query.into_tuple().all(&db.read).await?;
        for (id, size) in rows {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            found.extend(references_to(&references, id).map(|it| (it, size)));
        }
    }
    Ok(found)
}

/// Removes the blocks with these references. A page is removed with its last block.
///
/// # Errors
/// Fails when the database fails.
pub async fn remove(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    references: impl IntoIterator<Item = Uuid>,
) -> Result<(), DbErr> {
    let mut ids = Vec::new();
    let mut pages: BTreeMap<Uuid, BTreeSet<usize>> = BTreeMap::new();
    for reference in references {
        match text_page::is_in_page(reference) {
            true => {
                let number = usize::from(text_page::block_number(reference));
                pages.entry(text_page::row_of(reference)).or_default().insert(number);
            }
            false => ids.push(reference),
        }
    }
    // Pages are locked in the order of their IDs, so that two transactions cannot deadlock.
    for (id, removed) in pages {
        let Some(mut page) = body::Entity::find_by_id((tenant, id)).lock_exclusive().one(txn).await? else {
            continue;
        };
        // What is left of a damaged page cannot be read either.
        let mut blocks = text_page::blocks(&page.data).unwrap_or_default();
        for (number, block) in blocks.iter_mut().enumerate() {
            if removed.contains(&number) {
                *block = &[];
            }
        }
        if blocks.iter().all(|it| it.is_empty()) {
            ids.push(id);
            continue;
        }
        page.data = text_page::build(&blocks);
        let change = body::ActiveModel { data: Set(page.data), ..Default::default() };
        body::Entity::update_many()
            .set(change)
            .filter(body::Column::TenantId.eq(tenant))
            .filter(body::Column::Id.eq(id))
            .exec(txn)
            .await?;
    }
    for block in ids.chunks(IDS_PER_STATEMENT) {
        body::Entity::delete_many()
            .filter(body::Column::TenantId.eq(tenant))
            .filter(body::Column::Id.is_in(block.iter().copied()))
            .exec(txn)
            .await?;
    }
    Ok(())
}

/// Returns an SQL expression for the ID of the row with the block to which a column refers.
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
fn rows_of(references: &BTreeSet<Uuid>) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = references.iter().map(|it| text_page::row_of(*it)).collect();
    // References to the same page are next to each other.
    ids.dedup();
    ids
}

/// Returns the references to blocks in this row.
fn references_to(references: &BTreeSet<Uuid>, row: Uuid) -> impl Iterator<Item = Uuid> {
    let last = if text_page::is_in_page(row) { text_page::reference(row, u16::MAX) } else { row };
    references.range(row..=last).copied()
}
