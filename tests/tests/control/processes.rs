//! Processes of the built server on one database, with a tenant whose provider is a [`Provider`].

use serde_json::{Value, json};
use server::access::api_key::ApiKey;
use tests::{
    Caller, On,
    postgres::Database,
    process::{ServerProcess, Setup},
};

use crate::{
    provider::{JUDGE_MODEL, Provider},
    scene::TENANT_KEY,
};

/// The processes, and the tenant's owner.
pub struct Processes {
    setup: Setup,
    running: Vec<ServerProcess>,
    token: String,
    _folder: tempfile::TempDir,
    _database: Option<Database>,
}

impl Processes {
    /// Starts one process, and stores the credential of the provider.
    pub async fn start(database: On, provider: &Provider) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = ApiKey::generate().unwrap().reveal().to_owned();
        let mut setup = Setup::new(folder.path())
            .with("LOUPE_BOOTSTRAP_API_KEY", &key)
            .with("LOUPE_EGRESS_ALLOW_CIDRS", &provider.address.to_string());
        let database = match database {
            On::Sqlite => None,
            On::Postgres => Some(Database::create().await.unwrap()),
        };
        if let Some(database) = &database {
            setup = setup.with_postgres(&database.url());
        }
        let running = vec![setup.start()];
        let mut processes =
            Self { setup, running, token: String::new(), _folder: folder, _database: database };
        let me = Caller::new(processes.url(0), Some(&key)).get("/v1/me").await.ok();
        let tenant = me["tenant"]["id"].as_str().or(me["tenant_id"].as_str()).unwrap().to_owned();
        let issued = processes.admin(&["issue-token", "--tenant", &tenant, "--role", "owner", "--ttl", "8h"]);
        processes.token = issued["token"].as_str().unwrap().to_owned();
        processes.admin(&["set-plan", "--tenant", &tenant, "--plan", "enterprise"]);
        let credential =
            json!({"api_key": TENANT_KEY, "base_url": provider.url(), "judge_model_cheap": JUDGE_MODEL});
        processes.owner().put("/v1/provider-credentials/openai", &credential).await.ok();
        processes
    }

    /// Runs a command of `admin`. Returns its JSON output.
    fn admin(&self, arguments: &[&str]) -> Value {
        let output = self.setup.run(&[&["admin"], arguments, &["--json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn url(&self, process: usize) -> &str {
        &self.running[process].url
    }

    /// Returns the owner as a client of the first process.
    pub fn owner(&self) -> Caller {
        self.owner_at(0)
    }

    /// Returns the owner as a client of this process.
    pub fn owner_at(&self, process: usize) -> Caller {
        Caller::new(self.url(process), Some(&self.token))
    }

    /// Starts one more process.
    pub fn start_another(&mut self) {
        self.running.push(self.setup.start());
    }

    /// Kills all processes, and starts one.
    pub fn restart(&mut self) {
        self.running.drain(..).for_each(ServerProcess::kill);
        self.start_another();
    }
}

/// Returns all actions that match these query parameters; each parameter begins with `&`.
pub async fn actions(owner: &Caller, parameters: &str) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = owner.get(&format!("/v1/control/actions?limit=200{parameters}{cursor}")).await.ok();
        found.extend(page["actions"].as_array().unwrap().clone());
        let Value::String(next) = &page["next_cursor"] else { return found };
        cursor = format!("&cursor={next}");
    }
}

/// Returns whether an action has not ended.
pub fn is_open(action: &Value) -> bool {
    ["queued", "running"].contains(&action["status"].as_str().unwrap())
}
