//! A stub server that gets its responses from a function and records the requests.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

use assert_cmd::Command;
use serde_json::{Value, json};

/// A recorded request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Method, such as `GET`.
    pub method: String,
    /// Path without query.
    pub path: String,
    /// Query as sent.
    pub query: String,
    /// Value of `Authorization`.
    pub auth: String,
    /// Value of `X-Project-Name`.
    pub project: String,
    /// Value of `Last-Event-ID`.
    pub last_event: String,
    /// The body.
    pub body: String,
}

/// A response.
pub struct Reply {
    status: u16,
    headers: Vec<String>,
    body: String,
    /// Chunks of a stream, each sent after a short delay; the connection ends after the last.
    pieces: Vec<String>,
    /// Number of bytes of the body that are announced and never sent.
    cut: usize,
}

impl Reply {
    /// Creates a response with status 200 and JSON.
    pub fn json(body: Value) -> Self {
        Self::status(200, body)
    }

    /// Creates a response with any status and JSON.
    pub fn status(status: u16, body: Value) -> Self {
        let headers = vec!["Content-Type: application/json".to_owned(), "X-Request-Id: req-1".to_owned()];
        Self { status, headers, body: body.to_string(), pieces: Vec::new(), cut: 0 }
    }

    /// Creates an error response.
    pub fn error(status: u16, code: &str) -> Self {
        Self::status(status, json!({ "error": format!("it is {code}"), "code": code, "request_id": "req-1" }))
    }

    /// Creates a response with status 200 and any text.
    pub fn text(kind: &str, body: &str) -> Self {
        let headers = vec![format!("Content-Type: {kind}")];
        Self { headers, body: body.to_owned(), ..Self::json(Value::Null) }
    }

    /// Ends the connection this many bytes before the end of the body.
    pub fn cut_by(mut self, bytes: usize) -> Self {
        self.cut = bytes;
        self
    }

    /// Creates a stream of events.
    pub fn events(pieces: &[String]) -> Self {
        let headers = vec!["Content-Type: text/event-stream".to_owned()];
        Self { status: 200, headers, body: String::new(), pieces: pieces.to_vec(), cut: 0 }
    }

    /// Adds a header.
    pub fn header(mut self, header: &str) -> Self {
        self.headers.push(header.to_owned());
        self
    }

    fn send(self, stream: &mut TcpStream) -> std::io::Result<()> {
        let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", self.status);
        for header in &self.headers {
            head.push_str(&format!("{header}\r\n"));
        }
        if self.pieces.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        write!(stream, "{head}\r\n{}", &self.body[..self.body.len() - self.cut])?;
        for piece in self.pieces {
            stream.write_all(piece.as_bytes())?;
            stream.flush()?;
        }
        Ok(())
    }
}

/// A running stub server, and a configuration folder for its clients.
pub struct Stub {
    /// Base address.
    pub url: String,
    /// `LOUPE_CONFIG_DIR` of the clients.
    pub dir: tempfile::TempDir,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Stub {
    /// Starts a server; `answer` receives each request and the number of requests before it.
    pub fn new(answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &seen, answer.as_ref()));
            }
        });
        Self { url, dir: tempfile::tempdir().unwrap(), requests }
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
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
            .env("LOUPE_URL", &self.url)
            .env("TZ", "UTC");
        command.current_dir(self.dir.path()).timeout(Duration::from_secs(20)).args(args);
        command
    }
}

fn serve(
    stream: TcpStream,
    seen: &Mutex<Vec<Request>>,
    answer: &(dyn Fn(&Request, usize) -> Reply + Send + Sync),
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    let mut request = Request::default();
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap_or_default() > 2 {
        let text = line.trim_end();
        if request.method.is_empty() {
            let mut words = text.split(' ');
            request.method = words.next().unwrap_or_default().to_owned();
            let target = words.next().unwrap_or_default();
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            (request.path, request.query) = (path.to_owned(), query.to_owned());
        } else if let Some((name, value)) = text.split_once(": ") {
            match name.to_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "authorization" => request.auth = value.to_owned(),
                "x-project-name" => request.project = value.to_owned(),
                "last-event-id" => request.last_event = value.to_owned(),
                _ => {}
            }
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    request.body = String::from_utf8_lossy(&body).into_owned();
    let before = {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        seen.len() - 1
    };
    // A disconnected client is no failure of the test.
    _ = answer(&request, before).send(&mut stream);
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
