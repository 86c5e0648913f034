//! The form of every file.

use std::collections::BTreeSet;

use crate::report;
use crate::source::{Source, has_word, product_files, rust_files};

/// Maximum length of a file; longer ones need a table of contents.
const MAX_FILE_LINES: usize = 700;

/// Files that write to the terminal; all others emit `tracing` events.
const PRINTING_FILES: [&str; 4] =
    ["cli/src/output/", "cli/src/output.rs", "cli/src/main.rs", "server/src/main.rs"];

#[test]
fn source_files_are_short_enough() {
    let long = rust_files().into_iter().filter(|it| it.lines.len() > MAX_FILE_LINES);
    let say = |it: usize| format!("{it} lines, at most {MAX_FILE_LINES}: split it by subject");
    report(long.map(|it| it.at(it.lines.len(), &say(it.lines.len()))).collect());
}

#[test]
fn source_files_begin_with_a_module_comment() {
    let silent =
        rust_files().into_iter().filter(|it| !it.lines.first().is_some_and(|line| line.starts_with("//! ")));
    report(silent.map(|it| it.at(1, "begin with `//! …`: what is here, and what is not")).collect());
}

/// Returns the words that mark unfinished work in comments. They are joined from halves because this file obeys the
/// rule, too, and searches of the repository for such marks should find nothing.
fn unfinished_marks() -> [String; 3] {
    [("FIX", "ME"), ("XX", "X"), ("TO", "DO")].map(|(first, second)| format!("{first}{second}"))
}

#[test]
fn unfinished_code_is_not_committed() {
    let marks = unfinished_marks();
    let mut found = Vec::new();
    for file in rust_files() {
        for (index, line) in file.code.iter().enumerate() {
            for name in ["todo!", "unimplemented!", "dbg!"].into_iter().filter(|it| line.contains(it)) {
                found.push(file.at(index + 1, &format!("`{name}`: finish it, or leave it out")));
            }
        }
        for (index, line) in file.lines.iter().enumerate() {
            for mark in marks.iter().filter(|it| has_word(line, it)) {
                found.push(
                    file.at(index + 1, &format!("{mark}: open an issue that says what would settle it")),
                );
            }
        }
    }
    report(found);
}

/// Returns the names of the audit actions that a file declares, each with its line.
fn audit_actions(file: &Source) -> Vec<(usize, String)> {
    let text = file.lines.join("\n");
    let declarations = text.match_indices("AuditAction::new(").filter_map(|(at, opening)| {
        let name = text[at + opening.len()..].trim_start().strip_prefix('"')?.split('"').next()?;
        Some((text[..at].lines().count().max(1), name.to_owned()))
    });
    declarations.collect()
}

#[test]
fn audit_action_names_are_unique() {
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    for file in product_files().filter(|it| it.is_in("server/src/")) {
        for (line, name) in audit_actions(&file) {
            if !known.insert(name.clone()) {
                let remedy = "declare an action once and import the constant, or choose another name";
                found.push(file.at(line, &format!("the audit action `{name}` is declared twice: {remedy}")));
            }
        }
    }
    assert!(known.len() > 20, "only {} audit actions found: has their declaration changed?", known.len());
    report(found);
}

#[test]
fn audit_actions_are_found_on_any_line() {
    let text = "const A: AuditAction = AuditAction::new(\"a.b\", \"a\");\nconst C: AuditAction =\n    \
        AuditAction::new(\n        \"c.d\", \"c\");";
    let file = Source::of("server/src/x.rs".to_owned(), text);
    assert_eq!(audit_actions(&file), [(1, "a.b".to_owned()), (3, "c.d".to_owned())]);
}

#[test]
fn only_output_modules_print() {
    let mut found = Vec::new();
    for file in product_files().filter(|it| !PRINTING_FILES.iter().any(|place| it.is_in(place))) {
        for (number, line) in file.product_code() {
            for name in
                ["println!", "eprintln!", "print!", "eprint!"].into_iter().filter(|it| has_word(line, it))
            {
                let instead = "return the text, or use tracing; printing is for the output modules";
                found.push(file.at(number, &format!("`{name}`: {instead}")));
            }
        }
    }
    report(found);
}

#[test]
fn lint_exceptions_state_a_reason() {
    let mut found = Vec::new();
    for file in product_files() {
        for (number, line) in file.product_code() {
            // An `allow` for a whole test program needs no reason; unit tests are skipped here.
            let excuse =
                ["#[allow(", "#![allow(", "#[expect(", "#![expect("].iter().any(|it| line.contains(it));
            let attribute = file.code[number - 1..].iter().take(6).scan(false, |done, it| {
                let before = *done;
                *done |= it.contains(")]");
                (!before).then_some(it.as_str())
            });
            if excuse && !attribute.collect::<String>().contains("reason =") {
                found.push(file.at(number, "say why: `reason = \"…\"`"));
            }
        }
    }
    report(found);
}
