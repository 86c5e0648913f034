//! Runs the built programs: starts the server as a separate process, kills it, stops it and starts it again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test whose server can't be started fails")]
#![allow(clippy::disallowed_methods, reason = "waits for processes, from threads of their own")]

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use server::access::master_key::MasterKey;

/// Maximum duration of a start.
const MAX_START_DURATION: Duration = Duration::from_secs(90);

/// The settings of a server: its folder, environment variables and arguments.
#[derive(Clone, Debug)]
pub struct Setup {
    folder: PathBuf,
    variables: Vec<(String, String)>,
}

/// A running server.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    /// The server's address.
    pub url: String,
    /// The output of the server until it was ready.
    pub greeting: String,
    /// The time from the start until the server was ready.
    pub took: Duration,
    log: Arc<Mutex<String>>,
}

impl Setup {
    /// Uses this folder for the data, and a free port that is chosen at each start.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), variables: Vec::new() }.with("LOUPE_LISTEN", "127.0.0.1:0")
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Uses this PostgreSQL database, with a new master key: only beside a SQLite database does the server create one.
    #[must_use]
    pub fn with_postgres(self, url: &str) -> Self {
        self.with("LOUPE_DATABASE_URL", url).with("LOUPE_MASTER_KEY", &MasterKey::generate().unwrap())
    }

    /// Starts the server and waits until it reports that it is ready.
    pub fn start(&self) -> ServerProcess {
        self.start_with(&[])
    }

    /// Starts the server with arguments, like [`Self::start`].
    pub fn start_with(&self, arguments: &[&str]) -> ServerProcess {
        let started = Instant::now();
        let mut child =
            self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = collect(child.stderr.take().unwrap());
        let lines = lines(child.stdout.take().unwrap());
        // From here on, dropping the value ends the process.
        let mut server = ServerProcess {
            child,
            url: String::new(),
            greeting: String::new(),
            took: MAX_START_DURATION,
            log,
        };
        loop {
            let Ok(line) = lines.recv_timeout(MAX_START_DURATION.saturating_sub(started.elapsed())) else {
                panic!("the server did not start: {}\n{}", server.greeting, server.log());
            };
            if let Some((_, url)) = line.split_once(" is ready at ") {
                (server.url, server.took) = (url.trim().to_owned(), started.elapsed());
                return server;
            }
            server.greeting.push_str(&line);
            server.greeting.push('\n');
        }
    }

    /// Runs the program with these arguments until it exits.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(built("loupe-server"));
        // Only the test's settings apply, none of the machine's.
        command.env_clear().current_dir(&self.folder).args(arguments).envs(self.variables.iter().cloned());
        command
    }
}

impl ServerProcess {
    /// Returns the process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process immediately, like a loss of power.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends the signal to stop.
    pub fn terminate(&self) {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until the process exits; panics after `at_most`.
    pub fn wait(&mut self, at_most: Duration) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < at_most, "still running after {at_most:?}: {}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the log contains `text`, which another thread reads; returns the log.
    pub fn wait_for_log(&self, text: &str) -> String {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(30) {
            let log = self.log();
            if log.contains(text) {
                return log;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{text:?} was not logged: {}", self.log());
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The process may have exited already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Returns the lines of a pipe as they arrive.
fn lines(pipe: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    // Reads to the end, even when the lines are no longer needed: a full pipe would block the server.
    thread::spawn(move || {
        BufReader::new(pipe).lines().map_while(Result::ok).for_each(|it| _ = sender.send(it));
    });
    lines
}

/// Reads a pipe to its end in the background.
fn collect(pipe: impl std::io::Read + Send + 'static) -> Arc<Mutex<String>> {
    let log = Arc::new(Mutex::new(String::new()));
    let written = Arc::clone(&log);
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut log = written.lock().unwrap();
            log.push_str(&line);
            log.push('\n');
        }
    });
    log
}

/// Returns the path of a program of the workspace, built with the profile of the test program. Builds the
/// programs if this one is missing.
pub fn built(program: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // target/<profile>/deps/<test>
    let folder = test.ancestors().nth(2).unwrap();
    let path = folder.join(format!("{program}{}", std::env::consts::EXE_SUFFIX));
    if !path.exists() {
        let profile = folder
            .file_name()
            .and_then(|it| it.to_str())
            .map_or("dev", |it| if it == "debug" { "dev" } else { it });
        // The whole workspace: a single package selects other features, and its dependencies would be
        // compiled again.
        let build = ["build", "--workspace", "--bins", "--profile", profile];
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert!(Command::new("cargo").args(build).current_dir(root).status().unwrap().success());
    }
    path
}
