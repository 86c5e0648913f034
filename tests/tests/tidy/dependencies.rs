//! The allowed dependencies between the crates, and on external libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::report;
use crate::source::{CRATE_NAMES, folder_of, root};

/// The crates of the workspace that each crate may use; `tests` may use all.
const ALLOWED_DEPENDENCIES: [(&str, &[&str]); 16] = [
    ("api", &["stub"]),
    ("semantics", &["api"]),
    ("evaluators", &["api"]),
    ("anomalies", &[]),
    ("entities", &["api"]),
    ("migrations", &["entities"]),
    ("store", &["api", "semantics", "entities", "migrations"]),
    ("queue", &["entities", "store"]),
    ("outbound", &[]),
    // For the tests of clients only.
    ("stub", &[]),
    (
        "server",
        &[
            "anomalies",
            "api",
            "semantics",
            "evaluators",
            "clustering",
            "experiments",
            "entities",
            "store",
            "queue",
            "outbound",
        ],
    ),
    ("present", &["api"]),
    ("clustering", &[]),
    ("experiments", &[]),
    ("tui", &["api", "present", "stub"]),
    ("cli", &["api", "evaluators", "present", "stub", "tui"]),
];

/// Libraries of the server that programs on a user's machine do not need.
const SERVER_ONLY_LIBRARIES: [&str; 5] = ["sea-orm", "sea-orm-migration", "sqlx", "axum", "utoipa"];

#[test]
fn crate_dependencies_point_one_way() {
    let mut found = Vec::new();
    for (name, allowed) in ALLOWED_DEPENDENCIES {
        let ours =
            Manifest::of(name).dependencies.into_keys().filter(|it| CRATE_NAMES.contains(&it.as_str()));
        for it in ours.filter(|it| !allowed.contains(&it.as_str())) {
            found.push(format!(
                "{name}/Cargo.toml: `{it}`: {name} may use {allowed:?} only; move what both need to api"
            ));
        }
    }
    report(found);
}

#[test]
fn user_programs_have_no_database_dependency() {
    let mut found = Vec::new();
    for name in ["cli", "tui"] {
        let manifest = Manifest::of(name);
        for it in manifest.dependencies.keys().filter(|it| SERVER_ONLY_LIBRARIES.contains(&it.as_str())) {
            found.push(format!("{name}/Cargo.toml: `{it}`: speak to the server through api::client"));
        }
        let features = manifest.dependencies.get("api").cloned().unwrap_or_default();
        for it in ["db", "schema"].into_iter().filter(|it| features.contains(&format!("\"{it}\""))) {
            found.push(format!("{name}/Cargo.toml: feature `{it}` of api is the server's; use `client`"));
        }
    }
    // The rule above holds only while `api` keeps such libraries behind those features.
    for (dependency, how) in Manifest::of("api").dependencies {
        if SERVER_ONLY_LIBRARIES.contains(&dependency.as_str()) && !how.contains("optional = true") {
            found.push(format!("api/Cargo.toml: `{dependency}` has to be optional, behind `db` or `schema`"));
        }
    }
    report(found);
}

#[test]
fn versions_are_in_the_workspace_manifest() {
    let mut found = Vec::new();
    for name in CRATE_NAMES {
        for (dependency, how) in Manifest::of(name).dependencies {
            if !how.contains("workspace = true") && how.trim() != "true" {
                let instead = "put the version into the root manifest and write `.workspace = true`";
                found.push(format!("{name}/Cargo.toml: `{dependency}`: {instead}"));
            }
        }
    }
    report(found);
}

#[test]
fn lock_file_names_only_the_registry() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for (index, line) in lock.lines().enumerate() {
        if let Some(name) = line.strip_prefix("name = ") {
            names.insert(name.trim_matches('"'));
        }
        if line.starts_with("source = ")
            && !line.contains("registry+https://github.com/rust-lang/crates.io-index")
        {
            found.push(format!(
                "Cargo.lock:{}: {line}: depend on a release of the crates.io registry",
                index + 1
            ));
        }
    }
    for it in ["openssl", "openssl-sys", "native-tls"].into_iter().filter(|it| names.contains(it)) {
        found.push(format!("Cargo.lock: `{it}`: TLS is rustls; turn off the feature that brings it in"));
    }
    report(found);
}

/// The dependencies that a crate declares, each with its specification.
struct Manifest {
    dependencies: BTreeMap<String, String>,
}

impl Manifest {
    /// Reads the one-line forms that this workspace uses: `name.workspace = true` and `name = { … }`.
    fn of(name: &str) -> Self {
        let text = fs::read_to_string(root().join(folder_of(name)).join("Cargo.toml")).unwrap();
        let mut dependencies = BTreeMap::new();
        let mut inside = false;
        for line in text.lines() {
            if line.starts_with('[') {
                inside = line.ends_with("dependencies]");
            } else if let Some((key, value)) =
                line.split_once('=').filter(|_| inside && !line.starts_with('#'))
            {
                let (name, rest) = key.trim().split_once('.').unwrap_or((key.trim(), ""));
                dependencies.insert(name.to_owned(), format!("{rest} = {}", value.trim()));
            }
        }
        assert!(!dependencies.is_empty(), "{name}/Cargo.toml: no dependencies found");
        Self { dependencies }
    }
}
