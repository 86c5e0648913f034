//! The output and the effects of a start, and the operator's commands during the run of a server.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use server::access::master_key::MasterKey;
use tests::{Caller, On, process::Setup};

use super::Home;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_start_prints_a_valid_key_once() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::new(folder.path());
    let first = setup.start();
    let key = first.greeting.split_whitespace().find(|it| it.starts_with("lp_")).unwrap().to_owned();
    for line in [
        format!("OTEL_EXPORTER_OTLP_ENDPOINT={}", first.url),
        "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf".to_owned(),
        format!("OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20{key}"),
        "admin issue-token".to_owned(),
        "curl".to_owned(),
        "loupe console".to_owned(),
    ] {
        assert!(first.greeting.contains(&line), "no {line:?} in {}", first.greeting);
    }
    assert!(!first.url.ends_with(":0"), "the printed port is not the chosen one: {}", first.url);
    assert!(!first.log().contains(&key), "a secret is not logged");
    let caller = Caller::new(&first.url, Some(&key));
    assert_eq!(caller.post("/v1/ingest", &json!({"id": "hello"})).await.status, 201);
    drop(first);
    let second = setup.start();
    assert!(
        !second.greeting.contains("lp_") && !second.greeting.contains("First start"),
        "{}",
        second.greeting
    );
    let caller = Caller::new(&second.url, Some(&key));
    assert_eq!(caller.get("/v1/traces").await.ok()["traces"][0]["external_id"], "hello");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode =
            std::fs::metadata(folder.path().join("loupe-data/master.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

/// Returns the flags that a help text lists.
fn flags(setup: &Setup, arguments: &[&str]) -> BTreeSet<String> {
    let help = setup.run(&[arguments, &["--help"]].concat());
    assert!(help.status.success(), "{help:?}");
    let text = String::from_utf8(help.stdout).unwrap();
    let names = text.lines().filter_map(|line| {
        line.trim_start().split("--").nth(1).filter(|_| {
            let line = line.trim_start();
            line.starts_with("--") || line.starts_with('-') && line.get(2..4) == Some(", ")
        })
    });
    names
        .map(|it| it.split(|it: char| it != '-' && !it.is_ascii_alphanumeric()).next().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_is_the_default_command() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::new(folder.path());
    let all = flags(&setup, &[]);
    assert!(all.len() > 40 && all.contains("judge-timeout") && all.contains("metrics-listen"), "{all:?}");
    let mut serve = flags(&setup, &["serve"]);
    // The version belongs to the program, not to a subcommand.
    serve.insert("version".to_owned());
    assert_eq!(serve, all);
    let mut worker = flags(&setup, &["worker"]);
    worker.insert("version".to_owned());
    assert_eq!(worker, all);
    // The operator's commands show the settings that they use, and accept the others, which loupe.toml may
    // contain.
    let admin = flags(&setup, &["admin", "stats"]);
    assert!(admin.contains("database-url") && !admin.contains("judge-timeout"), "{admin:?}");

    // One flag before the subcommand, one after it, one setting in the file, one in the environment.
    std::fs::write(folder.path().join("loupe.toml"), "unauthenticated_per_minute = 2\nno_workers = true\n")
        .unwrap();
    let setup = setup.with("LOUPE_MAX_BODY_BYTES", "1000");
    let server =
        setup.start_with(&["--write-timeout=7", "serve", "--log-format", "json", "--search-exact=5"]);
    server.wait_for_log("\"workers\":false");
    let unknown_key = Caller::new(&server.url, Some("lp_none"));
    let statuses: Vec<u16> =
        [unknown_key.get("/v1/me").await, unknown_key.get("/v1/me").await, unknown_key.get("/v1/me").await]
            .map(|it| it.status)
            .into();
    assert_eq!(statuses, [401, 401, 429]);
    let key = server.greeting.split_whitespace().find(|it| it.starts_with("lp_")).unwrap();
    let large = json!({"name": "x".repeat(2_000)});
    assert_eq!(Caller::new(&server.url, Some(key)).post("/v1/ingest", &large).await.status, 413);
    // A flag overrides the file, before or after the subcommand.
    drop(server);
    for arguments in
        [&["--unauthenticated-per-minute=1", "serve"][..], &["serve", "--unauthenticated-per-minute", "1"]]
    {
        let server = setup.start_with(arguments);
        let unknown_key = Caller::new(&server.url, Some("lp_none"));
        let statuses = [unknown_key.get("/v1/me").await.status, unknown_key.get("/v1/me").await.status];
        assert_eq!(statuses, [401, 429], "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_start_output_fits_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::new(folder.path()).with("LOUPE_LOG_FORMAT", "text").start();
    let rows: usize = server.greeting.lines().map(|it| it.chars().count().div_ceil(80).max(1)).sum();
    // Two more lines: the message that the server is ready, and the cursor's line.
    assert!(rows + 2 <= 24, "{rows} rows: {}", server.greeting);
    let log = server.wait_for_log("ready");
    assert!(log.lines().count() <= 3 && log.contains("the schema is up to date"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_start_uses_configured_key() {
    for database in [On::Sqlite, On::Postgres] {
        let home = Home::on(database).await;
        let server = home.setup.start();
        assert!(!server.greeting.contains("lp_"), "{}", server.greeting);
        let me = home.caller(&server.url).get("/v1/me").await.ok();
        assert_eq!(me["tenant"]["plan"].as_str().or(me["plan"].as_str()), Some("enterprise"), "{me}");
    }
    let folder = tempfile::tempdir().unwrap();
    let refused = Setup::new(folder.path()).with("LOUPE_BOOTSTRAP_API_KEY", "lp_short").run(&[]);
    assert!(!refused.status.success());
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(message.contains("LOUPE_BOOTSTRAP_API_KEY") && !message.contains("lp_short"), "{message}");
}

#[test]
fn unusable_setting_is_rejected_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (variable, value) in [
        ("LOUPE_CORS_ORIGINS", "https://app.example.com/"),
        ("LOUPE_CORS_ORIGINS", "*,https://app.example.com"),
        ("LOUPE_TRUSTED_PROXIES", "10.0.0.0/8,proxy.internal"),
        ("LOUPE_METRICS_LISTEN", "4601"),
        ("LOUPE_METRICS_LISTEN", "192.0.2.1:4601"),
        ("LOUPE_OTLP_GRPC_LISTEN", "4317"),
        ("LOUPE_OTLP_GRPC_LISTEN", "192.0.2.1:4317"),
        ("LOUPE_MAX_CONNECTIONS", "-1"),
        ("LOUPE_WRITE_TIMEOUT", "soon"),
    ] {
        let refused = Setup::new(folder.path()).with(variable, value).run(&[]);
        let message = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success(), "{variable}={value}");
        let flag = variable.trim_start_matches("LOUPE_").to_lowercase().replace('_', "-");
        assert!(message.contains(&flag) || message.contains(value), "{variable}={value}: {message}");
    }
    // An empty variable counts as unset, because compose files pass unset variables as empty ones.
    let setup = Setup::new(folder.path())
        .with("LOUPE_CORS_ORIGINS", "")
        .with("LOUPE_TRUSTED_PROXIES", "")
        .with("LOUPE_METRICS_LISTEN", "")
        .with("LOUPE_OTLP_GRPC_LISTEN", "");
    drop(setup.start());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admin_commands_work_beside_a_running_server() {
    for database in [On::Sqlite, On::Postgres] {
        let home = Home::on(database).await;
        let server = home.setup.start();
        let admin = |arguments: &[&str]| -> Value {
            let output = home.setup.run(&[&["admin"], arguments, &["--json"]].concat());
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice(&output.stdout).unwrap()
        };
        let made =
            admin(&["create-tenant", "--name", "acme", "--plan", "starter", "--external-id", "acme-1"]);
        let tenant = made["tenant_id"].as_str().unwrap();
        assert!(made["project_id"].is_string(), "{made}");
        let key = Caller::new(&server.url, made["api_key"]["secret"].as_str());
        assert_eq!(key.post("/v1/ingest", &json!({"id": "t"})).await.status, 201);
        assert_eq!(home.caller(&server.url).get("/v1/traces").await.ok()["traces"], json!([]));

        let find = |list: &Value| {
            list["tenants"].as_array().unwrap().iter().find(|it| it["id"] == tenant).unwrap().clone()
        };
        let row = find(&admin(&["list-tenants"]));
        assert_eq!(
            (&row["name"], &row["plan"], &row["external_id"]),
            (&json!("acme"), &json!("starter"), &json!("acme-1"))
        );
        admin(&["set-plan", "--tenant", tenant, "--plan", "team"]);
        assert_eq!(find(&admin(&["list-tenants"]))["plan"], "team");

        let token = admin(&["issue-token", "--tenant", tenant, "--role", "owner", "--ttl", "15m"]);
        assert!(token["expires_at"].is_string());
        let session = Caller::new(&server.url, token["token"].as_str());
        let made = session.post("/v1/apikeys", &json!({"name": "by session", "scopes": ["query"]})).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let unknown = "00000000-0000-7000-8000-000000000000";
        let refused = home.setup.run(&["admin", "set-plan", "--tenant", unknown, "--plan", "pro"]);
        assert!(!refused.status.success());
        assert!(String::from_utf8_lossy(&refused.stderr).contains(unknown));
        let generated = home.setup.run(&["admin", "generate-key"]);
        assert!(MasterKey::parse(String::from_utf8_lossy(&generated.stdout).trim()).is_ok());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_without_master_key_is_rejected_with_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let database = tests::postgres::Database::create().await.unwrap();
    let output = Setup::new(folder.path()).with("LOUPE_DATABASE_URL", &database.url()).run(&[]);
    assert!(!output.status.success());
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("LOUPE_MASTER_KEY") && message.contains("admin generate-key"), "{message}");
}
