//! Runs the scripts of `docs/ci.md` with bash, unchanged, against the built programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "a script needs the search path of the machine")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use server::access::api_key::ApiKey;
use stub::{ResponseSwitch, StubResponse, StubServer};
use tests::{
    On,
    postgres::Database,
    process::{ServerProcess, Setup, built},
};

/// A server with the tenant of the first start, and its owner.
struct Installation {
    folder: tempfile::TempDir,
    // Declared before the database, so that it is dropped first.
    server: ServerProcess,
    _database: Option<Database>,
    key: String,
    session: String,
}

/// The output of a script and its exit status.
struct ScriptOutput {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Both databases, in sequence.
const BOTH_DATABASES: [On; 2] = [On::Sqlite, On::Postgres];

/// Starts a server on an empty database.
async fn installation(on: On) -> Installation {
    installation_with(on, &[]).await
}

/// Starts a server with these additional settings.
async fn installation_with(on: On, settings: &[(&str, &str)]) -> Installation {
    let folder = tempfile::tempdir().unwrap();
    let key = ApiKey::generate().unwrap().reveal().to_owned();
    let mut setup = Setup::new(folder.path()).with("LOUPE_BOOTSTRAP_API_KEY", &key);
    for (name, value) in settings {
        setup = setup.with(name, value);
    }
    let database = Database::create_for(on).await;
    if let Some(database) = &database {
        setup = setup.with_postgres(&database.url());
    }
    let server = setup.start();
    let admin = |args: &[&str]| -> Value {
        let output = setup.run(&[&["admin"], args, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let tenant = admin(&["list-tenants"])["tenants"][0]["id"].as_str().unwrap().to_owned();
    let issued = admin(&["issue-token", "--tenant", &tenant, "--role", "owner"]);
    let session = issued["token"].as_str().unwrap().to_owned();
    Installation { folder, server, _database: database, key, session }
}

impl Installation {
    /// Runs a script with the variables that a CI service sets.
    fn run(&self, script: &str) -> ScriptOutput {
        let script = script.replace("https://loupe.example.internal", &self.server.url);
        // Without `jq` on the machine, the script uses the built-in one.
        let script = if is_installed("jq") { script } else { script.replace("--json | jq -r", "--raw --jq") };
        let programs = built("loupe").parent().unwrap().to_path_buf();
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .arg("-c")
            .arg(script)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("LOUPE_CONFIG_DIR", self.folder.path().join("config"))
            .env("LOUPE_SESSION_TOKEN", &self.session)
            .env("GITHUB_RUN_ID", "4711")
            .env("CI", "true")
            .output()
            .unwrap();
        ScriptOutput {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs `loupe` with an API key.
    fn loupe(&self, key: &str, args: &str) -> ScriptOutput {
        self.run(&format!(
            "{}\nunset LOUPE_SESSION_TOKEN\nLOUPE_API_KEY='{key}' loupe {args}",
            script_below("Setup")
        ))
    }
}

/// Returns the first script below a heading of the document.
fn script_below(heading: &str) -> String {
    scripts_below(heading).remove(0)
}

/// Returns all scripts below a heading of the document.
fn scripts_below(heading: &str) -> Vec<String> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ci.md");
    let document = fs::read_to_string(document).unwrap();
    let (_, section) = document.split_once(&format!("## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let scripts = section.split("```sh\n").skip(1);
    scripts.map(|it| it.split_once("```").unwrap().0.to_owned()).collect()
}

/// Returns whether a program is on the search path.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder: PathBuf| folder.join(program).exists())
}

/// Returns whether a text contains an API key that is longer than its prefix.
fn contains_secret(text: &str) -> bool {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    text.split(word).any(|word| word.starts_with("lp_") && word.len() > 11)
}

#[tokio::test]
async fn key_script_creates_keys_without_showing_them() {
    for database in BOTH_DATABASES {
        let installation = installation(database).await;
        let script = format!("{}\n{}", script_below("Setup"), script_below("Create a key"));
        for created in ["true", "false"] {
            // The most verbose log must not contain the secrets either.
            let ran = installation.run(&format!("export LOUPE_LOG=trace\n{script}\necho \"${{#key}}\""));
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let lines: Vec<&str> = ran.stdout.lines().collect();
            assert_eq!(lines.len(), 3, "{}", ran.stdout);
            let shown: Value = serde_json::from_str(lines[0]).unwrap();
            let fields: Vec<&String> = shown.as_object().unwrap().keys().collect();
            assert_eq!(fields, ["created_at", "id", "prefix"]);
            assert_eq!((lines[1], lines[2]), (created, "52"));
            assert!(!contains_secret(&ran.stdout) && !contains_secret(&ran.stderr), "{}", ran.stderr);
            assert!(!ran.stderr.contains(&installation.session), "{}", ran.stderr);

            let file = installation.folder.path().join(".env.loupe");
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            let content = fs::read_to_string(&file).unwrap();
            let key = content.trim().strip_prefix("LOUPE_API_KEY=").unwrap();
            let used = installation.loupe(key, "auth status --json --jq .api_key.prefix --raw");
            assert_eq!((used.code, used.stdout.trim()), (Some(0), shown["prefix"].as_str().unwrap()));
        }
    }
}

#[tokio::test]
async fn failed_key_creation_ends_the_script() {
    let installation = installation(On::Sqlite).await;
    let script = script_below("Create a key");
    let script = format!(
        "set -euo pipefail\nexport LOUPE_URL={} LOUPE_SESSION_TOKEN=wrong\n{script}",
        installation.server.url
    );
    let ran = installation.run(&script);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), ""), "{}", ran.stderr);
    assert!(!installation.folder.path().join(".env.loupe").exists());
}

#[tokio::test]
async fn archive_script_runs_once_and_spares_the_last_project() {
    for database in BOTH_DATABASES {
        let installation = installation(database).await;
        let sent = installation.loupe(
            &installation.key,
            "traces send - -q <<< '{\"project_name\":\"2025-pilot\",\"name\":\"first\"}'",
        );
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);

        let script = format!("{}\n{}", script_below("Setup"), script_below("Archive a project"));
        for changed in [true, false] {
            let ran = installation.run(&script);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let expected =
                serde_json::json!({ "project": "2025-pilot", "status": "archived", "changed": changed });
            assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap(), expected);
        }
        let refused = installation.loupe(
            &installation.key,
            "traces send - <<< '{\"project_name\":\"2025-pilot\",\"name\":\"late\"}'",
        );
        assert_eq!(refused.code, Some(9), "{}", refused.stderr);

        let ran = installation.run(&script.replace("2025-pilot", "default"));
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), "last active project, left alone\n"),
            "{}",
            ran.stderr
        );
        let ran = installation.run(&script.replace("2025-pilot", "unknown"));
        assert_eq!(ran.code, Some(11), "{}", ran.stderr);
    }
}

#[tokio::test]
async fn deploy_script_gates_on_metrics() {
    for database in BOTH_DATABASES {
        let installation = installation(database).await;
        let script = format!("{}\n{}", script_below("Setup"), script_below("Gate a deploy on metrics"));
        let gate = |named: &[&str]| {
            let ran = installation.run(&script);
            let metrics = serde_json::from_str::<Value>(&ran.stdout).unwrap()["metrics"].take();
            let code = if named.is_empty() { 0 } else { 6 };
            assert_eq!(ran.code, Some(code), "{}", ran.stderr);
            assert!(named.iter().all(|it| ran.stderr.contains(it)), "{}", ran.stderr);
            assert_eq!(named.len(), ran.stderr.matches("(it is ").count(), "{}", ran.stderr);
            metrics
        };
        let send = |item: &str| {
            let sent = installation.loupe(&installation.key, &format!("traces send - -q <<< '{item}'"));
            assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        };
        assert_eq!(gate(&["trace_count<1 (it is 0)"])["error_rate"], Value::Null);
        for _ in 0..9 {
            send(r#"{"name":"smoke","latency_ms":900}"#);
        }
        let metrics = gate(&[]);
        assert_eq!((&metrics["error_rate"], &metrics["trace_count"]), (&0.0.into(), &9.into()));
        assert!(metrics["latency_p95"].as_f64().is_some_and(|it| (it - 900.0).abs() <= 9.0), "{metrics}");
        send(r#"{"name":"smoke","latency_ms":60000,"error":"upstream timeout"}"#);
        let metrics = gate(&["error_rate>2% (it is 10.0 %)", "latency_p95>5s"]);
        assert_eq!(metrics["trace_count"], 10);
    }
}

/// A judge provider that always gives the same score.
struct Judge {
    url: String,
    response: ResponseSwitch,
}

impl Judge {
    fn start() -> Self {
        let response = ResponseSwitch::new(verdict(1.0));
        let current = response.clone();
        let stub = StubServer::new(move |_, _| current.current());
        Self { url: format!("{}/v1", stub.url()), response }
    }

    fn set_score(&self, score: f64) {
        self.response.set(verdict(score));
    }
}

/// Builds a verdict like OpenAI's chat completions.
fn verdict(score: f64) -> StubResponse {
    let verdict = json!({ "reasoning": "The script says so.", "score": score }).to_string();
    let message = json!({ "role": "assistant", "content": verdict });
    StubResponse::json(json!({
        "id": "c", "object": "chat.completion", "model": "gpt-4o-mini",
        "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940 },
    }))
}

impl Installation {
    /// Writes the trace that the scripts send.
    fn smoke(&self, output: Option<&str>, latency_ms: i64) {
        let question = "How long may I return a pair of shoes?";
        let document = json!([{ "content": "Shoes may be returned within 30 days." }]).to_string();
        let spans = json!([
            { "name": "look_up", "type": "retrieval", "input": question, "output": document },
            { "name": "answer", "type": "llm", "input": question, "output": output },
        ]);
        let mut trace = json!({ "name": "smoke", "input": question, "latency_ms": latency_ms });
        if output.is_some() {
            trace["output"] = json!(output);
            trace["spans"] = spans;
        }
        fs::write(self.folder.path().join("smoke.json"), trace.to_string()).unwrap();
    }

    /// Runs the scripts below these headings as one script.
    fn scripts_below(&self, headings: &[&str]) -> ScriptOutput {
        let scripts: Vec<String> = headings.iter().map(|it| script_below(it)).collect();
        self.run(&format!("{}\n{}", script_below("Setup"), scripts.join("\n")))
    }
}

#[tokio::test]
async fn build_script_gates_on_evaluations() {
    for database in BOTH_DATABASES {
        let judge = Judge::start();
        let settings =
            [("LOUPE_JUDGE_OPENAI_API_KEY", "sk-script"), ("LOUPE_JUDGE_OPENAI_BASE_URL", &judge.url)];
        let installation = installation_with(database, &settings).await;
        let heading = "Gate a build on an evaluation";
        let answer = Some("Within 30 days.");
        for (score, output, code, said) in [
            (0.9, answer, 0, ""),
            (0.8, answer, 0, ""),
            (0.62, answer, 6, "faithfulness: 0.62 is below 0.8"),
            (0.9, None, 16, "faithfulness: "),
        ] {
            installation.smoke(output, 900);
            judge.set_score(score);
            let ran = installation.scripts_below(&[heading]);
            assert_eq!(ran.code, Some(code), "{score} {}\n{}", ran.stderr, ran.stdout);
            assert!(ran.stderr.contains(said), "{}", ran.stderr);
            assert!(ran.stdout.contains("faithfulness"), "{}", ran.stdout);
        }
        let second = scripts_below(heading).remove(1);
        for (latency, code) in [(900, 0), (60_000, 6)] {
            installation.smoke(answer, latency);
            let send = "TRACE=$(loupe traces send smoke.json -o id -q)";
            let ran = installation.run(&format!("{}\n{send}\n{second}", script_below("Setup")));
            assert_eq!(ran.code, Some(code), "{}\n{}", ran.stderr, ran.stdout);
        }
    }
}

#[tokio::test]
async fn evaluator_script_creates_and_uses_an_evaluator() {
    for database in BOTH_DATABASES {
        let installation = installation(database).await;
        let ran = installation.scripts_below(&["Custom evaluators"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        // The server accepts every check that the program's help page shows.
        let page = installation.run("loupe help custom-evaluators").stdout;
        let checks: Vec<&str> =
            page.lines().map(str::trim).filter(|it| it.starts_with("{\"kind\"")).collect();
        assert!(checks.len() >= 9, "{page}");
        fs::write(installation.folder.path().join("checks.json"), format!("[{}]", checks.join(","))).unwrap();
        let ran = installation.loupe(&installation.key, "evaluators create shown --checks checks.json -o id");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "shown\n"), "{}", ran.stderr);

        for (output, code) in [("Within 30 days.", 0), ("Within 30 days, we promise.", 6)] {
            installation.smoke(Some(output), 900);
            let ran = installation.scripts_below(&["Several evaluations of one trace"]);
            assert_eq!(ran.code, Some(code), "{}\n{}", ran.stderr, ran.stdout);
            assert_eq!(ran.stdout.lines().count(), 3, "{}", ran.stdout);
            assert_eq!(ran.stderr.contains("no_promises: the label is fail"), code == 6, "{}", ran.stderr);
        }

        let ran = installation.scripts_below(&["Evaluate existing traces"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let bulk: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(
            (&bulk["status"], &bulk["matched"], &bulk["failed"]),
            (&json!("complete"), &json!(2), &json!(0))
        );
        let worst = fs::read_to_string(installation.folder.path().join("worst.csv")).unwrap();
        assert!(worst.lines().count() >= 2 && !worst.contains("pass"), "{worst}");
    }
}
