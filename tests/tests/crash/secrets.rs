//! Neither the database nor the logs contain a secret, in any notation.

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD, prelude::BASE64_URL_SAFE_NO_PAD};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Row};
use tests::{Caller, On};

use super::Home;

const PROVIDER_KEY: &str = "sk-canary-7f3a9c1e5b2d8460";

async fn secrets_are_unreadable_in_database_and_logs(on: On) {
    let home = Home::on(on).await;
    // The most verbose logs.
    let setup = home.setup.clone().with("LOUPE_LOG", "trace,hyper=debug").with("LOUPE_LOG_FORMAT", "json");
    let mut server = setup.start();
    let key = home.caller(&server.url);
    let tenant = key.get("/v1/me").await.ok()["tenant"]["id"].as_str().unwrap().to_owned();
    let issued = setup.run(&["admin", "issue-token", "--tenant", &tenant, "--role", "owner"]);
    let token = String::from_utf8(issued.stdout).unwrap().trim().to_owned();
    let owner = Caller::new(&server.url, Some(&token));

    let made = owner.request(Method::POST, "/v1/apikeys").header("idempotency-key", "once");
    let made = owner.send(made.json(&json!({"name": "k"}))).await.ok();
    let made = made["secret"].as_str().unwrap().to_owned();
    owner.put("/v1/provider-credentials/openai", &json!({"api_key": PROVIDER_KEY})).await.ok();
    // A secret in a wrong place is not repeated in the response either.
    owner
        .put("/v1/provider-credentials/openai", &json!({"api_key": [PROVIDER_KEY]}))
        .await
        .is(400, "invalid_body");
    // The key is random and may end with `x` itself.
    let other = if made.ends_with('x') { 'y' } else { 'x' };
    let flawed = format!("{}{other}", &made[..made.len() - 1]);
    Caller::new(&server.url, Some(&flawed)).get("/v1/me").await.is(401, "unauthorized");
    Caller::new(&server.url, Some(&made)).post("/v1/ingest", &json!({"name": "n"})).await.ok();
    let log = server.log();
    server.terminate();
    assert!(server.wait(std::time::Duration::from_secs(15)).success());
    assert!(log.lines().count() > 20, "the log is too short to prove anything: {log}");

    let stored = stored(&home).await;
    for (what, secret) in [
        ("the first key", home.key.as_str()),
        ("a key", &made),
        ("a flawed key", &flawed),
        ("a session token", &token),
        ("a provider's key", PROVIDER_KEY),
    ] {
        // The prefix of a key may be shown; the rest may not.
        let hidden = secret.get(12..).unwrap();
        let bytes = hidden.as_bytes();
        let hex: String = bytes.iter().map(|it| format!("{it:02x}")).collect();
        // The ends are cut, because base64 encodes them differently within a longer text.
        let (standard, url) = (BASE64_STANDARD_NO_PAD.encode(bytes), BASE64_URL_SAFE_NO_PAD.encode(bytes));
        for form in [hidden.to_owned(), hex.to_uppercase(), hex, standard, url] {
            assert!(!log.contains(&form), "{what} is in the log");
            let found = stored.windows(form.len()).any(|it| it == form.as_bytes());
            assert!(!found, "{what} is in the database");
        }
    }
}

/// Returns all stored bytes: the files of SQLite, or every row of every table as text.
async fn stored(home: &Home) -> Vec<u8> {
    let Some(database) = &home.database else {
        let mut bytes = Vec::new();
        for entry in std::fs::read_dir(home.folder.path().join("loupe-data")).unwrap() {
            bytes.extend(std::fs::read(entry.unwrap().path()).unwrap());
        }
        return bytes;
    };
    let mut connection = sqlx::PgConnection::connect(&database.url()).await.unwrap();
    let tables = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut connection).await.unwrap();
    let mut bytes = Vec::new();
    for table in tables {
        let sql = AssertSqlSafe(format!("SELECT to_jsonb(t)::text FROM {table} t"));
        for row in sqlx::query(sql).fetch_all(&mut connection).await.unwrap() {
            let text: String = row.get(0);
            bytes.extend(text.bytes());
            // PostgreSQL shows bytes in hexadecimal; they are added in decoded form too.
            if let Ok(Value::Object(columns)) = serde_json::from_str(&text) {
                for hex in columns.values().filter_map(|it| it.as_str()?.strip_prefix("\\x")) {
                    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
                    bytes.extend((0..hex.len() / 2).map(|it| byte(it * 2)));
                }
            }
        }
    }
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_unreadable_in_database_and_logs_on_sqlite() {
    secrets_are_unreadable_in_database_and_logs(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_unreadable_in_database_and_logs_on_postgres() {
    secrets_are_unreadable_in_database_and_logs(On::Postgres).await;
}
