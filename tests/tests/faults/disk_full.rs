//! A disk without space under the database, then with space again.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tests::{
    Caller, On, Reply,
    hang::{HANG_TIMEOUT, wait_until},
};

use super::{
    dedicated_postgres::DedicatedPostgres,
    installation::{Installation, full_size},
};

/// An in-memory disk of variable size, unmounted when it is dropped.
struct SmallDisk {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl SmallDisk {
    /// Mounts a disk; returns none where mounting is not allowed, and prints the reason.
    fn mount(mib: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        std::fs::create_dir(&path).unwrap();
        let size = format!("size={mib}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { path, _folder: folder }),
            Ok(output) => {
                println!(
                    "skipped, mounting is not allowed here: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
                None
            }
            Err(error) => {
                println!("skipped, there is no program `mount`: {error}");
                None
            }
        }
    }

    fn resize(&self, mib: u32) {
        let size = format!("remount,size={mib}m");
        assert!(Command::new("mount").args(["-o", &size]).arg(&self.path).status().unwrap().success());
    }

    /// Uses up all remaining space.
    fn fill(&self) -> PathBuf {
        let path = self.path.join("filling");
        // The write must fail.
        _ = Command::new("dd")
            .args(["if=/dev/zero", &format!("of={}", path.display()), "bs=64k"])
            .output()
            .unwrap();
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazy, because the server may still be running.
        _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

async fn installation(data: &Path) -> Installation {
    Installation::with(On::Sqlite, &[("LOUPE_DATA_DIR", data.to_str().unwrap())]).await
}

/// Returns a text that compresses badly.
fn text(bytes: usize) -> String {
    std::iter::repeat_with(fastrand::alphanumeric).take(bytes).collect()
}

fn item(id: &str, bytes: usize) -> Value {
    json!({"id": id, "name": id, "input": text(bytes)})
}

async fn ingest(caller: &Caller, id: &str, bytes: usize) -> Reply {
    caller.post("/v1/ingest", &item(id, bytes)).await
}

fn assert_unavailable(reply: &Reply) {
    reply.is(503, "overloaded");
    assert!(reply.headers.contains_key("retry-after"), "{:?}", reply.headers);
}

/// Waits until the server is ready and stores traces. Returns the duration for the printed report.
async fn wait_for_recovery(caller: &Caller, id: &str) -> Duration {
    let (began, mut attempts) = (Instant::now(), 0);
    wait_until("the server recovers", async || {
        attempts += 1;
        let stored = ingest(caller, &format!("{id}-{attempts}"), 100_000).await.status;
        (caller.get("/readyz").await.status, stored) == (200, 201)
    })
    .await;
    began.elapsed()
}

async fn assert_all_stored(caller: &Caller, ids: &[String]) {
    for id in ids {
        assert_eq!(
            caller.get(&format!("/v1/traces/{id}")).await.status,
            200,
            "an acknowledged trace is lost: {id}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_recovers_when_enlarged() {
    let Some(disk) = SmallDisk::mount(40) else { return };
    let mut installation = installation(&disk.path).await;
    let caller = installation.bystander();
    let is_full = Arc::new(AtomicBool::new(false));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let (caller, is_full) = (caller.clone(), Arc::clone(&is_full));
        writers.spawn(async move {
            let (mut stored, began) = (Vec::new(), Instant::now());
            for n in 0.. {
                let id = format!("w{writer}-{n}");
                let reply = ingest(&caller, &id, 200_000).await;
                match reply.status {
                    201 => stored.push(reply.json()["id"].as_str().unwrap().to_owned()),
                    _ => {
                        assert_unavailable(&reply);
                        is_full.store(true, SeqCst);
                    }
                }
                if is_full.load(SeqCst) {
                    break;
                }
                assert!(began.elapsed() < HANG_TIMEOUT, "the disk never filled");
            }
            stored
        });
    }
    let stored: Vec<String> = writers.join_all().await.into_iter().flatten().collect();
    assert!(stored.len() > 20, "{}", stored.len());
    // While the disk is full.
    wait_until("the full disk is detected", async || caller.get("/readyz").await.status == 503).await;
    for n in 0..20 {
        assert_unavailable(&ingest(&caller, &format!("full-{n}"), 100).await);
    }
    assert_unavailable(&caller.post("/v1/feedback", &json!({"trace_id": stored[0], "label": "good"})).await);
    assert_eq!(caller.get("/readyz").await.status, 503);
    assert_eq!(caller.get("/healthz").await.status, 200);
    assert_eq!(caller.get("/v1/traces?limit=5").await.status, 200);
    disk.resize(200);
    let took = wait_for_recovery(&caller, "healed").await;
    println!("{} traces of 200 kB filled the disk; recovered {took:?} after there was space", stored.len());
    assert_all_stored(&caller, &stored).await;
    // All acknowledged traces are stored.
    let next = installation.setup.start();
    std::mem::replace(&mut installation.server, next).kill();
    let next = installation.setup.start();
    std::mem::replace(&mut installation.server, next).kill();
    assert_all_stored(&installation.bystander(), &stored).await;
}

/// Transactions fail midway, before the server has noticed that the disk is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_that_fail_on_a_full_disk_leave_usable_connections() {
    let Some(disk) = SmallDisk::mount(64) else { return };
    let installation = installation(&disk.path).await;
    let caller = installation.bystander();
    let mut stored = Vec::new();
    for round in 0..if full_size() { 20 } else { 3 } {
        // Built in advance, so that the requests arrive before the next check of the disk.
        let items: Vec<Value> = (0..8).map(|n| item(&format!("r{round}-{n}"), 1_500_000)).collect();
        let filling = disk.fill();
        let replies = items.iter().map(|it| caller.post("/v1/ingest", it));
        for reply in futures::future::join_all(replies).await {
            match reply.status {
                201 => stored.push(reply.json()["id"].as_str().unwrap().to_owned()),
                _ => assert_unavailable(&reply),
            }
        }
        std::fs::remove_file(filling).unwrap();
        let took = wait_for_recovery(&caller, &format!("round-{round}")).await;
        println!("round {round}: {} stored so far, healthy after {took:?}", stored.len());
    }
    let log = installation.server.log();
    assert!(log.contains("could not be rolled back"), "no transaction failed:\n{log}");
    assert_all_stored(&caller, &stored).await;
}

/// The disk of the tables is full; PostgreSQL reports this with SQLSTATE 53100.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_of_postgres_gives_503_and_recovers() {
    let Some(disk) = SmallDisk::mount(96) else { return };
    let Some(postgres) = DedicatedPostgres::start().await else { return };
    let url = postgres.create_database_in(&disk.path).await;
    let installation = Installation::with(On::Postgres, &[("LOUPE_DATABASE_URL", &url)]).await;
    let caller = installation.bystander();
    let id = |reply: &Reply| reply.json()["id"].as_str().unwrap().to_owned();
    let mut stored = vec![id(&ingest(&caller, "before", 200_000).await)];
    let filling = disk.fill();
    let mut refused = 0;
    for n in 0..20 {
        let reply = ingest(&caller, &format!("full-{n}"), 500_000).await;
        match reply.status {
            // Allocated pages have room for the first ones.
            201 => stored.push(id(&reply)),
            _ => {
                assert_unavailable(&reply);
                refused += 1;
            }
        }
    }
    println!("{refused} of 20 requests of 500 kB were refused on the full disk");
    assert!(refused > 10, "{refused}");
    assert_eq!(caller.get("/healthz").await.status, 200);
    assert_eq!(caller.get("/v1/traces?limit=5").await.status, 200);
    std::fs::remove_file(filling).unwrap();
    wait_for_recovery(&caller, "healed").await;
    assert_all_stored(&caller, &stored).await;
}
