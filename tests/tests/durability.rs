//! Signal 9 at any moment loses nothing that was acknowledged and stores nothing twice or by half.
//!
//! The program itself is started and killed here, as no server inside a test can be. It has to
//! be built: the test command does so, and so does `cargo build`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "clients of a test are its own, and end with it")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use server::access::{api_key::ApiKey, master_key::MasterKey};
use tests::postgres::Database;
use uuid::Uuid;

/// How often the server is killed.
const KILLS: u64 = 50;
/// Clients that send at the same time.
const CLIENTS: usize = 8;
/// Spans of each trace.
const SPANS: usize = 3;

/// What an installation keeps from one start to the next.
struct Installation {
    folder: tempfile::TempDir,
    database_url: Option<String>,
    key: String,
    master_key: String,
}

impl Installation {
    fn new(database_url: Option<String>) -> Self {
        let key = ApiKey::generate().unwrap().reveal().to_owned();
        Self {
            folder: tempfile::tempdir().unwrap(),
            database_url,
            key,
            master_key: MasterKey::generate().unwrap(),
        }
    }

    /// Starts the server and waits for the line that says where it listens.
    fn start(&self) -> Running {
        let program = assert_cmd::cargo::cargo_bin("loupe-server");
        assert!(Path::new(&program).exists(), "{} is not there: run `cargo build` first", program.display());
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).args(["--listen", "127.0.0.1:0", "--log", "error"]);
        command.arg("--data-dir").arg(self.folder.path());
        command.env("LOUPE_BOOTSTRAP_API_KEY", &self.key).env("LOUPE_MASTER_KEY", &self.master_key);
        if let Some(url) = &self.database_url {
            command.env("LOUPE_DATABASE_URL", url);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.find_map(|it| it.unwrap().split_once(" is ready at ").map(|(_, url)| url.to_owned()));
        Running { child, url: url.expect("the server ended before it was ready") }
    }
}

struct Running {
    child: Child,
    url: String,
}

impl Running {
    fn kill(&mut self) {
        // On Unix this is signal 9.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Gone already, unless the test failed.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// What was sent: each trace's id, and whether a 2xx came back for it.
type Sent = BTreeMap<Uuid, bool>;

fn item(id: Uuid) -> Value {
    let spans: Vec<Value> = (0..SPANS).map(|it| json!({"id": format!("{it}"), "name": "step"})).collect();
    json!({"id": id, "name": "kept", "input": "x".repeat(500), "spans": spans})
}

/// Sends one trace after the other, singly or in batches, until told to end or cut off.
async fn send(
    client: reqwest::Client,
    url: String,
    key: String,
    batches: bool,
    ending: Arc<AtomicBool>,
    sent: Arc<Mutex<Sent>>,
) {
    while !ending.load(Ordering::Relaxed) {
        let ids: Vec<Uuid> = (0..if batches { 5 } else { 1 }).map(|_| Uuid::new_v4()).collect();
        sent.lock().unwrap().extend(ids.iter().map(|it| (*it, false)));
        let (path, body) = match ids.as_slice() {
            [id] => ("/v1/ingest", item(*id)),
            ids => {
                ("/v1/ingest/batch", json!({"traces": ids.iter().map(|it| item(*it)).collect::<Vec<_>>()}))
            }
        };
        let answer = client.post(format!("{url}{path}")).bearer_auth(&key).json(&body).send().await;
        match answer.map(|it| it.status().as_u16()) {
            Ok(200 | 201) => sent.lock().unwrap().extend(ids.into_iter().map(|it| (it, true))),
            Ok(503) => {}
            Ok(other) => panic!("{path} answered {other}"),
            // Cut off: it may be stored, or not.
            Err(_) => return,
        }
    }
}

/// Every trace of the list with its number of spans; a trace that came twice is a failure.
async fn stored(client: &reqwest::Client, url: &str, key: &str) -> BTreeMap<Uuid, u64> {
    let mut found = BTreeMap::new();
    let mut cursor = String::new();
    loop {
        let address = format!("{url}/v1/traces?limit=200&preview=true{cursor}");
        let page: Value = client.get(address).bearer_auth(key).send().await.unwrap().json().await.unwrap();
        for row in page["traces"].as_array().unwrap() {
            let id: Uuid = row["id"].as_str().unwrap().parse().unwrap();
            let twice = found.insert(id, row["span_count"].as_u64().unwrap());
            assert_eq!(twice, None, "{id} is listed twice");
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

async fn survives_kills(installation: Installation) {
    // One for all: making a client reads the system's certificates.
    let client = reqwest::Client::new();
    let mut acknowledged = BTreeSet::new();
    let mut unsure = BTreeSet::new();
    for round in 0..KILLS {
        let mut server = installation.start();
        let ending = Arc::new(AtomicBool::new(false));
        let sent = Arc::new(Mutex::new(Sent::new()));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|it| {
                let (client, url, key) = (client.clone(), server.url.clone(), installation.key.clone());
                tokio::spawn(send(client, url, key, it % 2 == 1, ending.clone(), sent.clone()))
            })
            .collect();
        while !sent.lock().unwrap().values().any(|it| *it) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Other moments of the writer's cycle each time.
        tokio::time::sleep(Duration::from_millis(40 + round * 37 % 150)).await;
        server.kill();
        ending.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.unwrap();
        }
        for (id, ok) in std::mem::take(&mut *sent.lock().unwrap()) {
            if ok {
                acknowledged.insert(id)
            } else {
                unsure.insert(id)
            };
        }
    }
    assert!(
        acknowledged.len() > 1_000,
        "only {} traces were acknowledged: nothing was saturated",
        acknowledged.len()
    );

    let server = installation.start();
    let found = stored(&client, &server.url, &installation.key).await;
    let lost: Vec<_> = acknowledged.iter().filter(|it| !found.contains_key(it)).collect();
    assert!(
        lost.is_empty(),
        "{} of {} acknowledged traces are lost: {lost:?}",
        lost.len(),
        acknowledged.len()
    );
    let halves: Vec<_> = found.iter().filter(|(_, spans)| **spans != SPANS as u64).collect();
    assert!(halves.is_empty(), "traces without all of their spans: {halves:?}");

    // Whoever was cut off sends again, and then everything is there once.
    for id in &unsure {
        let request =
            client.post(format!("{}/v1/ingest", server.url)).bearer_auth(&installation.key).json(&item(*id));
        let status = request.send().await.unwrap().status().as_u16();
        let expected = if found.contains_key(id) { 409 } else { 201 };
        assert_eq!(status, expected, "sending {id} again");
    }
    let all: BTreeSet<Uuid> = stored(&client, &server.url, &installation.key).await.into_keys().collect();
    assert_eq!(all, acknowledged.union(&unsure).copied().collect());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_kills_lose_nothing_on_sqlite() {
    survives_kills(Installation::new(None)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_kills_lose_nothing_on_postgres() {
    let database = Database::create().await.unwrap();
    survives_kills(Installation::new(Some(database.url()))).await;
}
