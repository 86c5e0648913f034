//! The operator's commands, which run beside a server on the same database.

mod backup;
mod check;
mod stats;

use std::path::PathBuf;

use anyhow::{Context, bail};
use api::{Plan, Role, Timestamp, audit::ActorKind};
use clap::Subcommand;
use serde_json::{Value, json};
use store::{Db, Transaction};
use uuid::Uuid;

use crate::{
    access::{
        master_key::MasterKey,
        seal::Sealer,
        session::{Claims, Sessions},
    },
    audit::{self, Actor, AuditAction, AuditEvent},
    clock::Clock,
    config::Config,
    first_start,
    reseal::{self, ResealResult},
};

/// A tenant was created.
const TENANT_CREATE: AuditAction = AuditAction::new("tenant.create", "tenant");
/// A tenant's plan was changed.
const TENANT_PLAN: AuditAction = AuditAction::new("tenant.plan", "tenant");
/// A session token was issued on the server's machine.
const TOKEN_ISSUE: AuditAction = AuditAction::new("token.issue", "tenant");

/// A command of the operator.
#[derive(Subcommand, Clone, Debug)]
pub enum AdminCommand {
    /// Create a tenant with the project `default` and a full-access key, which is shown once.
    CreateTenant {
        /// Name of the tenant.
        #[arg(long)]
        name: String,
        /// starter, pro, team, business or enterprise.
        #[arg(long)]
        plan: Plan,
        /// Name of the tenant at the identity provider.
        #[arg(long)]
        external_id: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Change the plan of a tenant.
    SetPlan {
        /// ID of the tenant.
        #[arg(long, value_parser = crate::config::values::parse_id)]
        tenant: Uuid,
        /// starter, pro, team, business or enterprise.
        #[arg(long)]
        plan: Plan,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List all tenants.
    ListTenants {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Issue a session token of the local issuer.
    IssueToken {
        /// ID of the tenant.
        #[arg(long, value_parser = crate::config::values::parse_id)]
        tenant: Uuid,
        /// owner, member or viewer.
        #[arg(long)]
        role: Role,
        /// User of the token [default: `local-` and the role].
        #[arg(long)]
        subject: Option<String>,
        /// Validity: a number with s, m, h or d.
        #[arg(long, default_value = "1h", value_parser = parse_seconds)]
        ttl: i64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Copy the SQLite database to a new file, beside a running server; the copy does not contain the
    /// master key.
    Backup {
        /// The file to write; an existing one is never overwritten.
        path: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check the integrity of the database, and counters, totals and roll-ups against the rows. The
    /// exit code is 1 if there is an inconsistency.
    Check {
        /// Rebuild the trace index of tenants whose index lacks entries. The server does it in the background.
        #[arg(long)]
        rebuild_index: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the sizes of tables and indexes, and the numbers of rows.
    Stats {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a new master key.
    GenerateKey,
    /// Seal every secret with the first master key, beside running servers: prepend a new key to
    /// LOUPE_MASTER_KEY of every server, run this, then remove the old key.
    RotateMasterKey {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// The output of a command, and whether it succeeded.
#[derive(Debug)]
pub struct CommandReport {
    /// The text for stdout.
    pub text: String,
    /// Whether the command succeeded.
    pub is_successful: bool,
}

impl CommandReport {
    fn done(text: String) -> Self {
        Self { text, is_successful: true }
    }
}

/// Runs a command and returns its output.
///
/// # Errors
///
/// Fails when the database fails or a named resource does not exist.
pub async fn run(command: AdminCommand, config: &Config, clock: &dyn Clock) -> anyhow::Result<CommandReport> {
    if !matches!(command, AdminCommand::GenerateKey | AdminCommand::CreateTenant { .. }) {
        require_database(config)?;
    }
    match command {
        AdminCommand::Backup { path, json } => backup::run(config, &path, json, clock).await,
        AdminCommand::Check { rebuild_index, json } => check::run(config, rebuild_index, json, clock).await,
        AdminCommand::Stats { json } => stats::run(config, json).await,
        other => run_change(other, config, clock).await.map(CommandReport::done),
    }
}

/// Runs a command that administers tenants, tokens and keys.
async fn run_change(command: AdminCommand, config: &Config, clock: &dyn Clock) -> anyhow::Result<String> {
    match command {
        AdminCommand::Backup { .. } | AdminCommand::Check { .. } | AdminCommand::Stats { .. } => {
            anyhow::bail!("this command changes nothing")
        }
        AdminCommand::GenerateKey => MasterKey::generate(),
        AdminCommand::RotateMasterKey { json } => {
            let sealer = Sealer::new(&master_key(config)?);
            let db = open_migrated(config).await?;
            let ResealResult { secrets, resealed } = reseal::run(&db, &sealer, operator, clock.now()).await?;
            let value = json!({"secrets": secrets, "resealed": resealed});
            Ok(render(json, &value, || {
                format!("{resealed} of {secrets} secrets were sealed with the first master key")
            }))
        }
        AdminCommand::CreateTenant { name, plan, external_id, json } => {
            let db = open_migrated(config).await?;
            let txn = db.begin().await?;
            let requested_external_id = external_id.clone();
            let created = first_start::create_tenant(&txn, &name, plan, external_id, None, clock.now()).await;
            let created = created.map_err(|error| match requested_external_id {
                Some(id) if store::is_duplicate(&error) => {
                    anyhow::anyhow!("another tenant has the external ID `{id}`")
                }
                _ => error.into(),
            })?;
            let event =
                AuditEvent::of(TENANT_CREATE).on(created.tenant_id).with(json!({"name": name, "plan": plan}));
            audit::record(&txn, operator(created.tenant_id), event, clock.now()).await?;
            commit(txn).await?;
            let key = json!({
                "id": created.key.id, "name": created.key.name, "prefix": created.key.prefix, "scopes": [],
                "created_at": Timestamp::from_micros(created.key.created_at), "secret": created.secret.reveal(),
            });
            let value =
                json!({"tenant_id": created.tenant_id, "project_id": created.project_id, "api_key": key});
            Ok(render(json, &value, || {
                format!(
                    "tenant   {}\nproject  {}\nkey      {}",
                    created.tenant_id,
                    created.project_id,
                    created.secret.reveal()
                )
            }))
        }
        AdminCommand::SetPlan { tenant, plan, json } => {
            let db = open_migrated(config).await?;
            let txn = db.begin().await?;
            let was = store::tenants::get(&txn, tenant).await?;
            let row = store::tenants::set_plan(&txn, tenant, plan).await?;
            let (was, row) = was.zip(row).with_context(|| format!("there is no tenant {tenant}"))?;
            let event =
                AuditEvent::of(TENANT_PLAN).on(tenant).with(json!({"from": was.plan, "to": row.plan}));
            audit::record(&txn, operator(tenant), event, clock.now()).await?;
            commit(txn).await?;
            Ok(render(json, &tenant_json(&row), || {
                format!("tenant {} is on {} now", row.tenant_id, row.plan)
            }))
        }
        AdminCommand::ListTenants { json } => {
            let db = open_migrated(config).await?;
            let rows = store::tenants::all(&db.read).await?;
            let value = json!({"tenants": rows.iter().map(tenant_json).collect::<Vec<_>>()});
            Ok(render(json, &value, || {
                rows.iter()
                    .map(|it| format!("{}  {:<10}  {}", it.tenant_id, it.plan, it.name))
                    .collect::<Vec<_>>()
                    .join("\n")
            }))
        }
        AdminCommand::IssueToken { tenant, role, subject, ttl, json } => {
            let sessions = Sessions::configured(config, || Ok(vec![master_key(config)?.derive("session")]))?;
            let db = open_migrated(config).await?;
            if store::tenants::get(&db.read, tenant).await?.is_none() {
                bail!(
                    "there is no tenant {tenant}; `loupe-server admin list-tenants` shows the existing ones"
                );
            }
            let expires = clock.now() / 1_000_000 + ttl;
            let claims = Claims {
                sub: subject.unwrap_or_else(|| format!("local-{role}")),
                tenant_id: tenant.to_string(),
                role: role.as_str().to_owned(),
                exp: expires,
                nbf: None,
            };
            let token = sessions.issue(&claims)?;
            let event =
                AuditEvent::of(TOKEN_ISSUE).on(tenant).with(json!({"subject": claims.sub, "role": role}));
            audit::record(&db.write, operator(tenant), event, clock.now()).await?;
            let value = json!({"token": token, "expires_at": Timestamp::from_micros(expires.saturating_mul(1_000_000))});
            Ok(render(json, &value, || token.clone()))
        }
    }
}

/// Fails if there is no database: a command in the wrong folder must not create one, or a master key.
fn require_database(config: &Config) -> anyhow::Result<()> {
    let is_there = config.database_url.is_some() || config.data_dir.join("loupe.db").exists();
    anyhow::ensure!(
        is_there,
        "there is no database in {}: set --data-dir or --database-url as for the server, or start the server first",
        config.data_dir.display()
    );
    Ok(())
}

/// Commits a change of access data, and invalidates the caches of running servers.
async fn commit(txn: Transaction) -> anyhow::Result<()> {
    store::settings::new_generation(&txn).await?;
    Ok(txn.commit().await?)
}

/// Returns the actor of audit records: the operating system's user.
fn operator(tenant_id: Uuid) -> Actor {
    #[expect(clippy::disallowed_methods, reason = "the user name is not a setting")]
    let account = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let id = account.unwrap_or_else(|_| "operator".to_owned());
    Actor { tenant_id, kind: ActorKind::Operator, id, request_id: None }
}

/// Returns the master key: configured, or stored in the data directory on SQLite.
///
/// # Errors
///
/// Fails when there is none and none can be created.
pub fn master_key(config: &Config) -> anyhow::Result<MasterKey> {
    if let Some(text) = &config.master_key {
        return MasterKey::parse(text);
    }
    anyhow::ensure!(
        !config.database_url().starts_with("postgres"),
        "PostgreSQL needs LOUPE_MASTER_KEY, the same for every process; `loupe-server admin generate-key` generates one"
    );
    make_data_dir(config)?;
    MasterKey::in_directory(&config.data_dir)
}

/// Creates the data directory if it does not exist, readable by its owner only, because it contains
/// every trace.
///
/// # Errors
///
/// Fails when it cannot be created.
pub fn make_data_dir(config: &Config) -> anyhow::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let created = builder.create(&config.data_dir);
    created.with_context(|| format!("can't create the data directory {}", config.data_dir.display()))
}

async fn open_migrated(config: &Config) -> anyhow::Result<Db> {
    if config.database_url.is_none() {
        make_data_dir(config)?;
    }
    let db = Db::open(&config.database_url(), None, 2).await.context("can't open the database")?;
    db.migrate().await.context("can't bring the schema up to date")?;
    Ok(db)
}

/// Opens a database without migrating its schema, because the new version also makes the backup before
/// an upgrade.
async fn open_existing(config: &Config) -> anyhow::Result<Db> {
    let url = config.database_url();
    if let Some(path) = url.strip_prefix("sqlite://") {
        let path = path.split('?').next().unwrap_or_default();
        anyhow::ensure!(
            std::path::Path::new(path).is_file(),
            "there is no database at {path}: set --data-dir or --database-url"
        );
    }
    Db::open(&url, None, 1).await.context("can't open the database")
}

fn tenant_json(row: &entities::tenant::Model) -> Value {
    json!({
        "id": row.tenant_id, "name": row.name, "plan": row.plan, "external_id": row.external_id,
        "created_at": Timestamp::from_micros(row.created_at),
    })
}

fn render(json: bool, value: &Value, text: impl FnOnce() -> String) -> String {
    if json { value.to_string() } else { text() }
}

/// Parses a duration such as `90s`, `15m`, `1h` or `7d`, in seconds.
fn parse_seconds(text: &str) -> Result<i64, String> {
    let unit = text.chars().last().map_or(0, |it| match it {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => 0,
    });
    let number = text.get(..text.len().saturating_sub(1)).and_then(|it| it.parse::<i64>().ok());
    match number.and_then(|it| it.checked_mul(unit)) {
        Some(seconds) if (1..=365 * 86_400).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number with s, m, h or d, at most 365d".to_owned()),
    }
}
