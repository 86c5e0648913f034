//! The built server as a process that may reach receivers on this machine.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use server::access::{api_key::ApiKey, master_key::MasterKey};
use tests::{
    Caller, On,
    authority::Authority,
    postgres::Database,
    process::{ServerProcess, Setup},
};

use crate::{installation::WEBHOOK_SECRET, receiver::Receiver};

/// A server process that trusts an authority.
pub struct Process {
    pub authority: Authority,
    server: Option<ServerProcess>,
    setup: Setup,
    key: String,
    _folder: tempfile::TempDir,
    _database: Option<Database>,
}

impl Process {
    /// Starts a server on an empty database.
    pub async fn start(database: On) -> Self {
        Self::start_with(database, &[]).await
    }

    /// Starts a server on an empty database with these environment variables.
    pub async fn start_with(database: On, variables: &[(&str, &str)]) -> Self {
        let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, &authority.pem).unwrap();
        let key = ApiKey::generate().unwrap().reveal().to_owned();
        let mut setup = Setup::new(folder.path())
            .with("LOUPE_BOOTSTRAP_API_KEY", &key)
            .with("LOUPE_EGRESS_ALLOW_CIDRS", "127.0.0.1/32")
            .with("LOUPE_EGRESS_CA_FILE", file.to_str().unwrap());
        let database = match database {
            On::Sqlite => None,
            On::Postgres => Some(Database::create().await.unwrap()),
        };
        if let Some(database) = &database {
            setup = setup
                .with("LOUPE_DATABASE_URL", &database.url())
                .with("LOUPE_MASTER_KEY", &MasterKey::generate().unwrap());
        }
        let setup = variables.iter().fold(setup, |setup, (name, value)| setup.with(name, value));
        let server = Some(setup.start());
        Self { authority, server, setup, key, _folder: folder, _database: database }
    }

    /// Kills the server and starts it again.
    pub fn restart(&mut self) {
        if let Some(server) = self.server.take() {
            server.kill();
        }
        self.server = Some(self.setup.start());
    }

    /// Returns the running server.
    pub fn server(&self) -> &ServerProcess {
        self.server.as_ref().unwrap()
    }

    pub fn key(&self) -> Caller {
        Caller::new(&self.server().url, Some(&self.key))
    }

    /// Creates a webhook for failed evaluations.
    pub async fn webhook(&self, receiver: &Receiver) {
        let url = format!("https://127.0.0.1:{}/", receiver.port);
        let body = json!({"url": url, "secret": WEBHOOK_SECRET, "events": ["evaluation.failed"]});
        self.key().post("/v1/webhooks", &body).await.ok();
    }

    /// Stores traces of this name that cannot be evaluated, and requests their evaluation.
    pub async fn fail_evaluations(&self, name: &str, count: usize) {
        let traces = vec![json!({"name": name}); count];
        self.key().post("/v1/ingest/batch", &json!({"traces": traces})).await.ok();
        let config = json!({"max_latency_ms": 1});
        let bulk = json!({
            "metric_name": "latency_threshold",
            "evaluator_type": "rule",
            "config": config,
            "filter": {"name": name},
        });
        self.key().post("/v1/eval/bulk", &bulk).await.ok();
    }

    /// Waits until all evaluations have ended. Returns the IDs of those that failed.
    pub async fn failed_evaluations(&self) -> BTreeSet<String> {
        let key = self.key();
        loop {
            let (mut failed, mut waiting, mut cursor) = (BTreeSet::new(), 0, String::new());
            loop {
                let page = key.get(&format!("/v1/eval?limit=200{cursor}")).await.ok();
                for row in page["evaluations"].as_array().unwrap() {
                    match row["status"].as_str().unwrap() {
                        "failed" => _ = failed.insert(row["id"].as_str().unwrap().to_owned()),
                        _ => waiting += 1,
                    }
                }
                let Value::String(next) = &page["next_cursor"] else { break };
                cursor = format!("&cursor={next}");
            }
            if waiting == 0 && !failed.is_empty() {
                return failed;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Returns the server's resident memory in MiB: now, or the peak.
    pub fn memory_mib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server().id())).unwrap();
        let line = status.lines().find_map(|it| it.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }
}
