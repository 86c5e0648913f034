//! A PostgreSQL server of one test, which may break it.

use std::{
    net::TcpListener,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use sqlx::{Connection, PgConnection};
use tests::hang::HANG_TIMEOUT;

/// The ID of the user and the group that PostgreSQL runs as, because it refuses to run as root.
const UNPRIVILEGED_ID: u32 = 65_534;

/// A running server with an empty cluster, stopped when it is dropped.
pub struct DedicatedPostgres {
    server: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl DedicatedPostgres {
    /// Starts a server with the programs of the tests' common server. Returns none where these are not on
    /// this machine or the test is not run by root, and prints the reason.
    pub async fn start() -> Option<Self> {
        let programs = programs().await;
        if !programs.join("initdb").is_file() {
            println!("skipped, the programs of PostgreSQL are not here: {}", programs.display());
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        if !make_owner(&data) {
            println!("skipped, only root can start a server as another user");
            return None;
        }
        let initdb = command(&programs.join("initdb"))
            .arg("-D")
            .arg(&data)
            .args(["-U", "app", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"])
            .output()
            .unwrap();
        assert!(initdb.status.success(), "{}", String::from_utf8_lossy(&initdb.stderr));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = command(&programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "max_connections=50"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Self { server, port, _folder: folder };
        let began = Instant::now();
        while PgConnection::connect(&started.url("postgres")).await.is_err() {
            assert!(began.elapsed() < HANG_TIMEOUT, "PostgreSQL did not start");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Some(started)
    }

    /// Creates a database whose files are in `folder`, and returns its URL.
    pub async fn create_database_in(&self, folder: &Path) -> String {
        assert!(make_owner(folder));
        let mut connection = PgConnection::connect(&self.url("postgres")).await.unwrap();
        for statement in [
            format!("CREATE TABLESPACE small LOCATION '{}'", folder.display()),
            "CREATE DATABASE loupe TABLESPACE small".to_owned(),
        ] {
            sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
        }
        self.url("loupe")
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://app@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for DedicatedPostgres {
    fn drop(&mut self) {
        // An immediate shutdown, because the cluster is temporary.
        _ = Command::new("kill").args(["-QUIT", &self.server.id().to_string()]).status();
        _ = self.server.wait();
    }
}

/// Returns the folder of the programs of the tests' common server.
async fn programs() -> PathBuf {
    let url = std::env::var(tests::postgres::URL_VARIABLE_NAME).unwrap();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let folder: String = sqlx::query_scalar("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    folder.into()
}

fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").uid(UNPRIVILEGED_ID).gid(UNPRIVILEGED_ID);
    command
}

/// Makes the server's user the owner of a folder that it can reach. Returns false if that is not allowed.
fn make_owner(folder: &Path) -> bool {
    let reachable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.parent().unwrap(), reachable).unwrap();
    let private = std::fs::Permissions::from_mode(0o700);
    chown(folder, Some(UNPRIVILEGED_ID), Some(UNPRIVILEGED_ID)).is_ok()
        && std::fs::set_permissions(folder, private).is_ok()
}
