//! Sealing every secret with the first master key, beside running servers.
//!
//! A server that has both keys opens a secret before and after; a row that a server changes
//! meanwhile is left to it, because it seals with the first key too.

use anyhow::ensure;
use serde_json::json;
use store::{Db, sealed};

use crate::{
    access::seal::Sealer,
    audit::{self, Action, Actor, Event},
};

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Secrets that there are.
    pub secrets: usize,
    /// Secrets that were sealed anew.
    pub resealed: usize,
}

/// Seals what another key sealed, tenant by tenant; each tenant concerned gets a record from
/// `actor`.
///
/// # Errors
/// When the database fails; and, once all others are sealed anew, when a secret can't be opened:
/// it names the key that is missing.
pub async fn run(
    db: &Db,
    sealer: &Sealer,
    actor: impl Fn(uuid::Uuid) -> Actor,
    now: i64,
) -> anyhow::Result<Resealed> {
    let mut done = Resealed::default();
    let mut unopened = Vec::new();
    for tenant in store::tenants::all(&db.write).await?.into_iter().map(|it| it.tenant_id) {
        let before = done.resealed;
        for column in sealed::ALL {
            for (row, old) in sealed::of_tenant(db, *column, tenant).await? {
                done.secrets += 1;
                if sealer.is_current(&old) {
                    continue;
                }
                let place = column.place(tenant, &row);
                // One that is damaged must not keep the others from being sealed anew.
                let secret = match sealer.open(place, &old) {
                    Ok(secret) => secret,
                    Err(error) => {
                        unopened.push(format!("{row} of tenant {tenant}: {error}"));
                        continue;
                    }
                };
                let new = sealer.seal(place, &secret)?;
                if sealed::replace(db, *column, tenant, &row, &old, &new).await? {
                    done.resealed += 1;
                }
            }
        }
        if done.resealed > before {
            let event = Event::of(Action::SecretsReseal).with(json!({"secrets": done.resealed - before}));
            audit::record(&db.write, actor(tenant), event, now).await?;
        }
    }
    ensure!(
        unopened.is_empty(),
        "{} of {} secrets can't be opened and stay as they are, such as {}",
        unopened.len(),
        done.secrets,
        unopened.first().map_or("", String::as_str)
    );
    Ok(done)
}
