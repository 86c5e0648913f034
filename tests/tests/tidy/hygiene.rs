//! The form of every file.

use crate::report;
use crate::source::{has_word, product_files, rust_files};

/// Maximum length of a file; longer ones need a table of contents.
const MOST_LINES: usize = 700;

/// Files that write to the terminal; all others emit `tracing` events.
const SPEAKERS: [&str; 4] = ["cli/src/output/", "cli/src/output.rs", "cli/src/main.rs", "server/src/main.rs"];

#[test]
fn files_are_short() {
    let long = rust_files().into_iter().filter(|it| it.lines.len() > MOST_LINES);
    let say = |it: usize| format!("{it} lines, at most {MOST_LINES}: split it by subject");
    report(long.map(|it| it.at(it.lines.len(), &say(it.lines.len()))).collect());
}

#[test]
fn files_open_with_what_they_are() {
    let silent =
        rust_files().into_iter().filter(|it| !it.lines.first().is_some_and(|line| line.starts_with("//! ")));
    report(silent.map(|it| it.at(1, "begin with `//! …`: what is here, and what is not")).collect());
}

#[test]
fn nothing_is_left_for_later() {
    let mut found = Vec::new();
    for file in rust_files() {
        for (index, line) in file.code.iter().enumerate() {
            for name in ["todo!", "unimplemented!", "dbg!"].into_iter().filter(|it| line.contains(it)) {
                found.push(file.at(index + 1, &format!("`{name}`: finish it, or leave it out")));
            }
        }
        // The marks occur in comments; this file must name them.
        if file.is_in("tests/tests/tidy/hygiene.rs") {
            continue;
        }
        for (index, line) in file.lines.iter().enumerate() {
            for mark in ["FIXME", "XXX", "TODO"].into_iter().filter(|it| has_word(line, it)) {
                found.push(
                    file.at(index + 1, &format!("{mark}: open an issue that says what would settle it")),
                );
            }
        }
    }
    report(found);
}

#[test]
fn only_the_output_modules_print() {
    let mut found = Vec::new();
    for file in product_files().filter(|it| !SPEAKERS.iter().any(|place| it.is_in(place))) {
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
fn exceptions_from_lints_say_why() {
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
