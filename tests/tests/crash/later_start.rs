//! Settings that only the first start reads: later starts ignore them with a warning. Also runs the steps
//! that the operator's documentation gives instead.

#![allow(clippy::disallowed_methods, reason = "waits for the output of a process")]

use serde_json::{Value, json};
use tests::{Caller, On, process::ServerProcess};

use super::Home;

/// Returns the section on embedding in the operator's documentation.
fn documentation() -> &'static str {
    let text = include_str!("../../../docs/operations.md");
    let (_, rest) = text.split_once("\n## Embedding\n").unwrap();
    rest.split_once("\n## ").unwrap().0
}

/// Returns the text between two marks in the documentation.
fn between(start: &str, end: &str) -> &'static str {
    let (_, rest) = documentation().split_once(start).unwrap();
    rest.split_once(end).unwrap().0
}

fn owner(home: &Home, server: &ServerProcess, tenant: &Value) -> Caller {
    let tenant = tenant.as_str().unwrap();
    let issued = home.setup.run(&["admin", "issue-token", "--tenant", tenant, "--role", "owner", "--json"]);
    let issued: Value = serde_json::from_slice(&issued.stdout).unwrap();
    Caller::new(&server.url, issued["token"].as_str())
}

/// Returns the server's log up to the line `ready`.
fn log(server: &ServerProcess) -> String {
    server.wait_for_log("\"ready\"")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documented_steps_configure_a_model_server() {
    let (opening, path) = (between("LOUPE_EGRESS_ALLOW_CIDRS=", " "), between("http://127.0.0.1:4600", " "));
    let body: Value = serde_json::from_str(between("-d '", "'")).unwrap();
    for database in [On::Sqlite, On::Postgres] {
        let home = Home::on(database).await;
        let server = home.setup.start();
        let tenant = home.caller(&server.url).get("/v1/me").await.ok()["tenant"]["id"].clone();
        let refused = owner(&home, &server, &tenant).put(path, &body).await;
        let message = refused.is(422, "validation_failed").text();
        assert!(
            message.contains("LOUPE_EGRESS_ALLOW_CIDRS") && message.contains(&format!("`{opening}`")),
            "{message}"
        );
        drop(server);
        let server = home.setup.clone().with("LOUPE_EGRESS_ALLOW_CIDRS", opening).start();
        let stored = owner(&home, &server, &tenant).put(path, &body).await.ok();
        assert_eq!(
            (&stored["base_url"], &stored["embedding_model"]),
            (&body["base_url"], &body["embedding_model"])
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn setting_that_a_later_start_ignores_is_logged() {
    for database in [On::Sqlite, On::Postgres] {
        let home = Home::on(database).await;
        let first = home.setup.start();
        assert!(!log(&first).contains("LOUPE_"), "{}", first.log());
        drop(first);
        let with = home
            .setup
            .clone()
            .with("LOUPE_EMBEDDING_BASE_URL", "http://127.0.0.1:11434/v1")
            .with("LOUPE_JUDGE_OPENAI_API_KEY", "sk-canary");
        let later = with.start();
        let logged = log(&later);
        for words in [
            "LOUPE_EMBEDDING_BASE_URL",
            "LOUPE_JUDGE_OPENAI",
            "PUT /v1/provider-credentials/openai_compatible",
            "127.0.0.1:11434 in LOUPE_EGRESS_ALLOW_CIDRS",
        ] {
            assert!(logged.contains(words), "no {words:?} in {logged}");
        }
        assert!(!logged.contains("canary"), "{logged}");
        // Once the tenant uses the configured provider, there is no warning.
        let tenant = home.caller(&later.url).get("/v1/me").await.ok()["tenant"]["id"].clone();
        let credential = json!({"api_key": "sk-canary"});
        owner(&home, &later, &tenant).put("/v1/provider-credentials/openai", &credential).await.ok();
        drop(later);
        let logged = log(&with.start());
        assert!(
            logged.contains("LOUPE_EMBEDDING_BASE_URL") && !logged.contains("LOUPE_JUDGE_OPENAI"),
            "{logged}"
        );
        // The first start is over, so this key has no effect.
        let other = server::access::api_key::ApiKey::generate().unwrap();
        let logged = log(&home.setup.clone().with("LOUPE_BOOTSTRAP_API_KEY", other.reveal()).start());
        assert!(logged.contains("LOUPE_BOOTSTRAP_API_KEY is ignored"), "{logged}");
        assert!(!logged.contains(other.reveal()), "{logged}");
    }
}
