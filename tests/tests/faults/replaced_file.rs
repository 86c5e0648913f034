//! A SQLite file that is deleted or replaced under a running server.

use std::{path::Path, time::Duration};

use serde_json::json;
use tests::{Caller, On, Reply};
use tokio::sync::watch;

use super::installation::Installation;

async fn ingest(caller: &Caller, name: &str) -> Reply {
    caller.post("/v1/ingest", &json!({"name": name})).await
}

/// Runs `replace` on the database's path under load, and checks the server afterwards.
async fn check_fault_is_detected(what: &str, replace: impl FnOnce(&Path)) -> Installation {
    let installation = Installation::on(On::Sqlite).await;
    let caller = installation.bystander();
    let path = installation.folder.path().join("loupe-data/loupe.db");
    ingest(&caller, "before").await.ok();
    // The load continues until twenty of its requests began after the replacement.
    let (replaced, is_replaced) = watch::channel(false);
    let load = tokio::spawn({
        let caller = caller.clone();
        async move {
            let mut after = Vec::new();
            while after.len() < 20 {
                let began_after = *is_replaced.borrow();
                let status = ingest(&caller, "load").await.status;
                if began_after {
                    after.push(status);
                }
            }
            after
        }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    replace(&path);
    replaced.send(true).unwrap();
    let after = load.await.unwrap();
    assert!(after.iter().all(|it| *it == 503), "{what}: {after:?}");
    for reply in [
        ingest(&caller, "after").await,
        caller.post("/v1/ingest/batch", &json!({"traces": [{"name": "after"}]})).await,
        caller.post("/v1/feedback", &json!({"trace_id": uuid::Uuid::nil(), "label": "good"})).await,
        caller.delete(&format!("/v1/traces/{}", uuid::Uuid::nil())).await,
    ] {
        reply.is(503, "overloaded");
        assert!(
            reply.headers.contains_key("retry-after") && reply.text().contains("replaced"),
            "{}",
            reply.text()
        );
    }
    assert_eq!(caller.get("/readyz").await.status, 503, "{what}");
    assert_eq!(caller.get("/healthz").await.status, 200, "{what}");
    let log = installation.server.log();
    assert!(log.contains("the database file was deleted or replaced while the server runs"), "{what}: {log}");
    installation
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_database_file_stops_writes() {
    let installation = check_fault_is_detected("deleted", |path| std::fs::remove_file(path).unwrap()).await;
    // The server creates no new file at the path.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!installation.folder.path().join("loupe-data/loupe.db").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_write_ahead_log_stops_writes() {
    check_fault_is_detected("log", |path| std::fs::remove_file(path.with_extension("db-wal")).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_database_file_stops_writes_until_restart() {
    let mut installation = check_fault_is_detected("replaced", |path| {
        let aside = path.with_extension("aside");
        std::fs::rename(path, &aside).unwrap();
        std::fs::copy(&aside, path).unwrap();
    })
    .await;
    // Even with its original file back, the server needs a restart.
    let path = installation.folder.path().join("loupe-data/loupe.db");
    std::fs::rename(path.with_extension("aside"), &path).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let caller = installation.bystander();
    ingest(&caller, "not yet").await.is(503, "overloaded");
    installation.server.terminate();
    installation.server.wait(Duration::from_secs(15));
    installation.server = installation.setup.start();
    let caller = installation.bystander();
    ingest(&caller, "again").await.ok();
    let list = caller.get("/v1/traces?limit=200").await.ok();
    let names: Vec<&str> =
        list["traces"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    assert!(names.contains(&"before") && names.contains(&"again") && !names.contains(&"after"), "{names:?}");
}
