//! The permitted imports between the modules of a crate, which contain no cycle.
//!
//! A crate has one table: its modules, lowest first, each with the modules that it may import. A file belongs
//! to the longest entry that its path begins with, so a folder can be one module or several. An entry that ends in
//! `*` stands for each module of a folder: they have the same arrows, and none to each other. Tests are not part of
//! the graph.

use std::collections::{BTreeMap, BTreeSet};

use crate::report;
use crate::source::{Source, folder_of, product_files};

/// A module, and the modules that it may import. The crate's root is the empty name.
pub type Arrows<'a> = (&'a str, &'a [&'a str]);

/// The modules of the console. All screens share the shell. A screen imports the shell and no other screen; the app
/// imports all of them.
const TUI_MODULES: &[Arrows<'_>] = &[
    ("theme", &[]),
    ("terminal", &[]),
    ("find", &[]),
    ("fuzzy", &[]),
    ("ids", &[]),
    ("input", &[]),
    ("layout", &[]),
    ("bookmarks", &[]),
    ("record", &[]),
    // Rows for unit tests.
    ("fixture", &[]),
    ("widgets", &["theme"]),
    ("keymap", &["theme"]),
    ("travel", &["keymap"]),
    ("options", &["keymap"]),
    ("net", &["bookmarks", "options"]),
    ("change", &["net"]),
    ("dialog", &["change", "fuzzy", "ids", "input"]),
    ("evaluations", &["net"]),
    ("anomalies", &["theme"]),
    (
        "shell",
        &[
            "bookmarks",
            "change",
            "dialog",
            "ids",
            "input",
            "keymap",
            "net",
            "options",
            "theme",
            "travel",
            "widgets",
        ],
    ),
    (
        "screen::*",
        &[
            "anomalies",
            "change",
            "dialog",
            "evaluations",
            "find",
            "ids",
            "input",
            "keymap",
            "layout",
            "net",
            "record",
            "shell",
            "theme",
            "travel",
            "widgets",
        ],
    ),
    ("screen", &["keymap", "screen::*", "shell"]),
    (
        "app",
        &[
            "bookmarks",
            "change",
            "dialog",
            "fuzzy",
            "ids",
            "input",
            "keymap",
            "layout",
            "net",
            "options",
            "screen",
            "screen::*",
            "shell",
            "terminal",
            "theme",
            "travel",
            "widgets",
        ],
    ),
    ("", &["app", "bookmarks", "keymap", "net", "options", "screen", "terminal", "theme"]),
];

/// The modules of the command line, from the lowest layer to the highest. All commands are one module, so that a
/// new one needs no entry here.
const CLI_MODULES: &[Arrows<'_>] = &[
    ("env", &[]),
    ("exit", &[]),
    ("format", &[]),
    ("args", &["env", "format"]),
    ("error", &["exit"]),
    ("pages", &["error"]),
    ("output", &["args", "env", "error", "exit", "format"]),
    ("config", &["args", "env", "error", "exit", "format"]),
    ("find", &["config", "error", "exit", "pages"]),
    ("ctx", &["args", "config", "env", "error", "exit", "find", "output"]),
    ("prompt", &["ctx", "error", "exit"]),
    (
        "commands",
        &["args", "config", "ctx", "env", "error", "exit", "find", "format", "output", "pages", "prompt"],
    ),
    ("", &["args", "commands", "config", "ctx", "env", "error", "exit", "format", "output", "prompt"]),
];

/// The modules of the server, from the lowest layer to the highest: what the state of the process consists of,
/// the state (`app`), the toolkit of HTTP, the features, and the list of features. A part of the state whose
/// folder has endpoints, too, is two modules: the state below `app`, its endpoints above `http`.
const SERVER_MODULES: &[Arrows<'_>] = &[
    ("clock", &[]),
    ("config", &[]),
    ("keyed_semaphore", &[]),
    ("memory", &[]),
    ("pools", &[]),
    ("telemetry", &[]),
    ("error", &["memory"]),
    ("providers", &["config"]),
    ("access", &["clock", "config", "error", "providers"]),
    ("code_runner", &["clock", "error"]),
    ("cursor", &["error"]),
    ("evaluator", &["error"]),
    ("ingest", &["clock", "error", "memory", "telemetry"]),
    ("metrics", &["error"]),
    ("audit", &["access"]),
    ("first_start", &["access", "config", "failures::rule_set", "providers"]),
    ("limits", &["access", "error"]),
    ("rule_set", &["evaluator"]),
    ("rule_filter", &["error"]),
    // State of the process.
    ("failures::cluster_cache", &[]),
    ("failures::rule_set", &[]),
    ("control::policy_set", &[]),
    ("deployments::state", &[]),
    ("deployments::cached", &["deployments::state"]),
    ("deployments::jobs", &["deployments::cached", "pools"]),
    ("log_joining::recent", &[]),
    ("log_joining::senders", &[]),
    ("webhooks::sending_limits", &[]),
    ("subscriptions", &[]),
    (
        "access_cache",
        &[
            "access",
            "control::policy_set",
            "deployments::cached",
            "error",
            "failures::rule_set",
            "ingest",
            "keyed_semaphore",
            "rule_set",
            "subscriptions",
        ],
    ),
    ("ignored_settings", &["access", "config", "first_start"]),
    ("reseal", &["access", "audit"]),
    ("embedding", &["access", "clock", "config", "error", "access_cache", "providers", "telemetry"]),
    ("judging", &["access", "clock", "config", "error", "ingest", "access_cache", "providers", "telemetry"]),
    ("search", &["embedding", "error"]),
    (
        "app",
        &[
            "access",
            "audit",
            "clock",
            "code_runner",
            "config",
            "cursor",
            "embedding",
            "error",
            "evaluator",
            "failures::cluster_cache",
            "ingest",
            "judging",
            "keyed_semaphore",
            "access_cache",
            "limits",
            "log_joining::recent",
            "log_joining::senders",
            "memory",
            "metrics",
            "search",
            "telemetry",
            "webhooks::sending_limits",
        ],
    ),
    ("idle_cleanup", &["app"]),
    ("seats", &["access", "app", "audit", "error"]),
    ("http::route", &["access", "app", "audit"]),
    ("feature", &["app", "http::route"]),
    (
        "http",
        &[
            "access",
            "app",
            "audit",
            "config",
            "error",
            "feature",
            "http::route",
            "limits",
            "memory",
            "seats",
            "telemetry",
        ],
    ),
    ("housekeeping", &["app", "feature"]),
    ("limits::feature", &["feature"]),
    ("log_joining", &["app", "error", "feature", "ingest", "pools"]),
    ("long_trace", &["app", "feature", "pools"]),
    ("metric_folding", &["app", "error", "feature"]),
    ("trace_indexing", &["app", "error", "feature"]),
    ("span_embedding", &["app", "embedding", "error", "feature", "pools", "providers"]),
    ("trace_removal", &["access", "app", "audit", "feature", "pools"]),
    ("retention", &["app", "feature", "pools", "trace_removal"]),
    (
        "access::endpoints",
        &[
            "access",
            "app",
            "audit",
            "cursor",
            "error",
            "feature",
            "http",
            "http::route",
            "seats",
            "span_embedding",
        ],
    ),
    (
        "endpoints",
        &[
            "access",
            "app",
            "audit",
            "cursor",
            "deployments::jobs",
            "error",
            "feature",
            "http",
            "http::route",
            "ingest",
        ],
    ),
    (
        "ingest::endpoints",
        &[
            "access",
            "app",
            "audit",
            "endpoints",
            "error",
            "feature",
            "http",
            "http::route",
            "ingest",
            "log_joining",
            "memory",
        ],
    ),
    ("metrics::endpoints", &["access", "app", "error", "feature", "http", "http::route", "metrics"]),
    (
        "traces",
        &[
            "access",
            "app",
            "error",
            "feature",
            "http",
            "http::route",
            "ingest",
            "keyed_semaphore",
            "memory",
            "trace_removal",
        ],
    ),
    ("search::endpoints", &["access", "app", "error", "feature", "http", "http::route", "ingest", "traces"]),
    (
        "webhooks",
        &[
            "access",
            "app",
            "audit",
            "error",
            "feature",
            "http",
            "http::route",
            "pools",
            "subscriptions",
            "webhooks::sending_limits",
        ],
    ),
    (
        "anomalies",
        &["access", "app", "error", "feature", "http", "http::route", "metrics", "pools", "webhooks"],
    ),
    (
        "failures",
        &[
            "access",
            "app",
            "audit",
            "error",
            "failures::rule_set",
            "feature",
            "http",
            "http::route",
            "pools",
            "rule_filter",
            "subscriptions",
            "webhooks",
        ],
    ),
    (
        "control",
        &[
            "access",
            "app",
            "audit",
            "control::policy_set",
            "error",
            "failures",
            "failures::rule_set",
            "feature",
            "http",
            "http::route",
            "pools",
            "webhooks",
        ],
    ),
    (
        "evals",
        &[
            "access",
            "app",
            "code_runner",
            "control",
            "control::policy_set",
            "deployments::cached",
            "deployments::jobs",
            "error",
            "evaluator",
            "failures",
            "failures::rule_set",
            "feature",
            "http",
            "http::route",
            "ingest",
            "judging",
            "memory",
            "pools",
            "rule_filter",
            "rule_set",
            "subscriptions",
            "webhooks",
        ],
    ),
    ("remediation", &["app", "control", "error", "evals", "feature", "ingest", "providers", "webhooks"]),
    (
        "deployments",
        &[
            "access",
            "app",
            "audit",
            "control",
            "deployments::cached",
            "deployments::jobs",
            "deployments::state",
            "error",
            "evals",
            "feature",
            "http",
            "http::route",
            "ingest",
            "providers",
            "remediation",
            "subscriptions",
            "webhooks",
        ],
    ),
    ("trace_ready", &["app", "control", "error", "evals", "feature", "pools"]),
    ("trace_rules", &["failures", "ingest", "log_joining", "long_trace", "span_embedding", "trace_ready"]),
    (
        "admin",
        &["access", "audit", "clock", "config", "first_start", "long_trace", "reseal", "trace_removal"],
    ),
    (
        "demo",
        &[
            "access",
            "anomalies",
            "app",
            "config",
            "evaluator",
            "first_start",
            "http",
            "http::route",
            "ingest",
            "metric_folding",
        ],
    ),
    (
        "features",
        &[
            "access::endpoints",
            "anomalies",
            "app",
            "control",
            "deployments",
            "endpoints",
            "evals",
            "failures",
            "feature",
            "http",
            "http::route",
            "housekeeping",
            "ingest::endpoints",
            "limits::feature",
            "log_joining",
            "long_trace",
            "metric_folding",
            "metrics::endpoints",
            "remediation",
            "retention",
            "search::endpoints",
            "span_embedding",
            "telemetry",
            "trace_indexing",
            "trace_ready",
            "trace_removal",
            "trace_rules",
            "traces",
            "webhooks",
        ],
    ),
    ("signals", &[]),
    // The program, which has modules with the same names as the library.
    (
        "",
        &["admin", "demo", "features", "first_start", "http", "idle_cleanup", "ignored_settings", "signals"],
    ),
];

#[test]
fn modules_of_the_server_import_what_their_table_allows() {
    report(violations("server", SERVER_MODULES));
}

#[test]
fn modules_of_the_command_line_import_what_their_table_allows() {
    report(violations("cli", CLI_MODULES));
}

#[test]
fn modules_of_the_console_import_what_their_table_allows() {
    report(violations("tui", TUI_MODULES));
}

/// Returns the arrows of a crate that its table does not allow, entries of the table that no file needs, and
/// circles within the table.
pub fn violations(name: &str, table: &[Arrows<'_>]) -> Vec<String> {
    let folder = format!("{}/src/", folder_of(name));
    let sources: Vec<Source> = product_files().filter(|it| it.is_in(&folder)).collect();
    check(&folder, &sources, table)
}

fn check(folder: &str, sources: &[Source], table: &[Arrows<'_>]) -> Vec<String> {
    let files: BTreeSet<Vec<String>> = sources.iter().map(|it| module_of(&it.path, folder)).collect();
    let allowed: BTreeMap<&str, &[&str]> = table.iter().copied().collect();
    let is_module = |path: &[String]| files.iter().any(|it| it.starts_with(path));
    // The entry of the table that owns a path, and the module that it stands for there.
    let entry = |path: &[String]| {
        (0..=path.len()).rev().find_map(|end| {
            let module = path[..end].join("::");
            if allowed.contains_key(module.as_str()) {
                return Some((module.clone(), module));
            }
            let each = [&path[..end.saturating_sub(1)], &["*".to_owned()]].concat().join("::");
            let owned = end > 0 && allowed.contains_key(each.as_str()) && is_module(&path[..end]);
            owned.then_some((each, module))
        })
    };
    let mut used = BTreeSet::new();
    let mut found = Vec::new();
    for source in sources {
        let path = module_of(&source.path, folder);
        let Some((from, module)) = entry(&path).filter(|(it, _)| !it.is_empty() || path.is_empty()) else {
            found.push(source.at(1, "this module is not in the table of its crate: add it with its arrows"));
            continue;
        };
        used.insert((from.clone(), String::new()));
        for (line, target) in imports(source, &path, &files) {
            let Some((to, imported)) = entry(&target) else { continue };
            if imported == module {
                continue;
            }
            if allowed[from.as_str()].contains(&to.as_str()) {
                used.insert((from.clone(), to));
            } else {
                let message = format!(
                    "`{module}` imports `{imported}`, which its table does not allow: move what both need below them"
                );
                found.push(source.at(line, &message));
            }
        }
    }
    for (from, targets) in table {
        if !used.contains(&((*from).to_owned(), String::new())) {
            found.push(format!("{folder}: no file belongs to the table's module `{from}`"));
        }
        for to in targets.iter().filter(|to| !used.contains(&((*from).to_owned(), (**to).to_owned()))) {
            found.push(format!("{folder}: the table lets `{from}` import `{to}`, which it does not"));
        }
    }
    found.extend(circle(table).map(|circle| format!("{folder}: the table has a circle: {circle}")));
    found
}

/// Returns a circle of the table, if there is one.
fn circle(table: &[Arrows<'_>]) -> Option<String> {
    fn walk<'a>(
        at: &'a str,
        table: &BTreeMap<&'a str, &'a [&'a str]>,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<String> {
        if let Some(start) = way.iter().position(|it| *it == at) {
            let circle: Vec<&str> = way[start..].iter().copied().chain([at]).collect();
            return Some(circle.join(" → "));
        }
        if !done.insert(at) {
            return None;
        }
        way.push(at);
        let targets = table.get(at).copied().unwrap_or_default();
        let found = targets.iter().find_map(|it| walk(it, table, way, done));
        way.pop();
        found
    }
    let table: BTreeMap<&str, &[&str]> = table.iter().copied().collect();
    let mut done = BTreeSet::new();
    table.keys().find_map(|it| walk(it, &table, &mut Vec::new(), &mut done))
}

/// Returns the module path of a file: `src/a/mod.rs` and `src/a.rs` are both `a`.
fn module_of(file: &str, folder: &str) -> Vec<String> {
    let path = file.strip_prefix(folder).unwrap_or(file);
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|it| it == "mod" || (parts.len() == 1 && (it == "lib" || it == "main"))) {
        parts.pop();
    }
    parts
}

/// Returns the absolute paths within the crate that a file names, with the line of each.
fn imports(source: &Source, module: &[String], files: &BTreeSet<Vec<String>>) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut statement: Option<(usize, String)> = None;
    for (number, line) in source.product_code() {
        let line = line.trim();
        let attribute = attribute_path(&source.lines[number - 1]);
        found.extend(attribute.and_then(|path| resolve(&path, module, files)).map(|path| (number, path)));
        if statement.is_none() {
            match line.split_once("use ") {
                Some((before, tree)) if before.is_empty() || before.starts_with("pub") => {
                    statement = Some((number, tree.to_owned()));
                }
                _ => found.extend(inline(line, module, files).into_iter().map(|path| (number, path))),
            }
        } else if let Some((_, text)) = &mut statement {
            text.push_str(line);
        }
        if let Some((at, text)) = statement.take() {
            match text.split_once(';') {
                Some((tree, _)) => {
                    let paths = expand(tree).into_iter().filter_map(|path| resolve(&path, module, files));
                    found.extend(paths.map(|path| (at, path)));
                }
                None => statement = Some((at, text)),
            }
        }
    }
    found
}

/// Returns the path in an attribute of serde, which is a literal: `deserialize_with = "crate::object::given"`.
fn attribute_path(line: &str) -> Option<Vec<String>> {
    let path = line.split_once("= \"crate::")?.1.split('"').next()?;
    Some(std::iter::once("crate").chain(path.split("::")).map(str::to_owned).collect())
}

/// Returns the paths of a line of code that begin with `crate`, `super` or a child of this module.
fn inline(line: &str, module: &[String], files: &BTreeSet<Vec<String>>) -> Vec<Vec<String>> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = line.split(|c: char| !is_name(c)).filter(|it| it.contains("::"));
    words
        .filter_map(|path| {
            let path: Vec<String> = path.split("::").map(str::to_owned).collect();
            resolve(&path, module, files)
        })
        .collect()
}

/// Returns the paths of a `use` tree.
fn expand(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        return vec![path.split("::").map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()];
    };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let prefix: Vec<String> =
        prefix.split("::").map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect();
    let (mut depth, mut start, mut branches) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                branches.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    branches.push(&inner[start..]);
    let branches = branches.into_iter().filter(|it| !it.trim().is_empty());
    branches
        .flat_map(expand)
        .map(|path| prefix.iter().cloned().chain(path.into_iter().filter(|it| it != "self")).collect())
        .collect()
}

/// Returns the path from the root of the crate; none for a path into another crate.
fn resolve(path: &[String], module: &[String], files: &BTreeSet<Vec<String>>) -> Option<Vec<String>> {
    let first = path.first()?;
    if first == "crate" {
        return Some(path[1..].to_vec());
    }
    if first == "super" || first == "self" {
        let mut base = module.to_vec();
        let mut rest = path;
        while let Some(word) = rest.first().filter(|it| *it == "super" || *it == "self") {
            if word == "super" {
                base.pop();
            }
            rest = &rest[1..];
        }
        base.extend_from_slice(rest);
        return Some(base);
    }
    // A child of this module.
    let child: Vec<String> = module.iter().chain([first]).cloned().collect();
    files.contains(&child).then(|| module.iter().chain(path).cloned().collect())
}

#[cfg(test)]
mod tests;
