//! Seals every secret with the first master key, beside running servers.
//!
//! A server that has both keys can unseal a secret before and after; a row that a server changes
//! meanwhile is skipped, because it is sealed with the first key too.

use anyhow::ensure;
use serde_json::json;
use store::{Db, sealed};

use crate::{
    access::seal::Sealer,
    audit::{self, Actor, AuditAction, AuditEvent},
};

/// Secrets were sealed with another key.
const SECRETS_RESEAL: AuditAction = AuditAction::new("secrets.reseal", "provider_credential");

/// The result of resealing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResealResult {
    /// Number of secrets.
    pub secrets: usize,
    /// Number of secrets sealed with the first key.
    pub resealed: usize,
}

/// Seals the secrets of other keys again, tenant by tenant; each tenant concerned gets an audit record
/// of `actor`.
///
/// # Errors
///
/// Fails when the database fails, and, after all others are sealed, when a secret cannot be unsealed:
/// the error names the missing key.
pub async fn run(
    db: &Db,
    sealer: &Sealer,
    actor: impl Fn(uuid::Uuid) -> Actor,
    now: i64,
) -> anyhow::Result<ResealResult> {
    let mut result = ResealResult::default();
    let mut failures = Vec::new();
    for tenant in store::tenants::all(&db.write).await?.into_iter().map(|it| it.tenant_id) {
        let before = result.resealed;
        for column in sealed::ALL {
            for (row, old) in sealed::of_tenant(db, *column, tenant).await? {
                result.secrets += 1;
                if sealer.is_current(&old) {
                    continue;
                }
                let location = column.location(tenant, &row);
                // A damaged secret must not prevent others from being sealed.
                let secret = match sealer.unseal(location, &old) {
                    Ok(secret) => secret,
                    Err(error) => {
                        failures.push(format!("{row} of tenant {tenant}: {error}"));
                        continue;
                    }
                };
                let new = sealer.seal(location, &secret)?;
                if sealed::replace(db, *column, tenant, &row, &old, &new).await? {
                    result.resealed += 1;
                }
            }
        }
        if result.resealed > before {
            let event = AuditEvent::of(SECRETS_RESEAL).with(json!({"secrets": result.resealed - before}));
            audit::record(&db.write, actor(tenant), event, now).await?;
        }
    }
    ensure!(
        failures.is_empty(),
        "{} of {} secrets can't be decrypted and are unchanged, such as {}",
        failures.len(),
        result.secrets,
        failures.first().map_or("", String::as_str)
    );
    Ok(result)
}
