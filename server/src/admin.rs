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
    audit::{self, Action, Actor, Event},
    clock::Clock,
    config::Config,
    first_start,
    reseal::{self, Resealed},
};

/// A tenant was created.
pub const TENANT_CREATE: Action = Action::new("tenant.create", "tenant");
/// A tenant's plan was changed.
pub const TENANT_PLAN: Action = Action::new("tenant.plan", "tenant");
/// A session token was issued on the server's machine.
pub const TOKEN_ISSUE: Action = Action::new("token.issue", "tenant");

/// A command of the operator.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
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
        #[arg(long, value_parser = crate::config::values::id)]
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
        #[arg(long, value_parser = crate::config::values::id)]
        tenant: Uuid,
        /// owner, member or viewer.
        #[arg(long)]
        role: Role,
        /// User of the token [default: `local-` and the role].
        #[arg(long)]
        subject: Option<String>,
        /// Validity: a number with s, m, h or d.
        #[arg(long, default_value = "1h", value_parser = seconds)]
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
    /// Seal every secret with the first master key, beside running servers: put a new key in front of
    /// LOUPE_MASTER_KEY everywhere, run this, then remove the old key.
    RotateMasterKey {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// The output of a command, and whether it succeeded.
#[derive(Debug)]
pub struct Report {
    /// The text for stdout.
    pub text: String,
    /// Whether the command succeeded.
    pub is_good: bool,
}

impl Report {
    fn done(text: String) -> Self {
        Self { text, is_good: true }
    }
}

/// Runs a command and returns its output.
///
/// # Errors
///
/// Fails when the database fails or a named resource does not exist.
pub async fn run(command: Command, config: &Config, clock: &dyn Clock) -> anyhow::Result<Report> {
    if !matches!(command, Command::GenerateKey | Command::CreateTenant { .. }) {
        ensure_there(config)?;
    }
    match command {
        Command::Backup { path, json } => backup::run(config, &path, json, clock).await,
        Command::Check { json } => check::run(config, json, clock).await,
        Command::Stats { json } => stats::run(config, json).await,
        other => change(other, config, clock).await.map(Report::done),
    }
}

/// Runs a command that administers tenants, tokens and keys.
async fn change(command: Command, config: &Config, clock: &dyn Clock) -> anyhow::Result<String> {
    match command {
        Command::Backup { .. } | Command::Check { .. } | Command::Stats { .. } => {
            anyhow::bail!("this command changes nothing")
        }
        Command::GenerateKey => MasterKey::generate(),
        Command::RotateMasterKey { json } => {
            let sealer = Sealer::new(&master_key(config)?);
            let db = open(config).await?;
            let Resealed { secrets, resealed } = reseal::run(&db, &sealer, operator, clock.now()).await?;
            let value = json!({"secrets": secrets, "resealed": resealed});
            Ok(show(json, &value, || {
                format!("{resealed} of {secrets} secrets were sealed with the first master key")
            }))
        }
        Command::CreateTenant { name, plan, external_id, json } => {
            let db = open(config).await?;
            let txn = db.begin().await?;
            let taken = external_id.clone();
            let made = first_start::create_tenant(&txn, &name, plan, external_id, None, clock.now()).await;
            let made = made.map_err(|error| match taken {
                Some(id) if store::is_duplicate(&error) => {
                    anyhow::anyhow!("another tenant has the external ID `{id}`")
                }
                _ => error.into(),
            })?;
            let event = Event::of(TENANT_CREATE).on(made.tenant_id).with(json!({"name": name, "plan": plan}));
            audit::record(&txn, operator(made.tenant_id), event, clock.now()).await?;
            commit(txn).await?;
            let key = json!({
                "id": made.key.id, "name": made.key.name, "prefix": made.key.prefix, "scopes": [],
                "created_at": Timestamp::from_micros(made.key.created_at), "secret": made.secret.reveal(),
            });
            let value = json!({"tenant_id": made.tenant_id, "project_id": made.project_id, "api_key": key});
            Ok(show(json, &value, || {
                format!(
                    "tenant   {}\nproject  {}\nkey      {}",
                    made.tenant_id,
                    made.project_id,
                    made.secret.reveal()
                )
            }))
        }
        Command::SetPlan { tenant, plan, json } => {
            let db = open(config).await?;
            let txn = db.begin().await?;
            let was = store::tenants::get(&txn, tenant).await?;
            let row = store::tenants::set_plan(&txn, tenant, plan).await?;
            let (was, row) = was.zip(row).with_context(|| format!("there is no tenant {tenant}"))?;
            let event = Event::of(TENANT_PLAN).on(tenant).with(json!({"from": was.plan, "to": row.plan}));
            audit::record(&txn, operator(tenant), event, clock.now()).await?;
            commit(txn).await?;
            Ok(show(json, &tenant_json(&row), || format!("tenant {} is on {} now", row.tenant_id, row.plan)))
        }
        Command::ListTenants { json } => {
            let db = open(config).await?;
            let rows = store::tenants::all(&db.read).await?;
            let value = json!({"tenants": rows.iter().map(tenant_json).collect::<Vec<_>>()});
            Ok(show(json, &value, || {
                rows.iter()
                    .map(|it| format!("{}  {:<10}  {}", it.tenant_id, it.plan, it.name))
                    .collect::<Vec<_>>()
                    .join("\n")
            }))
        }
        Command::IssueToken { tenant, role, subject, ttl, json } => {
            let sessions = Sessions::configured(config, || Ok(vec![master_key(config)?.derive("session")]))?;
            let db = open(config).await?;
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
            let event = Event::of(TOKEN_ISSUE).on(tenant).with(json!({"subject": claims.sub, "role": role}));
            audit::record(&db.write, operator(tenant), event, clock.now()).await?;
            let value = json!({"token": token, "expires_at": Timestamp::from_micros(expires.saturating_mul(1_000_000))});
            Ok(show(json, &value, || token.clone()))
        }
    }
}

/// Fails if there is no database: a command in the wrong folder must not create one, or a master key.
fn ensure_there(config: &Config) -> anyhow::Result<()> {
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
/// Fails when it can't be created.
pub fn make_data_dir(config: &Config) -> anyhow::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let made = builder.create(&config.data_dir);
    made.with_context(|| format!("can't create the data directory {}", config.data_dir.display()))
}

async fn open(config: &Config) -> anyhow::Result<Db> {
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

fn show(json: bool, value: &Value, text: impl FnOnce() -> String) -> String {
    if json { value.to_string() } else { text() }
}

/// Parses a duration such as `90s`, `15m`, `1h` or `7d`, in seconds.
fn seconds(text: &str) -> Result<i64, String> {
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
