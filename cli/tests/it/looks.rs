//! Colour, completions and help: what the program looks like from outside.

use crate::stub::{Reply, Stub, run, traces};

fn stub() -> Stub {
    Stub::new(|_, _| Reply::json(traces(0..2, None)))
}

#[test]
fn colour_comes_back_only_when_it_is_asked_for() {
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
}

#[test]
fn every_command_helps_completes_and_has_a_page() {
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
        assert!(completion.contains(&format!("loupe__subcmd__{}", words.join("__subcmd__"))), "{line}");
    }
    for noun in ["evals", "evaluators", "rules", "members", "credentials", "sessions", "audit", "config"] {
        assert!(list.lines().any(|line| line.starts_with(noun)), "{noun}");
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn a_log_variable_shows_requests_without_their_secrets() {
    let stub = stub();
    let mut command = stub.loupe(&["traces", "list"]);
    command.env("LOUPE_LOG", "trace");
    let ran = run(command);
    assert!(ran.stderr.contains("GET /v1/traces") && ran.stderr.contains("content-type"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("lp_test"));
}
