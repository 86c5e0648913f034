//! Tracks whether the database can be written to.
//!
//! Three faults are checked, because statements report them late or not at all: a full disk, a database file
//! that was deleted or replaced, and a PostgreSQL server that does not answer. During a fault, writes get 503
//! and `/readyz` fails. A full disk and an unreachable server recover without help; a replaced file needs a
//! restart.

use std::{
    future::Future,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use sea_orm::{DbErr, RuntimeErr};
use sqlx::{ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// The free disk space below which SQLite accepts no writes. It exceeds what one group of requests writes,
/// so that a transaction rarely meets a full disk and deleting still works.
const MIN_FREE_BYTES: u64 = 16 * 1024 * 1024;
/// Size of the file that tests whether the disk has space again.
const PROBE_BYTES: usize = 1024 * 1024;
/// Pause between two checks of the database file and its disk.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Pause between two checks of PostgreSQL.
const PING_INTERVAL: Duration = Duration::from_millis(500);
/// PostgreSQL counts as unreachable when it does not answer for this long. Together with the interval, this
/// is well below the 5 s within which a request must be refused.
const PING_TIMEOUT: Duration = Duration::from_millis(2_500);
/// Limits the first attempt to reach PostgreSQL again. Each further one may take twice as long, because a
/// machine that is busy after an outage needs longer to open a connection.
const RETRY_TIMEOUT: Duration = Duration::from_secs(1);
/// Limits all attempts to reach PostgreSQL again.
const MAX_RETRY_TIMEOUT: Duration = Duration::from_secs(8);
/// A connection that is released later than this after the last answer is tested before it is reused.
const FRESH_ANSWER_AGE: Duration = Duration::from_millis(700);
/// Limits the test of such a connection.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The reason why the database cannot be used at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// PostgreSQL does not answer.
    #[error("the database can't be reached at the moment; try again shortly")]
    Unreachable,
    /// The disk under the SQLite file has no space.
    #[error("the disk of the database is full; nothing is stored until there is space again")]
    DiskFull,
    /// The SQLite file was deleted or replaced.
    #[error(
        "the database file was deleted or replaced while the server ran; writes are refused until the operator restores it and restarts the server"
    )]
    FileReplaced,
}

impl Unavailable {
    /// Extracts the reason from an error of a statement or of [`Health`].
    pub fn of(error: &DbErr) -> Option<Self> {
        let (DbErr::Conn(RuntimeErr::SqlxError(source))
        | DbErr::Exec(RuntimeErr::SqlxError(source))
        | DbErr::Query(RuntimeErr::SqlxError(source))) = error
        else {
            return None;
        };
        let sqlx::Error::Io(error) = source.as_ref() else { return None };
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<Unavailable> for sqlx::Error {
    fn from(reason: Unavailable) -> Self {
        Self::Io(io::Error::other(reason))
    }
}

impl From<Unavailable> for DbErr {
    fn from(reason: Unavailable) -> Self {
        Self::Conn(RuntimeErr::SqlxError(sqlx::Error::from(reason).into()))
    }
}

/// The state of the database, shared by its connection pools, the requests and the jobs.
#[derive(Clone, Debug)]
pub struct Health(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: watch::Sender<State>,
    file: OnceLock<DatabaseFile>,
    /// Whether a transaction failed in a way that a full disk explains.
    write_failed: AtomicBool,
    check_now: Notify,
    /// When PostgreSQL last answered.
    answered: Mutex<Instant>,
    is_monitored: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    fault: Option<Unavailable>,
    /// When PostgreSQL became unreachable last. It identifies the outage: a task that is scheduled late may not
    /// see the fault itself, which ends with the next ping.
    unreachable_since: Option<Instant>,
}

impl Default for Health {
    fn default() -> Self {
        Self(Arc::new(Inner {
            state: watch::Sender::default(),
            file: OnceLock::new(),
            write_failed: AtomicBool::new(false),
            check_now: Notify::new(),
            answered: Mutex::new(Instant::now()),
            is_monitored: AtomicBool::new(false),
        }))
    }
}

impl Health {
    /// Returns the current fault, if any.
    pub fn unavailable(&self) -> Option<Unavailable> {
        self.0.state.borrow().fault
    }

    /// Returns an error while writes cannot be stored. This also looks at the database file itself, so that
    /// no write into a deleted file is acknowledged.
    ///
    /// # Errors
    /// Returns the current fault.
    pub fn check_writable(&self) -> Result<(), Unavailable> {
        self.check_file()?;
        self.unavailable().map_or(Ok(()), Err)
    }

    /// Returns an error when the database file is no longer the one that was opened.
    ///
    /// # Errors
    /// Fails with [`Unavailable::FileReplaced`], from the first time on.
    pub fn check_file(&self) -> Result<(), Unavailable> {
        let Some(file) = self.0.file.get() else { return Ok(()) };
        if self.unavailable() == Some(Unavailable::FileReplaced) {
            return Err(Unavailable::FileReplaced);
        }
        match file.changed() {
            None => Ok(()),
            Some(path) => {
                self.set(
                    Some(Unavailable::FileReplaced),
                    &format!("{} was deleted or replaced", path.display()),
                );
                Err(Unavailable::FileReplaced)
            }
        }
    }

    /// Runs `work` unless PostgreSQL is unreachable or becomes unreachable meanwhile. A statement on a
    /// broken connection would wait for a quarter of an hour.
    ///
    /// # Errors
    /// Fails with [`Unavailable::Unreachable`]; `work` was dropped.
    pub async fn while_reachable<T>(&self, work: impl Future<Output = T>) -> Result<T, Unavailable> {
        if !self.0.is_monitored.load(SeqCst) {
            return Ok(work.await);
        }
        let mut state = self.0.state.subscribe();
        let last_outage = state.borrow().unreachable_since;
        let is_outage =
            |it: &State| it.fault == Some(Unavailable::Unreachable) || it.unreachable_since != last_outage;
        tokio::select! {
            biased;
            _ = state.wait_for(is_outage) => Err(Unavailable::Unreachable),
            done = work => Ok(done),
        }
    }

    /// Records that a transaction failed and could not be rolled back, as on a full disk.
    pub fn note_failed_write(&self) {
        self.0.write_failed.store(true, SeqCst);
        self.0.check_now.notify_one();
    }

    /// Records which file was opened. The pool calls this for its first connection and for every new
    /// writing connection, because the write-ahead log may be a new file then.
    ///
    /// # Errors
    /// Fails when the file cannot be found or is not the one that was opened first.
    pub fn opened(&self, path: &Path, writes: bool) -> Result<(), sqlx::Error> {
        let file = self.0.file.get_or_init(|| DatabaseFile::new(path));
        if writes { Ok(file.remember()?) } else { self.check_file().map_err(sqlx::Error::from) }
    }

    /// Returns whether a connection to PostgreSQL of this age was open when the last outage began. It may be
    /// broken without an error: a statement on it would wait for a quarter of an hour.
    pub fn predates_outage(&self, age: Duration) -> bool {
        let since = self.0.state.borrow().unreachable_since;
        since.is_some_and(|it| it.elapsed() < age)
    }

    /// Returns whether a released connection to PostgreSQL of this age may be reused. A connection that was
    /// released while the server did not answer is tested, because its last statement may still be waiting.
    pub async fn is_reusable(&self, connection: &mut PgConnection, age: Duration) -> bool {
        if self.unavailable().is_some() || self.predates_outage(age) {
            return false;
        }
        let answered = *self.0.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.0.is_monitored.load(SeqCst) || answered.elapsed() < FRESH_ANSWER_AGE {
            return true;
        }
        matches!(tokio::time::timeout(RELEASE_TIMEOUT, connection.ping()).await, Ok(Ok(())))
    }

    /// Watches the SQLite file and its disk until `stopping`.
    pub async fn watch_file(self, stopping: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(FILE_CHECK_INTERVAL) => {}
                () = self.0.check_now.notified() => {}
                () = stopping.cancelled() => return,
            }
            if self.check_file().is_err() {
                continue;
            }
            let Some(folder) = self.0.file.get().map(DatabaseFile::folder) else { continue };
            // The system call can take long on a network file system.
            let is_full = self.unavailable().is_some();
            let suspected = is_full || self.0.write_failed.swap(false, SeqCst);
            let found = tokio::task::spawn_blocking(move || find_space(&folder, suspected)).await;
            match found {
                Ok(Ok(())) => self.set(None, "there is space"),
                Ok(Err(why)) => self.set(Some(Unavailable::DiskFull), &why.to_string()),
                Err(error) => tracing::warn!(%error, "the space on the disk could not be checked"),
            }
        }
    }

    /// Pings PostgreSQL on a connection of its own until `stopping`.
    pub async fn watch_postgres(self, options: PgConnectOptions, stopping: CancellationToken) {
        let (mut connection, mut retry_timeout) = (None, RETRY_TIMEOUT);
        self.0.is_monitored.store(true, SeqCst);
        loop {
            // The first attempts are short while the server is away, because it may be back meanwhile.
            let timeout = if self.unavailable().is_some() { retry_timeout } else { PING_TIMEOUT };
            let pinged = tokio::select! {
                pinged = tokio::time::timeout(timeout, ping(&options, &mut connection)) => pinged,
                () = stopping.cancelled() => break,
            };
            match pinged {
                Ok(()) => {
                    retry_timeout = RETRY_TIMEOUT;
                    *self.0.answered.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                    self.set(None, "it answers");
                }
                Err(_) => {
                    // A late answer would belong to a statement that was abandoned.
                    connection = None;
                    if self.unavailable().is_some() {
                        retry_timeout = (2 * retry_timeout).min(MAX_RETRY_TIMEOUT);
                    }
                    self.set(Some(Unavailable::Unreachable), "it does not answer");
                }
            }
            if tokio::time::timeout(PING_INTERVAL, stopping.cancelled()).await.is_ok() {
                break;
            }
        }
        // From here on requests run without a limit, because no ping would report a recovery.
        self.0.is_monitored.store(false, SeqCst);
        if let Some(connection) = connection {
            _ = tokio::time::timeout(PING_INTERVAL, connection.close()).await;
        }
    }

    /// Changes the state and logs a change. A replaced file stays replaced until the restart.
    fn set(&self, fault: Option<Unavailable>, why: &str) {
        let changed = self.0.state.send_if_modified(|now| {
            let changes = now.fault != fault && now.fault != Some(Unavailable::FileReplaced);
            if changes {
                now.fault = fault;
                if fault == Some(Unavailable::Unreachable) {
                    now.unreachable_since = Some(Instant::now());
                }
            }
            changes
        });
        match fault {
            _ if !changed => {}
            None => tracing::info!(why, "the database can be used again"),
            Some(Unavailable::Unreachable) => {
                tracing::error!(why, "the database can't be reached; requests are refused")
            }
            Some(Unavailable::DiskFull) => {
                tracing::error!(why, "the disk of the database is full; writes are refused")
            }
            Some(Unavailable::FileReplaced) => tracing::error!(
                why,
                "the database file was deleted or replaced while the server runs; writes are refused until it is restarted"
            ),
        }
    }
}

/// Pings PostgreSQL until it answers, on a new connection if necessary.
async fn ping(options: &PgConnectOptions, connection: &mut Option<PgConnection>) {
    loop {
        let open = match connection.take() {
            Some(open) => Ok(open),
            None => options.connect().await,
        };
        if let Ok(mut open) = open
            && open.ping().await.is_ok()
        {
            *connection = Some(open);
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A SQLite database: its file, its write-ahead log and the log's index.
#[derive(Debug)]
struct DatabaseFile {
    paths: [PathBuf; 3],
    /// The identities of the files when they were opened.
    opened: Mutex<[Option<FileId>; 3]>,
}

/// Identifies a file independently of its path: device and inode.
type FileId = (u64, u64);

impl DatabaseFile {
    fn new(path: &Path) -> Self {
        let with = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        Self { paths: [path.to_owned(), with("-wal"), with("-shm")], opened: Mutex::default() }
    }

    fn folder(&self) -> PathBuf {
        let folder = self.paths[0].parent().filter(|it| !it.as_os_str().is_empty());
        folder.unwrap_or(Path::new(".")).to_owned()
    }

    /// Records the files that are open now. The database file must be the one that was opened first.
    fn remember(&self) -> Result<(), Unavailable> {
        let now = [0, 1, 2].map(|it| file_id(&self.paths[it]));
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened[0].is_some() && opened[0] != now[0] {
            return Err(Unavailable::FileReplaced);
        }
        *opened = now;
        Ok(())
    }

    /// Returns the path of a file that differs from the one that was opened.
    fn changed(&self) -> Option<&Path> {
        let opened = *self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let changed =
            |(path, opened): &(&PathBuf, Option<FileId>)| opened.is_some() && file_id(path) != *opened;
        self.paths.iter().zip(opened).find(changed).map(|it| it.0.as_path())
    }
}

// The file is not opened to read its identity: closing it would drop SQLite's locks in this process.
#[cfg(unix)]
fn file_id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn file_id(_: &Path) -> Option<FileId> {
    None
}

/// Returns an error when the disk has too little space or, if `suspected`, when a file cannot be written.
fn find_space(folder: &Path, suspected: bool) -> io::Result<()> {
    if let Some(free) = free_bytes(folder)
        && free < MIN_FREE_BYTES
    {
        let (free, needed) = (free / 1024, MIN_FREE_BYTES / 1024);
        return Err(io::Error::other(format!("{free} KiB are free, {needed} KiB are needed")));
    }
    if !suspected {
        return Ok(());
    }
    // A disk quota can be used up although the disk has free space.
    let probe = folder.join("loupe-space-probe");
    let written = write_probe(&probe);
    // The file does not exist if the write failed early.
    _ = std::fs::remove_file(&probe);
    written
}

fn write_probe(path: &Path) -> io::Result<()> {
    std::fs::write(path, vec![1; PROBE_BYTES])?;
    std::fs::File::open(path)?.sync_all()
}

#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use std::{future, pin::pin};

    use super::*;

    #[tokio::test]
    async fn work_during_an_outage_that_has_ended_is_dropped() {
        let health = Health::default();
        health.0.is_monitored.store(true, SeqCst);
        let mut work = pin!(health.while_reachable(future::pending::<()>()));
        tokio::select! {
            biased;
            _ = &mut work => unreachable!("the work does not end"),
            () = future::ready(()) => {}
        }
        health.set(Some(Unavailable::Unreachable), "it does not answer");
        health.set(None, "it answers");
        assert_eq!(work.await, Err(Unavailable::Unreachable));
        assert_eq!(health.while_reachable(future::ready(1)).await, Ok(1));
    }

    #[test]
    fn connection_from_before_the_last_outage_is_not_reused() {
        let health = Health::default();
        assert!(!health.predates_outage(Duration::from_secs(60)));
        health.set(Some(Unavailable::Unreachable), "it does not answer");
        health.set(None, "it answers");
        assert!(health.predates_outage(Duration::from_secs(60)));
        assert!(!health.predates_outage(Duration::ZERO));
    }
}
