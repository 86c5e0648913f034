//! The Rust files of the workspace, with comments and literals separated from code.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates, in the order of their dependencies. The products are top-level folders, and the libraries are
/// in `crates`.
pub const CRATE_NAMES: [&str; 17] = [
    "api",
    "semantics",
    "evaluators",
    "anomalies",
    "entities",
    "migrations",
    "store",
    "queue",
    "outbound",
    "stub",
    "present",
    "clustering",
    "experiments",
    "server",
    "tui",
    "cli",
    "tests",
];

/// A Rust file.
pub struct Source {
    /// The path from the root of the repository, with `/`.
    pub path: String,
    /// The unchanged lines.
    pub lines: Vec<String>,
    /// The lines with comments and the contents of literals replaced by spaces.
    pub code: Vec<String>,
    /// Index of the first line of a trailing `#[cfg(test)] mod`; the number of lines without one.
    pub tests_from: usize,
}

impl Source {
    /// Returns the lines of code before the unit tests, with their numbers counted from 1.
    pub fn product_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code[..self.tests_from].iter().enumerate().map(|(index, line)| (index + 1, line.as_str()))
    }

    /// Formats a violation: the position, the problem and the remedy.
    pub fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }

    /// Returns whether the file is `place`, or is below it if `place` ends with `/`. A `*/` in `place` stands for
    /// any folder.
    pub fn is_in(&self, place: &str) -> bool {
        let is_in = |path: &str, place: &str| {
            if place.ends_with('/') { path.starts_with(place) } else { path == place }
        };
        match place.split_once("*/") {
            None => is_in(&self.path, place),
            Some((before, after)) => {
                let below = self.path.strip_prefix(before).and_then(|it| it.split_once('/'));
                below.is_some_and(|(_, rest)| is_in(rest, after))
            }
        }
    }

    fn read(root: &Path, file: &Path) -> Self {
        Self::of(relative(root, file), &fs::read_to_string(file).unwrap())
    }

    /// Parses a file with this path and text.
    pub fn of(path: String, text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let code: Vec<String> = blank(text).lines().map(str::to_owned).collect();
        let tests_from = (0..code.len())
            .find(|&it| code[it].starts_with("#[cfg(test)]") && opens_module(&code[it + 1..]))
            .unwrap_or(lines.len());
        Self { path, lines, code, tests_from }
    }
}

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Returns the folder of a crate, from the root of the repository.
pub fn folder_of(name: &str) -> String {
    let library = format!("crates/{name}");
    if root().join(&library).is_dir() { library } else { name.to_owned() }
}

/// Returns all Rust files of all crates.
pub fn rust_files() -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    for name in CRATE_NAMES {
        collect(&root.join(folder_of(name)), "rs", &mut found);
    }
    assert!(found.len() > 30, "only {} Rust files found: is this the repository?", found.len());
    found.iter().map(|it| Source::read(&root, it)).collect()
}

/// Returns the Rust files of the product: all but test files.
pub fn product_files() -> impl Iterator<Item = Source> {
    let is_test =
        |it: &Source| it.is_in("tests/") || it.path.contains("/tests/") || it.path.ends_with("/tests.rs");
    rust_files().into_iter().filter(move |it| !is_test(it))
}

/// Collects every file below `folder` with this extension, sorted.
pub fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<PathBuf> = entries.map(|it| it.unwrap().path()).collect();
    entries.sort();
    for it in entries {
        if it.is_dir() {
            if it.file_name().is_some_and(|name| name != "target" && name != "node_modules") {
                collect(&it, extension, found);
            }
        } else if it.extension().is_some_and(|have| have == extension) {
            found.push(it);
        }
    }
}

/// Returns the path of `file` from `root`, with `/`.
pub fn relative(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/")
}

/// Returns whether `word` occurs in `line` as a whole word.
pub fn has_word(line: &str, word: &str) -> bool {
    let part = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    line.match_indices(word)
        .any(|(at, _)| !part(line[..at].chars().next_back()) && !part(line[at + word.len()..].chars().next()))
}

/// Returns whether the lines open a module with a body, after attributes only.
fn opens_module(rest: &[String]) -> bool {
    rest.iter()
        .find(|it| !it.starts_with("#["))
        .is_some_and(|it| (it.starts_with("mod ") || it.starts_with("pub mod ")) && it.ends_with('{'))
}

/// Replaces comments and the contents of text and character literals by spaces, line by line.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = skipped(&chars, at);
        if end > at {
            out.extend(chars[at..end].iter().map(|&it| if it == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// Returns the end of the comment or literal that begins at `at`, or `at` itself if none does.
fn skipped(chars: &[char], at: usize) -> usize {
    let next = |offset: usize| chars.get(at + offset).copied().unwrap_or('\0');
    match chars[at] {
        '/' if next(1) == '/' => (at..chars.len()).find(|&it| chars[it] == '\n').unwrap_or(chars.len()),
        '/' if next(1) == '*' => comment_end(chars, at),
        '"' => text_end(chars, at + 1),
        'r' if next(1) == '"' || next(1) == '#' => raw_text_end(chars, at).unwrap_or(at),
        '\'' if next(1) == '\\' => {
            (at + 3..chars.len()).find(|&it| chars[it] == '\'').map_or(chars.len(), |it| it + 1)
        }
        '\'' if next(2) == '\'' => at + 3,
        _ => at,
    }
}

fn comment_end(chars: &[char], from: usize) -> usize {
    let mut depth = 0;
    let mut at = from;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn text_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// Returns the end of `r"…"`, `r#"…"#` and so on; `None` if this `r` ends a name or begins `r#name`.
fn raw_text_end(chars: &[char], from: usize) -> Option<usize> {
    if from > 0 && (chars[from - 1].is_alphanumeric() || chars[from - 1] == '_') && chars[from - 1] != 'b' {
        return None;
    }
    let marks = chars[from + 1..].iter().take_while(|&&it| it == '#').count();
    let open = from + 1 + marks;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    (open + 1..chars.len())
        .find(|&it| chars[it] == '"' && chars[it + 1..].iter().take_while(|&&it| it == '#').count() >= marks)
        .map(|it| it + 1 + marks)
}

#[test]
fn comments_and_literals_are_not_code() {
    let check = |text: &str, code: &str| {
        assert_eq!(blank(text).split_whitespace().collect::<Vec<_>>().join(" "), code)
    };
    check("a // axum", "a");
    check("a /* axum /* deep */ still */ b", "a b");
    check(r#"f("axum \" axum", 'x', '\'', x)"#, "f( , , , x)");
    check(r##"f(r#"axum " axum"#, br"axum")"##, "f( , b )");
    check("fn f<'a>(it: &'a str) {} // 'a", "fn f<'a>(it: &'a str) {}");
    check("r#type + for_r", "r#type + for_r");
}

#[test]
fn has_word_matches_whole_words() {
    assert!(has_word("use axum::Router;", "axum"));
    assert!(!has_word("use axum_extra::Form;", "axum"));
    assert!(!has_word("let maxum = 1;", "axum"));
}
