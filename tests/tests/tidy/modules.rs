//! Which modules of the server may import which others.

use std::collections::{BTreeMap, BTreeSet};

use crate::report;
use crate::source::{Source, product_files};

/// The folder whose files and folders are the modules of the table.
const SERVER_SOURCE: &str = "server/src/";

/// The modules of the server, from the lowest layer to the highest, each with the modules that it may import.
/// They all stand above it in the table, so that no modules import each other in a circle.
const SERVER: &[(&str, &[&str])] = &[
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
    ("first_start", &["access", "config", "providers"]),
    ("limits", &["access", "error"]),
    ("rule_set", &["evaluator"]),
    ("known", &["access", "error", "ingest", "rule_set"]),
    ("later_start", &["access", "config", "first_start", "providers"]),
    ("reseal", &["access", "audit"]),
    ("embedding", &["access", "clock", "config", "error", "known", "providers", "telemetry"]),
    ("judging", &["access", "clock", "config", "error", "ingest", "known", "providers", "telemetry"]),
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
            "ingest",
            "judging",
            "keyed_semaphore",
            "known",
            "limits",
            "memory",
            "metrics",
            "providers",
            "search",
            "telemetry",
        ],
    ),
    (
        "evals",
        &["access", "app", "code_runner", "error", "evaluator", "judging", "memory", "pools", "rule_set"],
    ),
    ("idle", &["app"]),
    ("long_trace", &["app", "pools"]),
    ("metric_folding", &["app", "error"]),
    ("seats", &["access", "app", "audit", "error"]),
    ("span_embedding", &["app", "embedding", "error", "pools", "providers"]),
    ("trace_removal", &["access", "app", "audit", "pools"]),
    (
        "admin",
        &["access", "audit", "clock", "config", "first_start", "long_trace", "reseal", "trace_removal"],
    ),
    ("demo", &["access", "app", "config", "evals", "evaluator", "first_start", "ingest"]),
    (
        "http",
        &[
            "access",
            "app",
            "audit",
            "config",
            "cursor",
            "error",
            "evals",
            "evaluator",
            "ingest",
            "keyed_semaphore",
            "limits",
            "memory",
            "metrics",
            "providers",
            "rule_set",
            "seats",
            "span_embedding",
            "telemetry",
            "trace_removal",
        ],
    ),
    ("retention", &["app", "pools", "trace_removal"]),
    ("trace_ready", &["app", "evals", "pools"]),
    ("housekeeping", &["app", "retention"]),
    ("trace_rules", &["ingest", "long_trace", "span_embedding", "trace_ready"]),
    (
        "features",
        &[
            "app",
            "evals",
            "housekeeping",
            "http",
            "long_trace",
            "metric_folding",
            "retention",
            "span_embedding",
            "trace_ready",
            "trace_removal",
            "trace_rules",
        ],
    ),
];

#[test]
fn modules_import_only_what_the_table_allows() {
    let allowed: BTreeMap<&str, &[&str]> = SERVER.iter().copied().collect();
    let mut found = Vec::new();
    for file in product_files().filter(|it| it.is_in(SERVER_SOURCE)) {
        let Some(path) = module_path(&file.path) else { continue };
        let module = path[0].as_str();
        let Some(imports) = allowed.get(module) else {
            found.push(format!("{}: add the module `{module}` to the table in tidy/modules.rs", file.path));
            continue;
        };
        for (number, target) in references(&file, &path) {
            if target != module && allowed.contains_key(target.as_str()) && !imports.contains(&&*target) {
                let instead = "move what both need to a lower module, or pass it in from a higher one";
                found.push(file.at(number, &format!("`{module}` may not import `{target}`: {instead}")));
            }
        }
    }
    report(found);
}

#[test]
fn module_table_is_ordered_and_has_no_unused_arrow() {
    let mut used = BTreeSet::new();
    for file in product_files().filter(|it| it.is_in(SERVER_SOURCE)) {
        let Some(path) = module_path(&file.path) else { continue };
        used.extend(references(&file, &path).into_iter().map(|(_, target)| (path[0].clone(), target)));
    }
    let mut found = Vec::new();
    for (index, (module, imports)) in SERVER.iter().enumerate() {
        for target in *imports {
            if !SERVER[..index].iter().any(|it| it.0 == *target) {
                found.push(format!("`{module}` → `{target}`: an imported module stands above its importers"));
            }
            if !used.contains(&((*module).to_owned(), (*target).to_owned())) {
                found.push(format!("`{module}` → `{target}`: no file needs this arrow; remove it"));
            }
        }
    }
    report(found);
}

/// Returns the path of a file's module; none for the roots of the library and the program.
fn module_path(file: &str) -> Option<Vec<String>> {
    let inner = file.strip_prefix(SERVER_SOURCE)?.strip_suffix(".rs")?;
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    // `signals` belongs to the program, not to the library.
    (!matches!(inner, "lib" | "main" | "signals")).then(|| inner.split('/').map(str::to_owned).collect())
}

/// Returns the top-level modules that a file names, with the numbers of the lines.
fn references(file: &Source, path: &[String]) -> Vec<(usize, String)> {
    let mut text = String::new();
    for (_, line) in file.product_code() {
        text.push_str(line);
        text.push('\n');
    }
    let root = format!("{}::", vec!["super"; path.len()].join("::"));
    let mut found = Vec::new();
    for prefix in ["crate::", &root] {
        for (start, _) in text.match_indices(prefix) {
            let before = text[..start].chars().next_back().unwrap_or(' ');
            if before.is_alphanumeric() || before == '_' || before == ':' {
                continue;
            }
            let number = text[..start].matches('\n').count() + 1;
            let names = first_segments(&text[start + prefix.len()..]);
            found.extend(names.into_iter().map(|it| (number, it)));
        }
    }
    found
}

/// Returns the first segment of a path, or those of all paths of a group in braces.
fn first_segments(text: &str) -> Vec<String> {
    let identifier =
        |it: &str| it.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect::<String>();
    let Some(group) = text.strip_prefix('{') else { return vec![identifier(text)] };
    let (mut names, mut depth, mut at_start) = (Vec::new(), 0, true);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            _ if character.is_whitespace() => {}
            _ if at_start => {
                names.push(identifier(&group[at..]));
                at_start = false;
            }
            _ => {}
        }
    }
    names
}

#[test]
fn references_of_every_form_are_recognised() {
    let names = |text: &str| first_segments(text).join(" ");
    assert_eq!(names("app::App;"), "app");
    assert_eq!(names("{\n    app::{App, Feature},\n    error::Result, pools,\n};"), "app error pools");
    assert_eq!(module_path("server/src/evals/ask.rs").unwrap(), ["evals", "ask"]);
    assert_eq!(module_path("server/src/ingest/mod.rs").unwrap(), ["ingest"]);
    assert_eq!(module_path("server/src/main.rs"), None);
}
