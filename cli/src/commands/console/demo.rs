//! Runs the demo server as a child process: finds it, starts it, and stops it with the console.

use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::{Instant, sleep, timeout_at},
};

use crate::{
    env::Env,
    error::{CliError, Result},
    exit::Exit,
};

/// The program that runs the demo.
const SERVER_PROGRAM: &str = "loupe-server";
/// The text before the address in the output of the program.
const READY_MARK: &str = " is ready at ";
/// Time limit of the start. The demo creates its traces before it is ready.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Time limit of a stop, after which the demo is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(12);
/// Interval between two checks whether the demo has ended.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Number of log lines that an error shows.
const SHOWN_LOG_LINES: usize = 5;

/// A running demo.
pub struct Demo {
    child: Child,
    /// The address of its API.
    pub url: String,
}

/// A line of the child's output.
enum OutputLine {
    Stdout(String),
    Stderr(String),
}

impl Demo {
    /// Starts the demo on a free port and waits until it is ready.
    pub async fn start(env: &Env) -> Result<Self> {
        let program = find(env, std::env::current_exe().ok().as_deref()).ok_or_else(missing)?;
        let mut command = Command::new(&program);
        command.args(["demo", "--port", "0"]);
        // A ctrl-c at the terminal must reach this program only, which then stops the demo.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = piped.spawn().map_err(|error| {
            let why = api::plain::io_error(&error);
            CliError::new(Exit::Unexpected, format!("can't start {}: {why}", program.display()))
                .hint("the demo needs a loupe-server built for this machine, with permission to execute it")
        })?;
        // From here on, dropping the value stops the demo.
        let mut demo = Self { child, url: String::new() };
        let mut output = demo.output();
        demo.url = demo.ready(&mut output).await?;
        Ok(demo)
    }

    /// Reads both pipes to their ends, because a full pipe would block the demo.
    fn output(&mut self) -> UnboundedReceiver<OutputLine> {
        let (sender, receiver) = unbounded_channel();
        if let Some(pipe) = self.child.stdout.take() {
            forward(pipe, sender.clone(), OutputLine::Stdout);
        }
        if let Some(pipe) = self.child.stderr.take() {
            forward(pipe, sender, OutputLine::Stderr);
        }
        receiver
    }

    async fn ready(&mut self, output: &mut UnboundedReceiver<OutputLine>) -> Result<String> {
        let deadline = Instant::now() + START_TIMEOUT;
        let mut log = Vec::new();
        loop {
            match timeout_at(deadline, output.recv()).await {
                Ok(Some(OutputLine::Stdout(line))) => {
                    if let Some((_, url)) = line.split_once(READY_MARK) {
                        return Ok(url.trim().to_owned());
                    }
                }
                Ok(Some(OutputLine::Stderr(line))) => log.push(line),
                Ok(None) => return Err(failed("the demo ended before it was ready", log)),
                Err(_) => return Err(failed("the demo was not ready in time", log)),
            }
        }
    }

    /// Stops the demo and waits for its clean-up.
    pub async fn stop(mut self) {
        self.terminate();
        let deadline = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            sleep(STOP_POLL_INTERVAL).await;
        }
        // The demo did not stop in time.
        _ = self.child.kill();
        _ = self.child.wait();
    }

    /// Asks the demo to stop, unless it has ended.
    fn terminate(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // The system's `kill` program, because sending a signal directly needs unsafe code.
        #[cfg(unix)]
        let is_asked = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status()
            .is_ok_and(|status| status.success());
        #[cfg(not(unix))]
        let is_asked = false;
        if !is_asked {
            _ = self.child.kill();
        }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.terminate();
    }
}

/// Returns the server's program: beside this one, else in a folder of `PATH`.
fn find(env: &Env, this: Option<&Path>) -> Option<PathBuf> {
    let name = format!("{SERVER_PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    let beside = this.and_then(Path::parent).map(Path::to_owned);
    let path = env.var("PATH").map(std::env::split_paths);
    let folders = beside.into_iter().chain(path.into_iter().flatten());
    folders.map(|folder| folder.join(&name)).find(|program| program.is_file())
}

fn missing() -> CliError {
    let message = format!("{SERVER_PROGRAM} is neither in the folder of this program nor in PATH");
    let hint = format!(
        "install {SERVER_PROGRAM}, run `{SERVER_PROGRAM} demo`, and `loupe console` in another terminal"
    );
    CliError::new(Exit::Unexpected, message).hint(hint)
}

fn failed(message: &str, log: Vec<String>) -> CliError {
    let mut error = CliError::new(Exit::Unexpected, message)
        .hint(format!("start the demo yourself: {SERVER_PROGRAM} demo"));
    let hidden = log.len().saturating_sub(SHOWN_LOG_LINES);
    error.detail = log.into_iter().skip(hidden).collect();
    error
}

/// Sends the lines of a pipe from its own thread. Without a receiver, the thread keeps reading.
fn forward(
    pipe: impl Read + Send + 'static,
    sender: UnboundedSender<OutputLine>,
    wrap: impl Fn(String) -> OutputLine + Send + 'static,
) {
    std::thread::spawn(move || {
        let lines = BufReader::new(pipe).lines().map_while(std::result::Result::ok);
        lines.for_each(|line| _ = sender.send(wrap(line)));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_found_beside_this_program_before_path() {
        let (beside, path) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let name = format!("{SERVER_PROGRAM}{}", std::env::consts::EXE_SUFFIX);
        let this = beside.path().join("loupe");
        let mut env = Env::default();
        assert_eq!(find(&env, Some(&this)), None);
        std::fs::write(path.path().join(&name), "").unwrap();
        env.vars.insert("PATH".into(), format!("/nowhere:{}", path.path().display()));
        assert_eq!(find(&env, Some(&this)), Some(path.path().join(&name)));
        std::fs::write(beside.path().join(&name), "").unwrap();
        assert_eq!(find(&env, Some(&this)), Some(beside.path().join(&name)));
    }

    #[test]
    fn failed_start_shows_the_end_of_the_log() {
        let log = (1..=9).map(|n| format!("line {n}")).collect();
        assert_eq!(failed("it ended", log).detail, ["line 5", "line 6", "line 7", "line 8", "line 9"]);
    }
}
