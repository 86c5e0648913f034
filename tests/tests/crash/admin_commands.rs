//! `admin backup`, `admin check` and `admin stats`, beside a running server and on damaged data.

#![allow(clippy::disallowed_methods, reason = "traces are sent beside the command under test")]

use std::{path::Path, process::Output, time::Duration};

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection};
use tests::{
    Caller, On,
    app::TEST_START_MICROS,
    hang::wait_until,
    otlp::{Span, request},
    postgres::Database,
};

use super::Home;

/// Stores traces for every check: with spans, tags, feedback, costs and failures.
async fn store_traces(caller: &Caller) {
    let items: Vec<Value> = (0..40)
        .map(|n| {
            json!({
                "id": format!("trace-{n}"), "name": "answer", "input": "Where is it?", "output": "Here.",
                "error": (n % 5 == 0).then_some("request timed out"),
                "tags": {"env": if n % 2 == 0 { "prod" } else { "a \"quoted\" ü" }, "n": n.to_string()},
                "started_at": format!("2026-{:02}-03T10:00:{:02}Z", 1 + n % 9, n),
                "spans": [
                    {"name": "chat", "type": "llm", "model": "gpt-4o", "prompt_tokens": 100 + n,
                     "completion_tokens": 20, "input": "Where is it?", "output": "Here."},
                    {"name": "look", "type": "tool", "input": "{}", "output": "found"},
                ],
            })
        })
        .collect();
    // Each trace is stored in its own commit, so that there are enough deltas for a fold.
    let mut stored = Vec::new();
    for item in &items {
        stored.push(caller.post("/v1/ingest", item).await.ok()["id"].clone());
    }
    for (n, label) in [(1, "good"), (2, "bad"), (3, "neutral"), (3, "good")] {
        let trace = &stored[n];
        caller.post("/v1/feedback", &json!({"trace_id": trace, "label": label})).await.ok();
    }
    let trace = &stored[7];
    let body = json!({
        "trace_id": trace, "metric_name": "latency_threshold", "evaluator_type": "rule",
        "config": {"max_latency_ms": 1000},
    });
    assert_eq!(caller.post("/v1/eval", &body).await.status, 202);
}

/// Stores more traces of one day than a roll-up lists individually.
async fn store_a_busy_day(caller: &Caller) {
    let started = |n: usize| format!("2026-10-20T{:02}:{:02}:{:02}Z", n % 24, n / 24, n % 60);
    let items: Vec<Value> =
        (0..300).map(|n| json!({"id": format!("busy-{n}"), "started_at": started(n)})).collect();
    assert_eq!(caller.post("/v1/ingest/batch", &json!({"traces": items})).await.status, 200);
}

/// Stores a trace whose spans are too many for a span block, and one with a late span whose text block no trace names.
async fn store_long_trace_and_late_span(caller: &Caller) {
    let steps: Vec<Value> = (0..130).map(|n| json!({"name": format!("step {n}")})).collect();
    caller.post("/v1/ingest", &json!({"id": "long", "spans": steps})).await.ok();
    let root =
        Span::new(7, 1, "root", TEST_START_MICROS).with("input.value", "in").with("output.value", "out");
    let late = Span::new(7, 2, "late", TEST_START_MICROS).under(1).with("input.value", "late");
    for span in [root, late] {
        caller.post("/v1/otlp/traces", &request([&span])).await.ok();
    }
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Runs a statement on the database of a server.
async fn execute(home: &Home, sql: &str) {
    let statements = AssertSqlSafe(sql.to_owned());
    let changed = match &home.database {
        Some(database) => {
            let mut connection = sqlx::PgConnection::connect(&database.url()).await.unwrap();
            sqlx::raw_sql(statements).execute(&mut connection).await.unwrap().rows_affected()
        }
        None => {
            let url = store::sqlite_url(&home.folder.path().join("loupe-data"));
            let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
            let done = sqlx::raw_sql(statements).execute(&mut connection).await.unwrap().rows_affected();
            connection.close().await.unwrap();
            done
        }
    };
    assert!(changed > 0, "{sql} changed nothing");
}

/// Damage that deletes a row, and its repair.
fn lost(table: &str, condition: &str) -> [String; 2] {
    let one = format!("{table} WHERE {condition}");
    [
        format!("CREATE TABLE kept AS SELECT * FROM {one}; DELETE FROM {one};"),
        format!("INSERT INTO {table} SELECT * FROM kept; DROP TABLE kept;"),
    ]
}

/// Damage that changes a value, and its repair.
fn changed(table: &str, change: &str, back: &str, condition: &str) -> [String; 2] {
    [change, back].map(|it| format!("UPDATE {table} SET {it} WHERE {condition}"))
}

/// Damage that makes a span block unreadable, and its repair.
fn damaged_block(condition: &str) -> [String; 2] {
    let kept = "(SELECT data FROM kept)";
    [
        format!(
            "CREATE TABLE kept AS SELECT data FROM span_block WHERE {condition}; \
             UPDATE span_block SET data = body_ids WHERE {condition};"
        ),
        format!("UPDATE span_block SET data = {kept} WHERE {condition}; DROP TABLE kept;"),
    ]
}

/// Damage, its repair, and the check that finds it.
fn damages() -> Vec<(&'static str, [String; 2])> {
    let trace = |n: u32| format!("external_id = 'trace-{n}'");
    let some_trace = format!("(SELECT id FROM trace WHERE {})", trace(4));
    let long = "t.external_id = 'long'";
    vec![
        ("totals", changed("trace", "span_count = span_count + 1", "span_count = span_count - 1", &trace(1))),
        (
            "totals",
            changed(
                "trace",
                "prompt_tokens = prompt_tokens + 7",
                "prompt_tokens = prompt_tokens - 7",
                &trace(2),
            ),
        ),
        (
            "totals",
            changed("trace", "total_tokens = total_tokens + 7", "total_tokens = total_tokens - 7", &trace(2)),
        ),
        ("totals", changed("trace", "cost = cost + 1", "cost = cost - 1", &trace(3))),
        ("totals", lost("span_block", &format!("trace_id = {some_trace}"))),
        ("totals", lost("span", "name = 'step 3'")),
        (
            "totals",
            [
                format!(
                    "INSERT INTO span_block (tenant_id, trace_key, trace_id, body_ids, data) \
                     SELECT t.tenant_id, t.key, t.id, b.body_ids, b.data FROM trace t, span_block b \
                     WHERE {long} AND b.trace_id = {some_trace}"
                ),
                format!("DELETE FROM span_block WHERE trace_id = (SELECT id FROM trace t WHERE {long})"),
            ],
        ),
        ("texts", lost("body", "NOT EXISTS (SELECT 1 FROM trace t WHERE t.body_id = body.id)")),
        ("totals", damaged_block(&format!("trace_id = {some_trace}"))),
        ("orphans", lost("trace", &trace(4))),
        ("trace_index", lost("trace_tail", "1 = 1")),
        ("texts", lost("body", "1 = 1")),
        ("feedback", changed("trace", "feedback = 2", "feedback = 1", &trace(1))),
        ("metrics", lost("metric_node", "level = 0")),
        ("metrics", lost("metric_node", "level = 1")),
        ("metrics", changed("trace", "error = 'new'", "error = NULL", &trace(1))),
        ("metrics", changed("trace", "latency_ms = 5", "latency_ms = NULL", &trace(1))),
        ("quotas", changed("quota_use", "used = used - 100", "used = used + 100", "quota = 'traces'")),
        ("projects", lost("project", "name = 'default'")),
        (
            "projects",
            changed("feedback", "project_id = tenant_id", "project_id = (SELECT id FROM project)", "1 = 1"),
        ),
        (
            "tenants",
            changed(
                "quota_use",
                "tenant_id = (SELECT id FROM project)",
                "tenant_id = (SELECT tenant_id FROM tenant)",
                "quota = 'traces'",
            ),
        ),
    ]
}

async fn check_finds_damage(on: On) {
    let home = Home::on(on).await;
    let mut server = home.setup.start();
    store_a_busy_day(&home.caller(&server.url)).await;
    store_traces(&home.caller(&server.url)).await;
    store_long_trace_and_late_span(&home.caller(&server.url)).await;
    let check = || home.setup.run(&["admin", "check", "--json"]);
    // The server runs meanwhile, and its jobs do not affect the result.
    for _ in 0..5 {
        let output = check();
        let found = report(&output);
        assert_eq!((output.status.code(), &found["ok"]), (Some(0), &json!(true)), "{found}");
        assert!(found["checks"]["totals"]["compared"].as_i64() == Some(342), "{found}");
        assert!(found["checks"]["metrics"]["compared"].as_i64() > Some(8), "{found}");
    }
    // With all deltas folded, the check compares the nodes.
    wait_until("all deltas are folded", async || home.count("metric_delta").await == 0).await;
    server.terminate();
    assert!(server.wait(Duration::from_secs(15)).success(), "{}", server.log());
    for (name, [damage, repair]) in damages() {
        execute(&home, &damage).await;
        let output = check();
        let found = report(&output);
        assert_eq!((output.status.code(), &found["ok"]), (Some(1), &json!(false)), "{damage}: {found}");
        assert!(found["checks"][name]["problems"].as_i64() > Some(0), "{damage}: {found}");
        let finding = found["findings"].as_array().unwrap().iter().find(|it| it["check"] == name).unwrap();
        assert!(finding["subject"].is_string() && finding["problem"].is_string(), "{finding}");
        let output = home.setup.run(&["admin", "check"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("the database is inconsistent"),
            "{output:?}"
        );
        execute(&home, &repair).await;
    }
    let output = check();
    assert_eq!(output.status.code(), Some(0), "{}", report(&output));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_covers_every_tenant_table() {
    let home = Home::on(On::Sqlite).await;
    drop(home.setup.start());
    let found = report(&home.setup.run(&["admin", "check", "--json"]));
    let url = store::sqlite_url(&home.folder.path().join("loupe-data"));
    let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
    let sql = "SELECT COUNT(*) FROM sqlite_schema s WHERE s.type = 'table' AND s.name <> 'tenant' \
        AND EXISTS (SELECT 1 FROM pragma_table_info(s.name) c WHERE c.name = 'tenant_id') \
        AND s.name NOT LIKE 'trace_id_%'";
    // IDs of traces are compared with the traces instead.
    let tables: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
    assert_eq!(found["checks"]["tenants"]["compared"], tables, "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_finds_damage_on_sqlite() {
    check_finds_damage(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_finds_damage_on_postgres() {
    check_finds_damage(On::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_finds_a_damaged_sqlite_file() {
    let home = Home::on(On::Sqlite).await;
    let mut server = home.setup.start();
    store_traces(&home.caller(&server.url)).await;
    server.terminate();
    assert!(server.wait(Duration::from_secs(15)).success());
    let file = home.folder.path().join("loupe-data/loupe.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // The first page is left intact, because it contains the file format.
    for page in bytes.chunks_mut(8_192).skip(20).step_by(3) {
        page[..512].fill(0x5a);
    }
    std::fs::write(&file, bytes).unwrap();
    let output = home.setup.run(&["admin", "check", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stats_show_tables_and_indexes() {
    for database in [On::Sqlite, On::Postgres] {
        let home = Home::on(database).await;
        let server = home.setup.start();
        store_traces(&home.caller(&server.url)).await;
        let output = home.setup.run(&["admin", "stats", "--json"]);
        assert!(output.status.success(), "{output:?}");
        let sizes = report(&output);
        let table = |name: &str| {
            let tables = sizes["tables"].as_array().unwrap();
            tables
                .iter()
                .find(|it| it["name"] == name)
                .unwrap_or_else(|| panic!("no {name}: {sizes}"))
                .clone()
        };
        assert_eq!(
            (&table("trace")["rows"], &table("span_block")["rows"]),
            (&json!(40), &json!(40)),
            "{sizes}"
        );
        let indexes = table("trace")["indexes"].as_array().unwrap().clone();
        assert!(indexes.iter().any(|it| it["name"] == "ix_trace_project_day"), "{indexes:?}");
        assert!(indexes.iter().all(|it| it["bytes"].as_i64() > Some(0)), "{indexes:?}");
        assert!(
            table("trace")["bytes"].as_i64() > Some(4_000) && sizes["bytes"].as_i64() > Some(100_000),
            "{sizes}"
        );
        let text = String::from_utf8(home.setup.run(&["admin", "stats"]).stdout).unwrap();
        assert!(text.starts_with("TABLE") && text.contains("trace_tail"), "{text}");
    }
}

/// Returns the files of a folder.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_beside_a_running_server_is_complete_and_private() {
    let home = Home::on(On::Sqlite).await;
    let server = home.setup.start();
    let caller = home.caller(&server.url);
    store_traces(&caller).await;
    // Traces keep arriving while the copy is made.
    let writing = {
        let caller = home.caller(&server.url);
        tokio::spawn(async move {
            for n in 0..10_000 {
                caller
                    .post("/v1/ingest", &json!({"id": format!("during-{n}"), "output": "x".repeat(5_000)}))
                    .await;
            }
        })
    };
    let target = home.folder.path().join("copies");
    std::fs::create_dir(&target).unwrap();
    let path = target.join("loupe.db");
    let backup = |path: &Path| home.setup.run(&["admin", "backup", path.to_str().unwrap(), "--json"]);
    let output = backup(&path);
    assert!(output.status.success(), "{output:?}");
    writing.abort();
    let output = report(&output);
    assert_eq!(output["master_key_included"], false, "{output}");
    assert!(output["master_key"].as_str().unwrap().ends_with("master.key"), "{output}");
    assert_eq!(output["bytes"].as_u64(), Some(std::fs::metadata(&path).unwrap().len()));
    assert_eq!(files(&target), ["loupe.db"], "the folder contains other files");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let log =
        home.setup.run(&["admin", "issue-token", "--tenant", &tenant(&caller).await, "--role", "owner"]);
    let owner = Caller::new(&server.url, Some(String::from_utf8(log.stdout).unwrap().trim()));
    let record = owner.get("/v1/audit-log?action=database.backup").await.ok();
    assert_eq!(record["audit_log"].as_array().map(Vec::len), Some(1), "{record}");

    // Existing files are never overwritten, not even a broken link.
    let before = std::fs::read(&path).unwrap();
    let refused = backup(&path);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("exists already"), "{refused:?}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(target.join("nowhere"), target.join("link")).unwrap();
        assert!(!backup(&target.join("link")).status.success());
        assert!(!target.join("nowhere").exists());
    }
    let refused = backup(&target.join("no/such/folder.db"));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("does not exist"), "{refused:?}");
    drop(server);

    // The copy has all rows stored before it began, and a server can use it.
    let restored = tempfile::tempdir().unwrap();
    std::fs::create_dir(restored.path().join("loupe-data")).unwrap();
    std::fs::copy(&path, restored.path().join("loupe-data/loupe.db")).unwrap();
    let key = home.folder.path().join("loupe-data/master.key");
    std::fs::copy(key, restored.path().join("loupe-data/master.key")).unwrap();
    let setup = tests::process::Setup::new(restored.path());
    let check = setup.run(&["admin", "check", "--json"]);
    assert_eq!(check.status.code(), Some(0), "{}", report(&check));
    let server = setup.start();
    let caller = home.caller(&server.url);
    for n in 0..40 {
        let found = caller.get(&format!("/v1/traces?external_id=trace-{n}")).await.ok();
        assert!(found["traces"].as_array().is_some_and(|it| !it.is_empty()), "trace-{n}: {found}");
    }
}

async fn tenant(caller: &Caller) -> String {
    caller.get("/v1/me").await.ok()["tenant"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_of_postgres_is_rejected_with_instructions() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create().await.unwrap();
    let setup = tests::process::Setup::new(folder.path()).with("LOUPE_DATABASE_URL", &database.url());
    let refused = setup.run(&["admin", "backup", "copy.db"]);
    assert!(!refused.status.success());
    let output = String::from_utf8_lossy(&refused.stderr);
    assert!(output.contains("pg_dump") && output.contains("PostgreSQL"), "{output}");
    assert!(!folder.path().join("copy.db").exists());
}
