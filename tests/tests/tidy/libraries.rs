//! The places where each library may be used.

use crate::report;
use crate::source::{has_word, product_files};

/// A library and the only places that may use it.
struct LibraryUse {
    names: &'static [&'static str],
    /// Files, or folders with a `/` at the end.
    places: &'static [&'static str],
    instead: &'static str,
}

const LIBRARY_USES: &[LibraryUse] = &[
    LibraryUse {
        names: &["axum", "tower_http"],
        places: &[
            "server/src/http/",
            "server/src/endpoints/",
            "server/src/*/endpoints.rs",
            "server/src/*/endpoints/",
        ],
        instead: "take plain arguments and return a Result; a handler in the endpoints of the feature turns it into a response",
    },
    LibraryUse {
        names: &["sea_orm", "sea_query", "sqlx"],
        places: &["entities/", "migrations/", "crates/store/", "crates/queue/"],
        instead: "write the query as a function of crates/store and call that",
    },
    LibraryUse {
        names: &["sea_orm_migration"],
        places: &["migrations/", "crates/store/"],
        instead: "change the schema in a migration",
    },
    LibraryUse {
        names: &["DbBackend", "DatabaseBackend"],
        places: &["entities/src/dialect.rs"],
        instead: "ask entities::dialect::Dialect for the piece of SQL that differs",
    },
    LibraryUse {
        names: &["Dialect::Sqlite", "Dialect::Postgres"],
        places: &["entities/src/dialect.rs", "crates/store/", "crates/queue/"],
        instead: "ask entities::dialect::Dialect, or put both ways beside each other in crates/store",
    },
    LibraryUse {
        names: &["reqwest"],
        places: &["crates/api/src/client/"],
        instead: "the server sends through crates/outbound, the programs through api::client",
    },
    LibraryUse {
        names: &[
            "TcpStream::connect",
            "lookup_host",
            "to_socket_addrs",
            "TlsConnector",
            "rustls_platform_verifier",
            "hyper::client",
            "hyper_util::client",
        ],
        places: &["crates/outbound/"],
        instead: "send through App::outbound, which checks the addresses that tenants set",
    },
    LibraryUse {
        names: &["clap"],
        places: &[
            "cli/",
            "server/src/main.rs",
            "server/src/config.rs",
            "server/src/config/",
            "server/src/admin/",
            "server/src/admin.rs",
        ],
        instead: "parse arguments in config and pass values on",
    },
    LibraryUse { names: &["ratatui", "crossterm"], places: &["tui/", "cli/src/"], instead: "draw in tui" },
];

/// Things that a crate never does.
const FORBIDDEN_USES: &[(&str, &[&str], &str)] = &[
    (
        "crates/anomalies/src/",
        &[
            "std::fs",
            "std::io",
            "std::net",
            "std::env",
            "std::thread",
            "SystemTime",
            "Instant",
            "RandomState",
        ],
        "anomalies is pure: pass in the points and store the changes that it returns",
    ),
    (
        "crates/semantics/src/",
        &[
            "std::fs",
            "std::net",
            "std::env",
            "std::process",
            "std::thread",
            "SystemTime",
            "tokio",
            "reqwest",
            "sea_orm",
            "axum",
        ],
        "semantics is pure: pass in what it needs and act on what it returns",
    ),
    (
        "crates/api/src/",
        &["axum", "sqlx", "std::net"],
        "api is the contract: types, and with feature `client` the client",
    ),
    (
        "crates/clustering/src/",
        &[
            "std::fs",
            "std::net",
            "std::env",
            "std::process",
            "std::thread",
            "SystemTime",
            "Instant",
            "RandomState",
        ],
        "clustering is pure: the same clusters and messages give the same result",
    ),
    (
        "crates/experiments/src/",
        &[
            "std::fs",
            "std::net",
            "std::env",
            "std::process",
            "std::thread",
            "SystemTime",
            "Instant",
            "fastrand",
        ],
        "experiments is pure: the same scores give the same decision",
    ),
    (
        "crates/present/src/",
        &["std::env", "std::fs", "std::io", "std::net", "tokio", "clap", "ratatui", "crossterm"],
        "present is plain data: the command line and the console draw what it returns",
    ),
    (
        "entities/src/",
        &["tokio", "std::fs", "std::net", "reqwest", "axum"],
        "entities are rows; queries are in crates/store",
    ),
];

#[test]
fn libraries_are_used_only_in_their_places() {
    let mut found = Vec::new();
    for file in product_files() {
        for home in LIBRARY_USES.iter().filter(|home| !home.places.iter().any(|it| file.is_in(it))) {
            for (number, line) in file.product_code().filter(|(_, line)| !derives_for_storage(line)) {
                for name in home.names.iter().filter(|it| has_word(line, it)) {
                    let places = home.places.join(", ");
                    found.push(
                        file.at(number, &format!("`{name}` belongs to {places} only: {}", home.instead)),
                    );
                }
            }
        }
    }
    report(found);
}

#[test]
fn pure_crates_do_no_input_or_output() {
    let mut found = Vec::new();
    for file in product_files() {
        for (place, names, instead) in FORBIDDEN_USES.iter().filter(|(place, _, _)| file.is_in(place)) {
            // The client is the only part of `api` that uses the network.
            if file.is_in("crates/api/src/client/") {
                continue;
            }
            for (number, line) in file.product_code() {
                for name in names.iter().filter(|it| has_word(line, it)) {
                    found.push(file.at(number, &format!("`{name}` in {place}: {instead}")));
                }
            }
        }
    }
    report(found);
}

/// The enums of the wire types are stored without conversion, so they derive the storage traits behind the feature
/// `db`; `api` uses nothing else of sea-orm.
fn derives_for_storage(line: &str) -> bool {
    line.contains("cfg_attr(feature =") || line.trim_start().starts_with("#[sea_orm(")
}
