//! The primary key of every table of a tenant begins with the tenant.
//!
//! These tests read the entities; the schema suite compares them with the databases.

use crate::report;
use crate::source::{Source, product_files};

/// Tables of the installation, which have no tenant, each with the reason.
const NOT_OF_A_TENANT: [(&str, &str); 3] = [
    ("setting", "settings of the installation"),
    ("api_key", "a key is looked up by its hash before its tenant is known"),
    ("external_tenant", "a tenant is looked up by its name at an identity provider before it is known"),
];

#[test]
fn primary_keys_begin_with_the_tenant() {
    let entities: Vec<Source> = product_files().filter(|it| it.is_in("entities/src/")).collect();
    let mut tables = 0;
    let mut found = Vec::new();
    for file in &entities {
        for (number, line) in file.lines.iter().enumerate() {
            let Some(name) = line.split("table_name = \"").nth(1).and_then(|it| it.split('"').next()) else {
                continue;
            };
            tables += 1;
            let exempt = NOT_OF_A_TENANT.iter().any(|(it, _)| *it == name);
            let (at, first) = first_key_column(file, number);
            if first != "tenant_id" && !exempt {
                let instead = "put `tenant_id` first in the primary key: tables are distributed by it";
                found.push(
                    file.at(at + 1, &format!("table `{name}` begins its key with `{first}`: {instead}")),
                );
            }
        }
    }
    assert!(tables > 5, "only {tables} tables found in entities/src: has the form of entities changed?");
    report(found);
}

#[test]
fn tenant_exemptions_name_existing_tables() {
    let entities: String =
        product_files().filter(|it| it.is_in("entities/src/")).flat_map(|it| it.lines).collect();
    for (name, why) in NOT_OF_A_TENANT {
        assert!(
            entities.contains(&format!("table_name = \"{name}\"")),
            "no table `{name}` ({why}): remove its exemption"
        );
    }
}

/// Returns the line and the name of the first field after line `from` that is marked as a primary key.
fn first_key_column(file: &Source, from: usize) -> (usize, String) {
    let below = file.lines.iter().enumerate().skip(from);
    let mut key = below.skip_while(|(_, line)| !line.contains("primary_key"));
    let field = key.find_map(|(at, line)| line.trim().strip_prefix("pub ").map(|it| (at, it)));
    field.map_or((from, String::new()), |(at, it)| (at, it.split(':').next().unwrap_or_default().to_owned()))
}
