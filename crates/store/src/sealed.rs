//! Columns of sealed secrets, which are sealed again when the master key is replaced.
//!
//! Statements are SQL, because table and column are data.

use sea_orm::{ConnectionTrait, DbErr, Statement};
use uuid::Uuid;

use crate::db::Db;

/// The column and row in which a secret is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretLocation<'a> {
    /// The tenant.
    pub tenant: Uuid,
    /// Table and column.
    pub column: &'a str,
    /// Identifies the row within the tenant.
    pub row: &'a str,
}

/// A column of sealed secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedColumn {
    table: &'static str,
    column: &'static str,
    /// The column that identifies a row within its tenant.
    row: &'static str,
    /// Whether that column is a UUID. The identifier is then its 32 hexadecimal digits.
    is_uuid: bool,
    /// The names of table and column, to which the secrets are bound. They must not change after a release.
    name: &'static str,
}

impl SealedColumn {
    /// Returns the location of a row's secret.
    pub fn location(self, tenant: Uuid, row: &str) -> SecretLocation<'_> {
        SecretLocation { tenant, column: self.name, row }
    }
}

/// The column of the keys in provider credentials.
pub const PROVIDER_KEY: SealedColumn = SealedColumn {
    table: "provider_credential",
    column: "sealed_key",
    row: "provider",
    is_uuid: false,
    name: "provider_credential.sealed_key",
};

/// The column of the secrets of webhooks.
pub const WEBHOOK_SECRET: SealedColumn =
    SealedColumn { table: "webhook", column: "secret", row: "id", is_uuid: true, name: "webhook.secret" };

/// The column of the previous secrets of webhooks.
pub const WEBHOOK_PREVIOUS_SECRET: SealedColumn = SealedColumn {
    table: "webhook",
    column: "previous_secret",
    row: "id",
    is_uuid: true,
    name: "webhook.previous_secret",
};

/// The column of the secrets with which policies sign requests to their callbacks.
pub const CALLBACK_SECRET: SealedColumn = SealedColumn {
    table: "policy",
    column: "callback_secret",
    row: "id",
    is_uuid: true,
    name: "policy.callback_secret",
};

/// All columns of sealed secrets. `loupe-server admin rotate-master-key` seals these again.
pub const ALL: &[SealedColumn] = &[PROVIDER_KEY, WEBHOOK_SECRET, WEBHOOK_PREVIOUS_SECRET, CALLBACK_SECRET];

/// Returns a tenant's secrets: the identifier of each row, and its sealed secret.
///
/// # Errors
/// Fails when the database fails.
pub async fn of_tenant(db: &Db, it: SealedColumn, tenant: Uuid) -> Result<Vec<(String, Vec<u8>)>, DbErr> {
    let SealedColumn { table, column, .. } = it;
    let row = row_text(db, it);
    let sql = format!(
        "SELECT {row} AS row, {column} AS sealed FROM {table} WHERE tenant_id = $1 AND {column} IS NOT NULL"
    );
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into()]);
    let rows = db.write.query_all_raw(statement).await?;
    rows.iter().map(|it| Ok((it.try_get("", "row")?, it.try_get("", "sealed")?))).collect()
}

/// Replaces `old` by `new`. Returns false if the stored secret is no longer `old`.
///
/// # Errors
/// Fails when the database fails.
pub async fn replace(
    db: &Db,
    it: SealedColumn,
    tenant: Uuid,
    row: &str,
    old: &[u8],
    new: &[u8],
) -> Result<bool, DbErr> {
    let SealedColumn { table, column, .. } = it;
    let name = row_text(db, it);
    let sql =
        format!("UPDATE {table} SET {column} = $1 WHERE tenant_id = $2 AND {name} = $3 AND {column} = $4");
    let values = [new.to_vec().into(), tenant.into(), row.into(), old.to_vec().into()];
    let done =
        db.write.execute_raw(Statement::from_sql_and_values(db.dialect.backend(), sql, values)).await?;
    Ok(done.rows_affected() > 0)
}

/// Returns the identifier of a row in SQL.
fn row_text(db: &Db, it: SealedColumn) -> String {
    match it.is_uuid {
        true => db.dialect.uuid_digits(it.row),
        false => format!("CAST({} AS TEXT)", it.row),
    }
}
