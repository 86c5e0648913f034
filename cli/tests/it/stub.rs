//! A stub server and the commands that call it.

use std::{ops::Deref, time::Duration};

use assert_cmd::Command;
use serde_json::{Value, json};
use stub::StubServer;
pub use stub::{StubRequest as Request, StubResponse as Reply};

/// A running stub server, and a configuration folder for its clients.
pub struct Stub {
    /// `LOUPE_CONFIG_DIR` of the clients.
    pub dir: tempfile::TempDir,
    server: StubServer,
}

impl Deref for Stub {
    type Target = StubServer;

    fn deref(&self) -> &StubServer {
        &self.server
    }
}

impl Stub {
    /// Starts a server; `respond` receives each request and the number of requests before it.
    pub fn new(respond: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), server: StubServer::new(respond) }
    }

    /// Returns the number of requests of a method so far.
    pub fn count(&self, method: &str) -> usize {
        self.requests().iter().filter(|request| request.method == method).count()
    }

    /// Returns a `loupe` command with an API key for this server.
    pub fn loupe(&self, args: &[&str]) -> Command {
        let mut command = self.bare(args);
        command.env("LOUPE_API_KEY", "lp_test");
        command
    }

    /// Returns a `loupe` command with a session token for this server.
    pub fn session(&self, args: &[&str]) -> Command {
        let mut command = self.bare(args);
        command.env("LOUPE_SESSION_TOKEN", "session");
        command
    }

    /// Returns a `loupe` command for this server without credentials.
    pub fn bare(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loupe"));
        command
            .env_clear()
            .env("LOUPE_CONFIG_DIR", self.dir.path())
            .env("LOUPE_URL", self.url())
            .env("TZ", "UTC");
        command.current_dir(self.dir.path()).timeout(Duration::from_secs(20)).args(args);
        command
    }
}

/// Returns a trace as the list sends it, with an unknown field.
pub fn trace(n: usize) -> Value {
    json!({
        "id": format!("01980f6e-0000-7000-8000-0000{n:08x}"),
        "project_id": "01980f6e-0000-7000-8000-000000000001",
        "external_id": null, "session_id": null, "user_id": null,
        "name": format!("trace \u{1b}[31m{n}"), "input": "in\nput", "output": null,
        "error": (n % 2 == 1).then_some("timeout"), "model": "gpt-4o",
        "started_at": format!("2026-11-21T14:00:{:02}.000000Z", n % 60), "ended_at": null,
        "latency_ms": 1840, "cost": 0.0312, "total_token_count": 3912,
        "prompt_tokens_total": 1, "completion_tokens_total": 2, "tags": ["env:prod"],
        "metadata": null, "span_count": 2, "later_field": { "kept": true },
    })
}

/// Returns a page of traces.
pub fn traces(numbers: impl IntoIterator<Item = usize>, next: Option<&str>) -> Value {
    let traces: Vec<Value> = numbers.into_iter().map(trace).collect();
    json!({ "traces": traces, "has_more": next.is_some(), "next_cursor": next })
}

/// Output and exit code of a run.
pub struct Ran {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Runs a command to its end.
pub fn run(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
