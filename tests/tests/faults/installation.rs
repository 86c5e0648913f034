//! A server process with two tenants: one attacks, the other must not be affected.

#![allow(dead_code, reason = "each attack uses some of the helpers")]

use tests::{
    Caller, On,
    postgres::Database,
    process::{ServerProcess, Setup},
};

/// Limits the resident memory under any attack, in MiB.
pub const MAX_RESIDENT_MIB: u64 = 400;

/// A running server, its settings and its two tenants.
pub struct Installation {
    /// The command that starts the server again.
    pub setup: Setup,
    /// The running process.
    pub server: ServerProcess,
    /// API key of the attacking tenant, on the plan Starter.
    pub attacker: String,
    /// API key of the other tenant, on the plan Pro.
    pub bystander: String,
    /// The folder that the server runs in.
    pub folder: tempfile::TempDir,
    /// The database of an installation on PostgreSQL.
    pub database: Option<Database>,
}

impl Installation {
    /// Starts a server on an empty database and creates both tenants.
    pub async fn on(database: On) -> Self {
        Self::with(database, &[]).await
    }

    /// Returns the same with these environment variables.
    pub async fn with(database: On, variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::create_for(database).await;
        let mut setup = Setup::new(folder.path());
        if let Some(database) = &database {
            setup = setup.with_postgres(&database.url());
        }
        for (name, value) in variables {
            setup = setup.with(name, value);
        }
        let server = setup.start();
        let attacker = tenant(&setup, "attacker", "starter");
        let bystander = tenant(&setup, "bystander", "pro");
        Self { setup, server, attacker, bystander, folder, database }
    }

    /// Returns a client with the attacking tenant's key.
    pub fn attacker(&self) -> Caller {
        Caller::new(&self.server.url, Some(&self.attacker))
    }

    /// Returns a client with the other tenant's key.
    pub fn bystander(&self) -> Caller {
        Caller::new(&self.server.url, Some(&self.bystander))
    }

    /// Returns the server's resident memory in MiB.
    pub fn resident_mib(&self) -> u64 {
        self.memory_mib("VmRSS:")
    }

    /// Returns the server's peak resident memory since its start, in MiB.
    pub fn peak_resident_mib(&self) -> u64 {
        self.memory_mib("VmHWM:")
    }

    fn memory_mib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap();
        let line = status.lines().find_map(|it| it.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }
}

/// Creates a tenant and returns its API key.
fn tenant(setup: &Setup, name: &str, plan: &str) -> String {
    let made = setup.run(&["admin", "create-tenant", "--name", name, "--plan", plan, "--json"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    made["api_key"]["secret"].as_str().unwrap().to_owned()
}

/// Returns whether the attacks run in full size.
#[allow(clippy::disallowed_methods, reason = "the size of a test run comes from the environment")]
pub fn full_size() -> bool {
    std::env::var("LOUPE_TEST_FAULTS").is_ok_and(|it| it == "full")
}
