//! The examples in every help text run when they are copied from a terminal.

use std::{collections::BTreeSet, fs, process::Command};

use crate::stub::{Reply, Stub, run};

/// A shell in which `loupe` records its arguments and other programs do nothing.
const SHELL_STUBS: &str = r#"
loupe() { printf '%s\0' "$@" >> "$NOTES"; printf '\n\0' >> "$NOTES"; echo 0; }
jq() { cat > /dev/null; }
man() { :; }; curl() { :; }; cp() { :; }
xargs() { cat > /dev/null; "$@" 01980f6e-5f0a-7c3e-9d2b-3c1a7b20c07b; }
loupe-server() { :; }
TRACE=c07b44d1 FIRST=5e1f09aa SECOND=5e1f09ab id=01980f6e-5f0a-7c3e-9d2b-3c1a7b20c07b
TRACE_JSON='{}' KEY=lp_x LOUPE_URL=http://127.0.0.1:4600 fpath=/tmp
"#;

/// The width of a narrow terminal, in which no example is wrapped.
const MAX_EXAMPLE_COLUMNS: usize = 80;

/// Returns the examples of a help text as a terminal shows them.
fn examples(help: &str) -> String {
    let from = help.find("Examples:\n").map_or(help.len(), |at| at + "Examples:\n".len());
    let lines = help[from..].lines().take_while(|line| line.starts_with("  "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn examples_can_be_copied_from_a_narrow_terminal() {
    let stub = Stub::new(|_, _| Reply::error(404, "not_found"));
    let list = run(stub.bare(&["help", "--list-commands"])).stdout;
    let notes = stub.dir.path().join("notes");
    let mut seen = BTreeSet::new();
    let nouns: BTreeSet<&str> = list.lines().filter_map(|it| Some(it.split_once(' ')?.0)).collect();
    for line in std::iter::once("").chain(nouns).chain(list.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut help = stub.bare(&[words.as_slice(), &["--help"]].concat());
        let page = run({
            help.env("COLUMNS", "60");
            help
        });
        let text = examples(&page.stdout);
        assert!(!text.is_empty(), "{line}: {}", page.stdout);
        assert!(!text.contains('\u{a0}'), "{line}: {text:?}");
        assert!(text.lines().all(|it| it.chars().count() <= MAX_EXAMPLE_COLUMNS), "{line}: {text}");
        // The same page through `loupe help`, where two names are topics.
        if !words.is_empty() && words != ["auth"] && words != ["webhooks"] {
            let page = run(stub.bare(&[&["help"], words.as_slice()].concat()));
            assert_eq!(examples(&page.stdout), text, "{line}");
        }
        fs::write(&notes, "").unwrap();
        let shell = Command::new("bash")
            .args(["-euc", &format!("{SHELL_STUBS}\n{text}")])
            .env("NOTES", &notes)
            .env("HOME", stub.dir.path())
            .current_dir(stub.dir.path())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&shell.stderr);
        // Redirections into missing folders are the reader's responsibility.
        assert!(shell.status.success() || stderr.contains("No such file"), "{line}: {stderr}\n{text}");
        let recorded = fs::read_to_string(&notes).unwrap();
        for call in recorded.split("\n\0").filter(|it| !it.is_empty()) {
            let arguments = std::iter::once("loupe").chain(call.trim_end_matches('\0').split('\0'));
            let parsed = cli::commands::command_tree::command().try_get_matches_from(arguments.clone());
            assert!(parsed.is_ok(), "{:?}: {}", arguments.collect::<Vec<_>>(), parsed.unwrap_err());
            seen.insert(call.to_owned());
        }
    }
    assert!(seen.len() > 80, "only {} calls of loupe are shown", seen.len());
}
