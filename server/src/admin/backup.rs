//! `admin backup`: makes a consistent copy of a SQLite database beside a running server.

use std::{
    fs::{self, File, OpenOptions},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};
use serde_json::json;
use store::{Db, backup, new_id};

use super::{CommandReport, open_existing, operator, render};
use crate::{
    audit::{self, AuditAction, AuditEvent},
    clock::Clock,
    config::Config,
};

/// The database was copied by `admin backup`.
const DATABASE_BACKUP: AuditAction = AuditAction::new("database.backup", "database");

/// Space in bytes that must stay free on the disk beside the copy.
const SPARE_BYTES: u64 = 16 * 1024 * 1024;

/// Copies the database to `path`.
///
/// # Errors
///
/// Fails when the database is PostgreSQL, the path exists, there is not enough space, or the copy
/// fails. A failed copy is removed.
pub async fn run(
    config: &Config,
    path: &Path,
    json: bool,
    clock: &dyn Clock,
) -> anyhow::Result<CommandReport> {
    reject_postgres(config)?;
    ensure!(
        fs::symlink_metadata(path).is_err(),
        "{} exists already and is not overwritten: choose another path",
        path.display()
    );
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    ensure!(folder.is_dir(), "the folder {} does not exist: create it first", folder.display());
    let db = open_existing(config).await?;
    let needed = backup::copy_bytes(&db).await?;
    require_free_space(folder, needed)?;

    let copy = PartialCopy::create(path, folder)?;
    let target = copy.0.to_str().with_context(|| format!("{} is not UTF-8", copy.0.display()))?;
    let started_at = clock.now();
    backup::copy_into(&db, target).await.context("the copy could not be made")?;
    let bytes = copy.publish(path, folder)?;
    let recorded = record(&db, bytes, clock.now()).await;
    recorded.with_context(|| {
        format!("{} is complete, but the audit record of it could not be written", path.display())
    })?;

    let key_file = config.data_dir.join("master.key");
    let key_location = match &config.master_key {
        Some(_) => "the setting LOUPE_MASTER_KEY".to_owned(),
        None => key_file.display().to_string(),
    };
    let value = json!({
        "path": path, "bytes": bytes, "as_of": api::Timestamp::from_micros(started_at),
        "master_key_included": false, "master_key": key_location,
    });
    Ok(CommandReport::done(render(json, &value, || {
        format!(
            "{}: {}, complete and flushed to the disk\n\
             The master key is not included. Keep a copy of {key_location} in another place: without the key \
             the stored provider credentials can't be read",
            path.display(),
            super::stats::size(i64::try_from(bytes).unwrap_or(i64::MAX)),
        )
    })))
}

/// Explains the backup of PostgreSQL, which has its own program.
fn reject_postgres(config: &Config) -> anyhow::Result<()> {
    let url = config.database_url();
    if !url.starts_with("postgres") {
        return Ok(());
    }
    bail!(
        "admin backup copies a SQLite file, and this database is PostgreSQL: back it up with \
         `pg_dump --format=custom --file=loupe.dump \"$LOUPE_DATABASE_URL\"`, or archive its write-ahead log; \
         keep LOUPE_MASTER_KEY in another place"
    )
}

/// Checks that the disk has room for the copy.
fn require_free_space(folder: &Path, needed: u64) -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(folder)
            .with_context(|| format!("can't determine the free space in {}", folder.display()))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let shown = |bytes: u64| super::stats::size(i64::try_from(bytes).unwrap_or(i64::MAX));
        ensure!(
            free >= needed.saturating_add(SPARE_BYTES),
            "the backup needs {}, and {} has {} free: free some space, or choose another disk",
            shown(needed),
            folder.display(),
            shown(free)
        );
    }
    #[cfg(not(unix))]
    let _ = (folder, needed, SPARE_BYTES);
    Ok(())
}

/// Adds the backup to every tenant's audit log, because a copy of its data has left the server's directory.
async fn record(db: &Db, bytes: u64, now: i64) -> anyhow::Result<()> {
    let txn = db.begin().await?;
    for tenant in store::tenants::all(&txn).await? {
        let event = AuditEvent::of(DATABASE_BACKUP).with(json!({"bytes": bytes}));
        audit::record(&txn, operator(tenant.tenant_id), event, now).await?;
    }
    Ok(txn.commit().await?)
}

/// An incomplete copy beside its destination. Dropping the value removes it.
struct PartialCopy(PathBuf);

impl PartialCopy {
    /// Creates an empty file that only its owner may read.
    fn create(path: &Path, folder: &Path) -> anyhow::Result<Self> {
        let name = path.file_name().with_context(|| format!("{} names no file", path.display()))?;
        let partial = folder.join(format!(".{}.{}.partial", name.to_string_lossy(), new_id().simple()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&partial).with_context(|| format!("can't write to {}", folder.display()))?;
        Ok(Self(partial))
    }

    /// Flushes the copy and gives it its name, unless the name was taken meanwhile. Returns its size.
    fn publish(self, path: &Path, folder: &Path) -> anyhow::Result<u64> {
        let file = OpenOptions::new().write(true).open(&self.0)?;
        file.sync_all().context("the copy could not be flushed to the disk")?;
        let bytes = file.metadata()?.len();
        // A hard link fails if the name exists. A file system without hard links gets a rename.
        match fs::hard_link(&self.0, path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                bail!("{} was created meanwhile, and is not overwritten", path.display())
            }
            Err(_) => {
                ensure!(
                    fs::symlink_metadata(path).is_err(),
                    "{} was created meanwhile, and is not overwritten",
                    path.display()
                );
                fs::rename(&self.0, path).with_context(|| format!("can't write {}", path.display()))?;
            }
        }
        drop(self);
        // The name is durable once its folder is flushed.
        #[cfg(unix)]
        File::open(folder)?.sync_all().context("the folder could not be flushed to the disk")?;
        #[cfg(not(unix))]
        let _ = (folder, File::open(path));
        Ok(bytes)
    }
}

impl Drop for PartialCopy {
    fn drop(&mut self) {
        // The file has its final name, or the error that prevented it is reported already.
        _ = fs::remove_file(&self.0);
        let mut journal = self.0.clone().into_os_string();
        journal.push("-journal");
        _ = fs::remove_file(journal);
    }
}
