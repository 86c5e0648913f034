//! Columns that hold sealed secrets, for sealing them anew when the master key is exchanged.

use sea_orm::{ConnectionTrait, DbErr, Statement};
use uuid::Uuid;

use super::Db;

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
pub struct Sealed {
    table: &'static str,
    column: &'static str,
    /// The column that identifies a row within its tenant.
    row: &'static str,
    /// Both names: what secrets of this column are bound to. Never changed once released.
    name: &'static str,
}

impl Sealed {
    /// Where the secret of a row is sealed.
    pub fn place(self, tenant: Uuid, row: &str) -> SecretLocation<'_> {
        SecretLocation { tenant, column: self.name, row }
    }
}

/// Where the key of a provider is sealed.
pub const PROVIDER_KEY: Sealed = Sealed {
    table: "provider_credential",
    column: "sealed_key",
    row: "provider",
    name: "provider_credential.sealed_key",
};

/// Every column of sealed secrets.
pub const ALL: &[Sealed] = &[PROVIDER_KEY];

/// The secrets of a tenant: what identifies each row, and what is sealed there.
///
/// # Errors
/// When the database fails.
pub async fn of_tenant(db: &Db, it: Sealed, tenant: Uuid) -> Result<Vec<(String, Vec<u8>)>, DbErr> {
    let Sealed { table, column, row, .. } = it;
    let sql =
        format!("SELECT CAST({row} AS TEXT) AS row, {column} AS sealed FROM {table} WHERE tenant_id = $1");
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into()]);
    let rows = db.write.query_all_raw(statement).await?;
    rows.iter().map(|it| Ok((it.try_get("", "row")?, it.try_get("", "sealed")?))).collect()
}

/// Puts `new` in the place of `old`. False if somebody else was first.
///
/// # Errors
/// When the database fails.
pub async fn replace(
    db: &Db,
    it: Sealed,
    tenant: Uuid,
    row: &str,
    old: &[u8],
    new: &[u8],
) -> Result<bool, DbErr> {
    let Sealed { table, column, row: name, .. } = it;
    let sql = format!(
        "UPDATE {table} SET {column} = $1 WHERE tenant_id = $2 AND CAST({name} AS TEXT) = $3 AND {column} = $4"
    );
    let values = [new.to_vec().into(), tenant.into(), row.into(), old.to_vec().into()];
    let done =
        db.write.execute_raw(Statement::from_sql_and_values(db.dialect.backend(), sql, values)).await?;
    Ok(done.rows_affected() > 0)
}
