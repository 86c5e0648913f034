//! Paths in documents exist.

use std::fs;
use std::path::PathBuf;

use crate::report;
use crate::source::{CRATE_NAMES, collect, relative, root};

#[test]
fn links_and_paths_in_documents_exist() {
    let root = root();
    let mut documents: Vec<PathBuf> = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    collect(&root.join("docs"), "md", &mut documents);
    let mut found = Vec::new();
    for document in documents {
        let name = relative(&root, &document);
        let folder = document.parent().unwrap();
        for (index, line) in fs::read_to_string(&document).unwrap().lines().enumerate() {
            let links = line.split("](").skip(1).filter_map(|it| it.split(')').next());
            for link in links.filter(|it| !it.contains("://") && !it.starts_with('#')) {
                if !folder.join(link.split('#').next().unwrap_or_default()).exists() {
                    found.push(format!("{name}:{}: the link `{link}` leads nowhere", index + 1));
                }
            }
            for path in line.split('`').skip(1).step_by(2).filter(|it| is_path(it)) {
                if !root.join(path).exists() {
                    found.push(format!("{name}:{}: there is no `{path}`", index + 1));
                }
            }
        }
    }
    report(found);
}

/// Returns whether a piece of code in a document is a path in the repository.
fn is_path(text: &str) -> bool {
    let first = text.split('/').next().unwrap_or_default();
    let plain = text.chars().all(|it| it.is_ascii_alphanumeric() || "/._-".contains(it));
    plain
        && text.contains('/')
        && (CRATE_NAMES.contains(&first) || ["crates", "docs", ".ci"].contains(&first))
}
