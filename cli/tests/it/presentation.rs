//! Tests of colours, completions and help.

use crate::stub::{Reply, Stub, run, traces};

fn stub() -> Stub {
    Stub::new(|_, _| Reply::json(traces(0..2, None)))
}

#[test]
fn colour_off_a_terminal_must_be_forced() {
    let stub = stub();
    let escapes = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = stub.loupe(&[&["traces", "list", "-o", "table"], args].concat());
        command.envs(variables.iter().copied());
        run(command).stdout.matches('\u{1b}').count()
    };
    assert_eq!(escapes(&[], &[]), 0);
    assert!(escapes(&[], &[("CLICOLOR_FORCE", "1")]) > 0);
    assert!(escapes(&["--color", "always"], &[("NO_COLOR", "1")]) > 0);
    assert_eq!(escapes(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]), 0);
    assert_eq!(escapes(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), 0);
}

#[test]
fn forced_colour_in_tsv_is_limited_to_the_header() {
    let stub = stub();
    let output = |force: &str| {
        let mut command = stub.loupe(&["traces", "list"]);
        command.env("CLICOLOR_FORCE", force);
        run(command).stdout
    };
    let (plain, coloured) = (output("0"), output("1"));
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    assert!(coloured.lines().next().unwrap().contains('\u{1b}'), "{coloured:?}");
    assert!(coloured.lines().skip(1).eq(plain.lines().skip(1)), "{coloured:?}");
}

/// Returns a command's output on a terminal of 80 columns and this many rows.
#[cfg(target_os = "linux")]
fn on_terminal(stub: &Stub, arguments: &[&str], rows: u32, variables: &[(&str, &str)]) -> String {
    let quoted: Vec<String> = arguments.iter().map(|it| format!("'{it}'")).collect();
    let line = format!("stty rows {rows} cols 80; exec {} {}", env!("CARGO_BIN_EXE_loupe"), quoted.join(" "));
    let mut command = assert_cmd::Command::new("script");
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LOUPE_CONFIG_DIR", stub.dir.path())
        .env("LOUPE_URL", stub.url())
        .env("LOUPE_API_KEY", "lp_test")
        .env("TERM", "xterm-256color")
        .env("LOUPE_PAGER", "echo PAGED; cat")
        .envs(variables.iter().copied())
        .args(["-qec", &line, "/dev/null"]);
    run(command).stdout
}

#[cfg(target_os = "linux")]
#[test]
fn terminal_output_is_coloured_and_paged_if_supported() {
    let stub = stub();
    let list = &["traces", "list"][..];
    let shown = on_terminal(&stub, list, 24, &[]);
    assert!(shown.contains('\u{1b}') && shown.contains("TIME") && !shown.contains("PAGED"), "{shown}");
    assert!(on_terminal(&stub, list, 3, &[]).contains("PAGED"), "what is taller than the screen is paged");
    for (rows, variable, value) in [
        (24, "NO_COLOR", "1"),
        (3, "NO_COLOR", "1"),
        (24, "TERM", "dumb"),
        (3, "TERM", "dumb"),
        (0, "NO_COLOR", "1"),
    ] {
        for arguments in [list, &["traces", "list", "--help"], &["traces", "lost"], &["projects", "list"]] {
            let shown = on_terminal(&stub, arguments, rows, &[(variable, value)]);
            assert!(!shown.contains('\u{1b}'), "{arguments:?} {variable}={value}: {shown:?}");
            let paged = rows == 3 && variable == "NO_COLOR" && arguments == list;
            assert_eq!(shown.contains("PAGED"), paged, "{arguments:?} {variable}={value} {rows}: {shown}");
        }
    }
}

#[test]
fn commands_have_help_completion_and_manual_page() {
    let stub = stub();
    let list = run(stub.bare(&["help", "--list-commands"])).stdout;
    let completion = run(stub.bare(&["completion", "bash"])).stdout;
    assert_eq!(run(stub.bare(&["man", "--dir", "pages"])).code, 0);
    for line in list.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let ran = run(stub.bare(&[words.as_slice(), &["--help"]].concat()));
        assert_eq!(ran.code, 0, "{line}");
        assert!(ran.stdout.contains("Examples:"), "{line}");
        let page = stub.dir.path().join(format!("pages/loupe-{}.1", words.join("-")));
        assert!(page.exists(), "{line}");
        let name = line.replace([' ', '-'], "__subcmd__");
        assert!(completion.contains(&format!("loupe__subcmd__{name}")), "{line}");
    }
    for noun in [
        "evals",
        "evaluators",
        "rules",
        "failures",
        "failure-rules",
        "webhooks",
        "anomalies",
        "members",
        "credentials",
        "sessions",
        "audit",
        "config",
    ] {
        assert!(list.lines().any(|line| line.starts_with(noun)), "{noun}");
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn request_log_contains_no_secrets() {
    let stub = stub();
    let mut command = stub.loupe(&["traces", "list"]);
    command.env("LOUPE_LOG", "trace");
    let ran = run(command);
    assert!(ran.stderr.contains("GET /v1/traces") && ran.stderr.contains("content-type"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("lp_test"));
}
