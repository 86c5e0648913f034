//! Names and prose: standard terms, names that mean something on their own, plain sentences.
//!
//! The rules apply to the folders in [`CLEAN`], which grows until it covers the workspace, and the rule on phrases
//! also to all documents.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::report;
use crate::source::{CRATE_NAMES, Source, collect, folder_of, relative, root, rust_files};

/// Files and folders that follow the rules of this module.
const CLEAN: &[&str] = &[
    "cli/",
    "crates/anomalies/",
    "crates/api/",
    "crates/clustering/",
    "crates/evaluators/",
    "crates/experiments/",
    "crates/outbound/",
    "crates/present/",
    "crates/queue/",
    "crates/semantics/",
    "crates/store/",
    "crates/stub/",
    "entities/",
    "migrations/",
    "server/",
    "tests/",
    "tui/",
];

/// Files whose literals are versioned texts or data: rubrics and instructions, whose words change scores and
/// increment the version of evaluators, and word lists. Only the rule on phrases exempts them.
const VERSIONED_TEXTS: &[&str] = &[
    "crates/evaluators/src/builtin/answer_relevance.rs",
    "crates/evaluators/src/builtin/bias.rs",
    "crates/evaluators/src/builtin/context_utilization.rs",
    "crates/evaluators/src/builtin/factual_accuracy.rs",
    "crates/evaluators/src/builtin/faithfulness.rs",
    "crates/evaluators/src/builtin/groundedness.rs",
    "crates/evaluators/src/builtin/hallucination.rs",
    "crates/evaluators/src/builtin/multi_turn_consistency.rs",
    "crates/evaluators/src/builtin/retrieval_recall.rs",
    "crates/evaluators/src/judge/request.rs",
    "crates/evaluators/src/language/code.rs",
    "crates/evaluators/src/sentiment/lexicon.rs",
];
/// This file, which names the banned words.
const RULES_FILE: &str = "tests/tests/tidy/words.rs";

/// Type names that are pronouns, adjectives or participles, or too general to name anything.
const BANNED_TYPES: &[&str] = &[
    "Allowed",
    "Answer",
    "Asked",
    "Asking",
    "Charged",
    "Chosen",
    "Course",
    "Ended",
    "Failed",
    "Found",
    "Given",
    "Held",
    "Item",
    "Items",
    "Judged",
    "Kept",
    "Known",
    "Landed",
    "Line",
    "Look",
    "Meant",
    "Named",
    "Nobody",
    "Noted",
    "Observed",
    "Outcome",
    "Own",
    "Part",
    "Parts",
    "Place",
    "Prepared",
    "Put",
    "Refused",
    "Said",
    "Sealed",
    "Sent",
    "Spent",
    "Spoilt",
    "Standing",
    "Stored",
    "Taken",
    "Talk",
    "Told",
    "Turn",
    "Turns",
    "Unclear",
    "Unfinished",
    "Unwritten",
    "Wanted",
    "Way",
    "Ways",
    "Which",
    "Who",
    "Whose",
];

/// Names of constants that state neither a subject nor a unit.
const BANNED_CONSTANTS: &[&str] = &["AT_ONCE", "IN_MIND", "TAKEN_IN", "TAKEN_OUT", "LEFT_OUT", "IN_FLIGHT"];

/// Constants of one word that need no subject: units, bounds of their type, and constants of traits.
const ONE_WORD_CONSTANTS: &[&str] = &[
    "ALL",
    "ASCII",
    "BASE64",
    "COUNT",
    "DAY",
    "DEFINITION",
    "DIMENSIONS",
    "FEATURE",
    "FIELDS",
    "HEX",
    "HOUR",
    "KIND",
    "MAX",
    "MIB",
    "MICROS",
    "MIN",
    "MINUTE",
    "NEVER",
    "NONE",
    "NUL",
    "OPENAI",
    "POOL",
    "RUBRIC",
    "SECOND",
    "UNICODE",
    "UNLIMITED",
    "ZERO",
];

/// Names of functions that are pronouns or participles without a noun.
const BANNED_FUNCTIONS: &[&str] = &[
    "asked",
    "given_up",
    "guessed",
    "heard",
    "known",
    "looked",
    "said",
    "says",
    "says_nothing",
    "told",
    "whose",
    "wanted",
    "weigh",
    "which",
    "who",
];

/// Phrases of the private idiom that comments and messages once used, in lower case.
const BANNED_PHRASES: &[&str] = &[
    "whoever",
    "whichever",
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "anew",
    "be it ",
    "of which",
    "is told",
    "are told",
    "be told",
    "that is none",
    "what is no ",
    "that is no ",
    "that are no ",
    "which are no ",
    "who may",
    "who was",
    "who can't",
    "let in",
    "lets in",
    "is let",
    "taken on ",
    "taken up",
    "given back",
    "comes twice",
    "is at work",
    "at the most",
    "for want of",
    "mend",
    "as given",
    "as it was given",
    "judged apart",
    "told apart",
    "tells apart",
    "it is said",
    "was said",
    "is said",
    "said of",
    "says of",
    "falls due",
    "worth waking",
    "heeded",
    "be mended",
    "in its turn",
    "goes along",
    "what is said",
    "what goes",
    "what came",
    "what follows from",
    "the way to",
    "by itself again",
    "weighed",
    "makes of it",
    "stands in place",
    "in the middle of",
];

/// Test names begin with their subject, not with an article or a pronoun.
const BANNED_TEST_PREFIXES: &[&str] =
    &["a_", "an_", "the_", "what_", "who_", "whoever_", "it_", "every_way_"];

/// Macros that run each of their functions as a test on both databases.
const TEST_MACROS: &[&str] = &["on_both_databases! {", "on_both! {"];

/// Names that these macros give to the test on each database, in a module with the name of the test.
const DATABASE_TEST_NAMES: &[&str] = &["sqlite", "postgres"];

/// Minimum number of words of a test name.
const MIN_TEST_NAME_WORDS: usize = 4;

fn clean_files() -> impl Iterator<Item = Source> {
    let is_clean = |it: &Source| CLEAN.iter().any(|place| it.is_in(place)) && it.path != RULES_FILE;
    rust_files().into_iter().filter(is_clean)
}

/// Returns all Markdown files of the repository.
fn documents() -> Vec<PathBuf> {
    let root = root();
    let mut found = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    collect(&root.join("docs"), "md", &mut found);
    for name in CRATE_NAMES {
        collect(&root.join(folder_of(name)), "md", &mut found);
    }
    found
}

#[test]
fn type_names_mean_something_on_their_own() {
    let mut found = Vec::new();
    for file in clean_files() {
        for (number, name) in declared(&file, &["struct ", "enum ", "trait ", "union "]) {
            if BANNED_TYPES.contains(&name) {
                found.push(file.at(number, &format!("type `{name}`: use a noun that names its subject")));
            }
        }
    }
    report(found);
}

#[test]
fn type_names_are_unique_within_their_crate() {
    let mut seen: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut found = Vec::new();
    for file in clean_files() {
        // Rows and migrations are always written with their module.
        if file.is_in("entities/") || file.is_in("migrations/") {
            continue;
        }
        let folder = file.path.split("/src/").next().unwrap_or_default().to_owned();
        for (number, name) in declared(&file, &["struct ", "enum ", "trait ", "union "]) {
            let here = format!("{}:{number}", file.path);
            if let Some(other) = seen.insert((folder.clone(), name.to_owned()), here) {
                found
                    .push(file.at(number, &format!("type `{name}` is also declared at {other}: rename one")));
            }
        }
    }
    report(found);
}

#[test]
fn constants_name_their_subject() {
    let mut found = Vec::new();
    for file in clean_files() {
        for (number, name) in declared(&file, &["const ", "static "]) {
            let is_constant =
                name.chars().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_');
            let one_word = !name.contains('_') && name.len() > 1 && !ONE_WORD_CONSTANTS.contains(&name);
            // Unit tests may abbreviate.
            if is_constant && number <= file.tests_from && (one_word || BANNED_CONSTANTS.contains(&name)) {
                let instead = "say of what and in which unit: `MAX_IDLE_CONNECTIONS`, `RETRY_DELAY`";
                found.push(file.at(number, &format!("constant `{name}`: {instead}")));
            }
        }
    }
    report(found);
}

#[test]
fn function_names_are_verb_phrases() {
    let mut found = Vec::new();
    for file in clean_files() {
        for (number, name) in declared(&file, &["fn "]) {
            if BANNED_FUNCTIONS.contains(&name) {
                found.push(file.at(number, &format!("function `{name}`: name what it does or returns")));
            }
        }
    }
    report(found);
}

#[test]
fn test_names_state_subject_condition_and_result() {
    let mut found = Vec::new();
    for file in clean_files() {
        let (mut is_test, mut in_macro) = (false, false);
        for (index, line) in file.code.iter().enumerate() {
            in_macro = (in_macro || TEST_MACROS.iter().any(|it| line.starts_with(it))) && line != "}";
            // The functions of a macro are tests if they are not nested in another function.
            is_test |= in_macro && line.starts_with("    async fn ");
            let line = line.trim();
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some(name) = declaration(line, &["fn "]).filter(|_| is_test) {
                is_test = false;
                if DATABASE_TEST_NAMES.contains(&name) {
                    continue;
                }
                let has_article = BANNED_TEST_PREFIXES.iter().any(|it| name.starts_with(it));
                if has_article || name.split('_').count() < MIN_TEST_NAME_WORDS {
                    let instead = "`subject_condition_result`, as in `paused_rule_resumes_after_backoff`";
                    found.push(file.at(index + 1, &format!("test `{name}`: {instead}")));
                }
            }
        }
    }
    report(found);
}

#[test]
fn prose_avoids_banned_phrases() {
    let mut found = Vec::new();
    for file in clean_files().filter(|it| !VERSIONED_TEXTS.contains(&it.path.as_str())) {
        for (index, (line, code)) in file.lines.iter().zip(&file.code).enumerate() {
            for phrase in phrases_in(&prose(line, code)) {
                found.push(file.at(index + 1, &format!("\"{phrase}\": say it with a noun as the subject")));
            }
        }
    }
    let root = root();
    for document in documents() {
        let name = relative(&root, &document);
        for (index, line) in fs::read_to_string(&document).unwrap().lines().enumerate() {
            for phrase in phrases_in(line) {
                found.push(format!("{name}:{}: \"{phrase}\": say it with a noun as the subject", index + 1));
            }
        }
    }
    report(found);
}

#[test]
fn glossary_terms_are_unique_and_sorted() {
    let text = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let mut terms: Vec<String> = Vec::new();
    let mut previous = String::new();
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("## ") {
            previous.clear();
        }
        let Some(term) = line.strip_prefix("| ").and_then(|it| it.split(" | ").next()) else { continue };
        if term == "Term" {
            continue;
        }
        let term = term.to_lowercase();
        if terms.contains(&term) {
            found.push(format!("docs/glossary.md:{}: `{term}` is defined twice", index + 1));
        }
        if term < previous {
            found.push(format!("docs/glossary.md:{}: `{term}` belongs before `{previous}`", index + 1));
        }
        previous.clone_from(&term);
        terms.push(term);
    }
    assert!(terms.len() > 100, "only {} terms found: has the form of the glossary changed?", terms.len());
    report(found);
}

#[test]
fn every_document_is_linked_from_another() {
    let root = root();
    let mut documents: Vec<PathBuf> = vec![root.join("README.md")];
    collect(&root.join("docs"), "md", &mut documents);
    let texts: Vec<String> = documents.iter().map(|it| fs::read_to_string(it).unwrap()).collect();
    let mut found = Vec::new();
    for document in &documents[1..] {
        let name = relative(&root, document);
        // The decisions are linked as a folder.
        let target =
            if name.starts_with("docs/decisions/") { "decisions" } else { name.rsplit('/').next().unwrap() };
        let is_linked = documents.iter().zip(&texts).any(|(other, text)| {
            let links = text.split("](").skip(1).filter_map(|it| it.split([')', '#']).next());
            other != document && links.into_iter().any(|it| it.rsplit('/').next() == Some(target))
        });
        if !is_linked {
            found.push(format!("{name}: no document links to it; add it to README.md"));
        }
    }
    report(found);
}

/// Returns the names declared with one of these keywords, with their line numbers.
fn declared<'a>(file: &'a Source, keywords: &'a [&str]) -> impl Iterator<Item = (usize, &'a str)> {
    file.code
        .iter()
        .enumerate()
        .filter_map(|(index, line)| declaration(line.trim(), keywords).map(|name| (index + 1, name)))
}

/// Returns the name that a line declares with one of these keywords.
fn declaration<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let mut rest = line;
    if let Some(after) = rest.strip_prefix("pub(") {
        rest = after.split_once(") ")?.1;
    }
    for modifier in ["pub ", "async ", "unsafe "] {
        rest = rest.strip_prefix(modifier).unwrap_or(rest);
    }
    if keywords.contains(&"fn ") {
        rest = rest.strip_prefix("const ").unwrap_or(rest);
    }
    let after = keywords.iter().find_map(|it| rest.strip_prefix(it))?;
    let end = after.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(after.len());
    Some(&after[..end]).filter(|it| !it.is_empty() && *it != "fn" && *it != "_")
}

/// Returns the comments and literals of a line: the characters that `code` replaces by spaces.
fn prose(line: &str, code: &str) -> String {
    let mut code = code.chars();
    line.chars().map(|it| if code.next().unwrap_or(' ') == it && it != ' ' { '\u{1}' } else { it }).collect()
}

/// Returns the banned phrases in a text. Words are compared whole.
fn phrases_in(text: &str) -> Vec<&'static str> {
    let text = text.to_lowercase();
    let is_letter = |it: Option<char>| it.is_some_and(char::is_alphabetic);
    let stands_alone = |phrase: &str| {
        text.match_indices(phrase).any(|(at, _)| {
            !is_letter(text[..at].chars().next_back())
                && (phrase.ends_with(' ') || !is_letter(text[at + phrase.len()..].chars().next()))
        })
    };
    BANNED_PHRASES.iter().copied().filter(|it| stands_alone(it)).collect()
}

#[test]
fn declarations_are_recognized_by_keyword() {
    assert_eq!(declaration("pub(crate) const fn said(&self) {", &["fn "]), Some("said"));
    assert_eq!(declaration("pub const MOST: usize = 1;", &["const "]), Some("MOST"));
    assert_eq!(declaration("const fn f() {}", &["const "]), None);
    assert_eq!(declaration("pub struct Item<'a> {", &["struct "]), Some("Item"));
    assert_eq!(declaration("let x = 1;", &["struct ", "fn "]), None);
}

#[test]
fn phrases_are_found_in_prose_only() {
    let line = "let nobody = \"nobody is told\"; // be it here";
    let code = "let nobody =                 ;              ";
    assert_eq!(phrases_in(&prose(line, code)), ["nobody", "be it ", "is told"]);
    assert_eq!(phrases_in("let it be iterated; recommended"), [] as [&str; 0]);
}
