//! `loupe console` end to end: the built programs in a terminal of 80x24, from the first start on, and
//! against a server that rejects requests, fails or does not respond.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{path::Path, thread, time::Duration};

use serde_json::{Value, json};
use stub::{ResponseSwitch, StubResponse, StubServer};
use tests::{process::built, terminal::Terminal};

/// Safety net against a hang while the console changes the screen.
const SCREEN_TIMEOUT: Duration = Duration::from_secs(60);
/// Safety net against a hang while the console waits for its probe of the server, which runs every 30 s.
const PROBE_TIMEOUT: Duration = Duration::from_secs(120);

/// A server whose response to requests for traces and evaluations changes while the console runs.
struct Server {
    stub: StubServer,
    lists: ResponseSwitch,
}

impl Server {
    fn new(lists: StubResponse) -> Self {
        let lists = ResponseSwitch::new(lists);
        let current = lists.clone();
        let stub = StubServer::new(move |request, _| match request.path.as_str() {
            "/v1/traces" => current.current(),
            path if path.starts_with("/v1/eval/") => current.current(),
            "/v1/me" => StubResponse::json(me()),
            _ => StubResponse::error(404, "not_found"),
        });
        Self { stub, lists }
    }

    fn turn(&self, lists: StubResponse) {
        self.lists.set(lists);
    }

    /// Builds a console with an API key for this server.
    fn console(&self, folder: &Path, more: &[(&str, &str)]) -> Terminal {
        let mut variables = vec![("LOUPE_URL", self.stub.url()), ("LOUPE_API_KEY", "lp_test")];
        variables.extend(more);
        console(folder, &[], &variables)
    }
}

fn me() -> Value {
    json!({
        "tenant": { "id": "01980f6e-0000-7000-8000-00000000000a", "name": "acme", "plan": "team",
            "created_at": "2026-11-01T00:00:00Z" },
        "role": "owner", "subject": null, "api_key": null, "expires_at": null,
        "limits": { "requests_per_minute": {}, "traces_per_month": null, "llm_evaluations_per_month": null,
            "members": null },
        "usage": { "month": "2026-11", "traces": 1, "llm_evaluations": 0, "members": 1 },
    })
}

/// Builds a page of traces in which every second one failed.
fn traces(count: usize) -> StubResponse {
    let trace = |n: usize| {
        let failed = n % 2 == 1;
        json!({
            "id": format!("01980f6e-0000-7000-8000-0000{n:08x}"),
            "project_id": "01980f6e-0000-7000-8000-000000000001",
            "external_id": null, "session_id": null, "user_id": null,
            "name": if failed { "refund_agent" } else { "answer_question" }, "input": "in", "output": "out",
            "error": failed.then_some("timeout"), "model": "gpt-4o",
            "started_at": format!("2026-11-21T14:00:{:02}.000000Z", n % 60), "ended_at": null,
            "latency_ms": 1840, "cost": 0.0312, "total_token_count": 3912,
            "prompt_tokens_total": 1, "completion_tokens_total": 2, "tags": ["env:prod"],
            "metadata": {}, "span_count": 2,
        })
    };
    let traces: Vec<Value> = (0..count).map(trace).collect();
    StubResponse::json(json!({ "traces": traces, "has_more": false, "next_cursor": null }))
}

/// Starts `loupe console` in a terminal, with a profile in the folder.
fn console(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Terminal {
    let profile = folder.join("profile");
    let mut all = vec![("LOUPE_CONFIG_DIR", profile.to_str().unwrap()), ("HOME", folder.to_str().unwrap())];
    all.extend(variables);
    let arguments: Vec<&str> = std::iter::once("console").chain(arguments.iter().copied()).collect();
    Terminal::open((80, 24), folder, &built("loupe"), &arguments, &all)
}

fn header(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns the numbers of the escape sequences that set styles.
fn styles(text: &str) -> Vec<u16> {
    let sequences = text.split("\u{1b}[").skip(1).filter_map(|it| it.split_once('m'));
    sequences.flat_map(|(numbers, _)| numbers.split(';').filter_map(|it| it.parse().ok())).collect()
}

#[test]
fn refused_console_shows_a_stale_bar_and_recovers_by_itself() {
    // A credential that is refused, and a proxy that answers in place of the server.
    let page = StubResponse::text("text/html", "<html>Sign in</html>");
    let cases = [
        (StubResponse::error(401, "unauthorized"), "401 unauthorized", "loupe auth login"),
        (StubResponse::error(403, "member_removed"), "403 forbidden", "loupe members restore"),
        (page, "not the Loupe API", "an HTML page"),
    ];
    thread::scope(|scope| {
        for (behaviour, label, hint) in cases {
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let server = Server::new(traces(4));
                let terminal = server.console(folder.path(), &[]);
                terminal.wait_for("following newest", SCREEN_TIMEOUT);
                server.turn(behaviour);
                let text = terminal.wait_for("STALE since ", SCREEN_TIMEOUT);
                assert!(header(&text).contains(label), "{text}");
                let text = terminal.wait_for(hint, SCREEN_TIMEOUT);
                assert!(text.contains("refund_agent") && !text.contains("following"), "{text}");
                let styled = terminal.styled();
                let bar = styles(header(&styled));
                let red = bar.contains(&31) || bar.windows(3).any(|it| it == [38, 5, 1]);
                assert!(red && bar.contains(&1) && bar.contains(&7), "no red bar: {bar:?}");
                server.turn(traces(6));
                let text = terminal.wait_for("live 2s", PROBE_TIMEOUT);
                assert!(text.matches("refund_agent").count() == 3, "{text}");
                terminal.press(&["q"]);
                terminal.wait_for("exit code 0", SCREEN_TIMEOUT);
            });
        }
    });
}

#[test]
fn server_that_never_answers_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(StubResponse::silence());
    let terminal = server.console(folder.path(), &[]);
    terminal.wait_for("connecting", SCREEN_TIMEOUT);
    let text = terminal.wait_for("NO DATA", SCREEN_TIMEOUT);
    assert!(text.contains("No answer from") && text.contains("start a server"), "{text}");
    server.turn(traces(2));
    terminal.press(&["R"]);
    terminal.wait_for("answer_question", SCREEN_TIMEOUT);
}

#[test]
fn without_colours_failed_rows_have_a_mark_and_a_weight() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(traces(4));
    let terminal = server.console(folder.path(), &[("NO_COLOR", "1")]);
    let text = terminal.wait_for("following newest", SCREEN_TIMEOUT);
    assert!(text.contains("✗ refund_agent") && text.contains("· answer_question"), "{text}");
    assert!(text.contains("env:prod"), "{text}");
    let styled = terminal.styled();
    // 39 and 49 are the terminal's default colours.
    let colours = styles(&styled).into_iter().any(|it| matches!(it, 30..=38 | 40..=48 | 90..=107));
    assert!(!colours, "{styled:?}");
    let failed = styled.lines().find(|line| line.contains("refund_agent") && !line.contains('▸')).unwrap();
    assert!(styles(failed).contains(&1), "{failed:?}");
    // The filter line stays open on an unknown term, with the error below it.
    terminal.press(&["/"]);
    terminal.enter("latncy:>2s");
    terminal.press(&["Enter"]);
    let text = terminal.wait_for("there is no field `latncy`", SCREEN_TIMEOUT);
    assert!(text.lines().nth(3).unwrap().contains("^ there is no field"), "under the input:\n{text}");
}

#[test]
fn first_run_offers_demo_login_and_help() {
    let folder = tempfile::tempdir().unwrap();
    let terminal = console(folder.path(), &[], &[]);
    let text = terminal.wait_for("Quit", SCREEN_TIMEOUT);
    for offer in ["not set up", "1  Try the demo", "2  Log in", "3  Help"] {
        assert!(text.contains(offer), "{offer}:\n{text}");
    }
    assert!(!text.contains("error"), "{text}");
    // Choose the second item with the arrows, and go back with Esc.
    terminal.press(&["Down", "Down"]);
    terminal.wait_for("▸ 3  Help", SCREEN_TIMEOUT);
    terminal.press(&["Enter"]);
    let text = terminal.wait_for("exit code 0", SCREEN_TIMEOUT);
    assert!(text.contains("loupe auth login") && text.contains("loupe traces send"), "{text}");
}

#[test]
fn first_run_logs_in_and_opens_the_console() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(traces(4));
    let terminal = console(folder.path(), &[], &[]);
    terminal.wait_for("Quit", SCREEN_TIMEOUT);
    terminal.press(&["2"]);
    terminal.wait_for("Address of the server", SCREEN_TIMEOUT);
    terminal.enter(server.stub.url());
    terminal.press(&["Enter"]);
    terminal.wait_for("API key or session token:", SCREEN_TIMEOUT);
    terminal.enter("lp_secret");
    terminal.press(&["Enter"]);
    let text = terminal.wait_for("following newest", SCREEN_TIMEOUT);
    assert!(text.contains("acme/all projects") && !text.contains("lp_secret"), "{text}");
    terminal.press(&["q"]);
    let text = terminal.wait_for("exit code 0", SCREEN_TIMEOUT);
    assert!(!text.contains("lp_secret"), "{text}");
    let stored = std::fs::read_to_string(folder.path().join("profile/credentials.toml")).unwrap();
    assert!(stored.contains("lp_secret"));
}

#[test]
fn first_run_starts_the_demo_and_stops_it_with_the_console() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    // The server is installed next to the command line program.
    assert_eq!(built("loupe-server").parent(), built("loupe").parent());
    let path = std::env::join_paths(["/usr/bin", "/bin"]).unwrap();
    let variables = [("TMPDIR", temporary.to_str().unwrap()), ("PATH", path.to_str().unwrap())];
    let terminal = console(folder.path(), &[], &variables);
    terminal.wait_for("Quit", SCREEN_TIMEOUT);
    terminal.press(&["1"]);
    terminal.wait_for("creating traces, 00:0", SCREEN_TIMEOUT);
    let text = terminal.wait_for("following newest", Duration::from_secs(120));
    assert!(text.contains("DEMO") && text.contains("Acme (demo)"), "{text}");
    terminal.press(&["q"]);
    terminal.wait_for("exit code 0", SCREEN_TIMEOUT);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "the demo left temporary files");
    let stored = std::fs::read_to_string(folder.path().join("profile/credentials.toml")).unwrap_or_default();
    assert!(!stored.contains("demo"), "the context of the demo was not removed: {stored}");
}

#[test]
fn console_without_terminal_or_prompts_explains_itself() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile");
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(built("loupe"));
        command.env_clear().env("LOUPE_CONFIG_DIR", &profile).args(arguments);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, stderr) = run(&["console"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("needs a terminal") && stderr.contains("loupe traces tail"), "{stderr}");
    let terminal = console(folder.path(), &["--no-input"], &[]);
    let text = terminal.wait_for("exit code 4", SCREEN_TIMEOUT);
    assert!(text.contains("LOUPE_API_KEY") && text.contains("loupe auth login"), "{text}");
}

#[test]
fn signals_at_a_prompt_restore_the_terminal() {
    let prompts = [("auth login --no-check", "API key or session token:"), ("console", "Quit")];
    let signals = [("TERM", 143), ("INT", 130), ("HUP", 143), ("QUIT", 143)];
    thread::scope(|scope| {
        for (arguments, question) in prompts {
            for (signal, code) in signals {
                scope.spawn(move || {
                    let folder = tempfile::tempdir().unwrap();
                    let pid = folder.path().join("pid");
                    let loupe = built("loupe");
                    let program =
                        format!("echo $$ > {}; exec {} {arguments}", pid.display(), loupe.display());
                    let script = format!("sh -c '{program}'; echo code $?; stty -a");
                    let profile = folder.path().join("profile");
                    let variables = [("LOUPE_CONFIG_DIR", profile.to_str().unwrap())];
                    let arguments = ["-c", script.as_str()];
                    let shell = Path::new("/bin/sh");
                    let terminal = Terminal::open((80, 24), folder.path(), shell, &arguments, &variables);
                    terminal.wait_for(question, SCREEN_TIMEOUT);
                    let pid = std::fs::read_to_string(pid).unwrap();
                    let mut kill = std::process::Command::new("kill");
                    assert!(kill.args([&format!("-{signal}"), pid.trim()]).status().unwrap().success());
                    let text = terminal.wait_for("echoke", SCREEN_TIMEOUT);
                    assert!(text.contains(&format!("code {code}")), "{signal}:\n{text}");
                    assert!(
                        !text.contains("-icanon") && !text.contains("-isig"),
                        "{signal}: raw mode\n{text}"
                    );
                });
            }
        }
    });
}

#[test]
fn demo_that_cannot_be_started_is_explained_without_error_numbers() {
    let folder = tempfile::tempdir().unwrap();
    // The program looks for the server in its own folder first.
    let loupe = folder.path().join("loupe");
    std::fs::copy(built("loupe"), &loupe).unwrap();
    std::fs::write(folder.path().join("loupe-server"), "not a program").unwrap();
    let profile = folder.path().join("profile");
    let variables = [("LOUPE_CONFIG_DIR", profile.to_str().unwrap())];
    let terminal = Terminal::open((80, 24), folder.path(), &loupe, &["console"], &variables);
    terminal.wait_for("Quit", SCREEN_TIMEOUT);
    terminal.press(&["1"]);
    let text = terminal.wait_for("exit code 1", SCREEN_TIMEOUT);
    assert!(text.contains("can't start") && text.contains("permission denied"), "{text}");
    assert!(!text.contains("os error"), "{text}");
}

/// Builds an evaluation as far as waiting for it needs.
fn evaluation(status: &str) -> StubResponse {
    StubResponse::json(
        json!({ "id": EVALUATION_ID, "metric_name": "helpfulness", "status": status, "score": 0.9, "label": "pass" }),
    )
}

const EVALUATION_ID: &str = "01980f6e-0000-7000-8000-0000000000e1";

/// Starts `loupe evals wait` in a terminal whose bytes are recorded in a file.
fn waiting(
    server: &Server,
    folder: &Path,
    limit: &str,
    variables: &[(&str, &str)],
) -> (Terminal, std::path::PathBuf) {
    let record = folder.join("record");
    let profile = folder.join("profile");
    let mut all = vec![
        ("LOUPE_CONFIG_DIR", profile.to_str().unwrap()),
        ("LOUPE_URL", server.stub.url()),
        ("LOUPE_API_KEY", "lp_test"),
    ];
    all.extend(variables);
    let script = format!(
        "echo ready; read line; {} evals wait {EVALUATION_ID} --for {limit}",
        built("loupe").display()
    );
    let terminal = Terminal::open((80, 24), folder, Path::new("/bin/sh"), &["-c", &script], &all);
    terminal.wait_for("ready", SCREEN_TIMEOUT);
    terminal.record(&record);
    terminal.press(&["Enter"]);
    (terminal, record)
}

#[test]
fn wait_shows_an_animated_line_and_removes_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(evaluation("running"));
    let (terminal, record) = waiting(&server, folder.path(), "60s", &[("NO_COLOR", "1")]);
    terminal.wait_for(" helpfulness is running, 00:0", SCREEN_TIMEOUT);
    server.turn(evaluation("complete"));
    let text = terminal.wait_for("exit code 0", SCREEN_TIMEOUT);
    assert!(
        text.contains("helpfulness") && !text.contains("is running"),
        "the line was not removed:\n{text}"
    );
    let recorded = std::fs::read_to_string(record).unwrap();
    let frames = recorded.matches("helpfulness is running").count();
    assert!(frames > 2, "no animation: {recorded:?}");
    assert!(styles(&recorded).is_empty(), "{recorded:?}");
}

#[test]
fn wait_on_a_dumb_terminal_writes_no_control_sequences() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(evaluation("running"));
    let (terminal, record) = waiting(&server, folder.path(), "2s", &[("TERM", "dumb")]);
    terminal.wait_for("exit code 7", SCREEN_TIMEOUT);
    let recorded = std::fs::read_to_string(record).unwrap();
    assert!(recorded.contains("helpfulness") && !recorded.contains('\u{1b}'), "{recorded:?}");
    assert!(!recorded.contains("is running"), "{recorded:?}");
}
