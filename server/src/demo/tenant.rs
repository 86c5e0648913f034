//! The demo's tenant with projects, members and keys.

use anyhow::Context;
use api::{Plan, Role, Scope, credential::Provider, member::MemberStatus};
use entities::{api_key, member, project, provider_credential};
use store::{Connection, new_id, sealed::PROVIDER_KEY};
use uuid::Uuid;

use crate::{
    access::{api_key::ApiKey, session::Claims},
    app::App,
    first_start,
};

/// The tenant of a demo.
#[derive(Clone)]
pub struct DemoTenant {
    /// The ID of the tenant.
    pub tenant_id: Uuid,
    /// The IDs of its projects, in the order of `PROJECT_NAMES`.
    pub projects: Vec<Uuid>,
    /// The API key of an owner.
    pub key: ApiKey,
    /// The number of traces that are stored at the start.
    pub traces: usize,
}

/// The names of the projects; each has its own traces.
pub const PROJECT_NAMES: [&str; 3] = ["support", "docs-search", "code-review"];

const DAY: i64 = 86_400_000_000;
/// Subject, role, days since joining, hours since last seen.
const SAMPLE_MEMBERS: &[(&str, Role, i64, i64)] = &[
    ("ada@acme.example", Role::Owner, 41, 2),
    ("benoit@acme.example", Role::Member, 38, 1),
    ("chen@acme.example", Role::Member, 12, 27),
    ("dora@acme.example", Role::Viewer, 5, 90),
];

/// Creates the tenant with its projects, members and keys.
pub(super) async fn create(app: &App) -> anyhow::Result<DemoTenant> {
    let now = app.clock.now();
    let txn = app.db.begin().await?;
    let created =
        first_start::create_tenant(&txn, "Acme (demo)", Plan::Business, None, None, now - 42 * DAY).await?;
    let tenant = created.tenant_id;
    let (embedding, judge) = (&app.config.embedding, &app.config.judge);
    for row in first_start::operator_credentials(tenant, embedding, judge, &app.sealer, now - 42 * DAY)? {
        store::credentials::set(&txn, row).await?;
    }
    if let Some(row) = compatible_credential(app, tenant, now - 42 * DAY)? {
        store::credentials::set(&txn, row).await?;
    }
    let first =
        store::projects::get(&txn, tenant, created.project_id).await?.context("no project was made")?;
    let mut projects = vec![first.id];
    store::projects::replace(&txn, project::Model { name: PROJECT_NAMES[0].to_owned(), ..first.clone() })
        .await?;
    for (name, age) in PROJECT_NAMES.into_iter().zip([42, 30, 11]).skip(1) {
        let (id, at) = (new_id(), now - age * DAY);
        projects.push(id);
        let row =
            project::Model { id, name: name.to_owned(), created_at: at, updated_at: at, ..first.clone() };
        store::projects::add(&txn, row).await?;
    }
    for (subject, role, days, hours) in SAMPLE_MEMBERS {
        let row = member::Model {
            tenant_id: tenant,
            id: new_id(),
            subject: (*subject).to_owned(),
            role: role.as_str().to_owned(),
            status: MemberStatus::Active.as_str().to_owned(),
            created_at: now - days * DAY,
            last_seen_at: now - hours * DAY / 24,
            updated_at: now - days * DAY,
        };
        store::members::add(&txn, row).await?;
    }
    create_keys(&txn, &created.key, &projects, now).await?;
    txn.commit().await?;
    Ok(DemoTenant { tenant_id: tenant, projects, key: created.secret, traces: 0 })
}

/// Returns the demo's provider as the credential for the models of other providers, so that control actions can repeat
/// their requests.
fn compatible_credential(
    app: &App,
    tenant: Uuid,
    created_at: i64,
) -> anyhow::Result<Option<provider_credential::Model>> {
    let provider = Provider::OpenAiCompatible.as_str();
    let rows = first_start::operator_credentials(
        tenant,
        &app.config.embedding,
        &app.config.judge,
        &app.sealer,
        created_at,
    )?;
    let Some(row) = rows.into_iter().find(|it| it.provider != provider) else { return Ok(None) };
    Ok(Some(provider_credential::Model {
        provider: provider.to_owned(),
        sealed_key: app.sealer.seal(PROVIDER_KEY.location(tenant, provider), "")?,
        embedding_model: None,
        ..row
    }))
}

/// Creates typical keys of a team: a read-only key, a service key and a revoked key.
async fn create_keys(
    txn: &impl Connection,
    first: &api_key::Model,
    projects: &[Uuid],
    now: i64,
) -> anyhow::Result<()> {
    let query = Scope::Query.as_str();
    for (name, project, scopes, days, revoked) in [
        ("dashboards", 0, query, 29, None),
        ("docs search, production", 1, "", 30, None),
        ("Benoit's laptop", 0, "", 20, Some(now - 3 * DAY)),
    ] {
        let secret = ApiKey::generate().map_err(|it| anyhow::anyhow!("no randomness: {it}"))?;
        let row = api_key::Model {
            id: new_id(),
            project_id: projects.get(project).copied().unwrap_or(first.project_id),
            hash: secret.hash().to_vec(),
            name: name.to_owned(),
            prefix: secret.prefix().to_owned(),
            scopes: scopes.to_owned(),
            role: Role::Member.as_str().to_owned(),
            created_at: now - days * DAY,
            revoked_at: revoked,
            ..first.clone()
        };
        store::keys::add(txn, row).await?;
    }
    Ok(())
}

impl DemoTenant {
    /// Returns a session token for an owner, valid for 30 days.
    ///
    /// # Errors
    ///
    /// Fails when the token cannot be signed.
    pub fn session(&self, app: &App) -> anyhow::Result<String> {
        app.sessions.issue(&Claims {
            sub: "local-owner".to_owned(),
            tenant_id: self.tenant_id.to_string(),
            role: Role::Owner.as_str().to_owned(),
            exp: app.clock.now() / 1_000_000 + 30 * 86_400,
            nbf: None,
        })
    }
}
