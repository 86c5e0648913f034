//! Tests of `loupe config`, of local changes and of the servers that credentials may be sent to.

use serde_json::Value;

use crate::stub::{Reply, Stub, run};

fn stub() -> Stub {
    Stub::new(|_, _| Reply::error(401, "unauthorized"))
}

#[test]
fn settings_are_listed_with_their_sources() {
    let stub = stub();
    run(stub.bare(&["context", "set", "dev", "--url", "http://127.0.0.1:1", "-p", "bot", "--protected"]));
    run(stub.bare(&["config", "set", "filters.slow", "latency:>=5s"]));
    let ran = run(stub.loupe(&["config", "list", "--json"]));
    assert!(!ran.stdout.contains("lp_test\""), "{}", ran.stdout);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let row = |key: &str| {
        let rows = document["config"].as_array().unwrap().iter();
        let row = rows.clone().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}"));
        (row["value"].to_string(), row["source"].as_str().unwrap().to_owned())
    };
    for (key, value, source) in [
        ("url", format!("\"{}\"", stub.url()), "LOUPE_URL"),
        ("project", "\"bot\"".to_owned(), "context dev"),
        ("protected", "true".to_owned(), "context dev"),
        ("output.format", "\"json\"".to_owned(), "flag"),
        ("retries", "3".to_owned(), "default"),
        ("filters.slow", "\"latency:>=5s\"".to_owned(), "config.toml"),
        ("session_token", "null".to_owned(), "not set"),
    ] {
        assert_eq!(row(key), (value, source.to_owned()), "{key}");
    }
}

#[test]
fn settings_are_set_validated_and_removed() {
    let stub = stub();
    for (key, value) in [("output.format", "csv"), ("output.time", "utc"), ("contexts.x.read_only", "true")] {
        let ran = run(stub.bare(&["config", "set", key, value]));
        assert_eq!(ran.code, 0, "{key}: {}", ran.stderr);
    }
    assert_eq!(run(stub.bare(&["config", "get", "output.format"])).stdout, "csv\n");
    for (key, value) in [
        ("output.format", "xml"),
        ("contexts.x.read_only", "perhaps"),
        ("contexts.x.url", "ftp://x"),
        ("filters.f", "latncy:>1s"),
        ("nonsense", "1"),
        ("current", "nowhere"),
    ] {
        let ran = run(stub.bare(&["config", "set", key, value]));
        assert_eq!(ran.code, 2, "{key}: {}", ran.stderr);
    }
    assert_eq!(run(stub.bare(&["config", "unset", "output.format"])).code, 0);
    assert_eq!(run(stub.bare(&["config", "get", "output.format"])).stdout, "tsv\n");
    assert_eq!(run(stub.bare(&["config", "get", "nope"])).code, 11);
}

#[test]
fn config_path_is_printed_if_the_file_is_invalid() {
    let stub = stub();
    let path = stub.dir.path().join("config.toml");
    std::fs::write(&path, "current = ").unwrap();
    assert_eq!(run(stub.bare(&["config", "path"])).stdout, format!("{}\n", path.display()));
    assert_eq!(run(stub.bare(&["config", "list"])).code, 1);
    assert_eq!(run(stub.bare(&["config", "edit"])).code, 2, "there is no terminal");
}

#[test]
fn dry_run_changes_no_file() {
    let stub = stub();
    run(stub.bare(&["context", "set", "dev", "--url", "http://127.0.0.1:1"]));
    let before = std::fs::read_to_string(stub.dir.path().join("config.toml")).unwrap();
    for args in [
        &["context", "set", "other", "-n"][..],
        &["context", "delete", "dev", "-n"],
        &["config", "set", "output.time", "utc", "-n"],
        &["config", "unset", "current", "-n"],
        &["auth", "logout", "-n"],
    ] {
        let ran = run(stub.bare(args));
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    }
    assert_eq!(std::fs::read_to_string(stub.dir.path().join("config.toml")).unwrap(), before);
}

#[test]
fn stored_credential_is_bound_to_its_server() {
    let stub = stub();
    let login = |args: &[&str]| {
        let mut command = stub.bare(&[&["auth", "login", "--no-check"], args].concat());
        command.env_remove("LOUPE_URL").write_stdin("lp_one\n");
        run(command)
    };
    assert_eq!(login(&["--key", "-", "--url", "https://one.example", "-c", "one"]).code, 0);
    let ran = login(&["--key", "-", "--url", "https://two.example"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("-c NAME"), "{}", ran.stderr);

    let mut session = stub.bare(&[
        "auth",
        "login",
        "--session",
        "-",
        "--no-check",
        "-c",
        "one",
        "--url",
        "https://two.example",
    ]);
    session.env_remove("LOUPE_URL").write_stdin("token\n");
    assert_eq!(run(session).code, 0);
    let stored = std::fs::read_to_string(stub.dir.path().join("credentials.toml")).unwrap();
    assert!(stored.contains("token") && !stored.contains("lp_one"), "{stored}");
    assert_eq!(login(&["--session", "-", "-c", "new"]).code, 2, "a key is not a session token");
}

#[test]
fn changes_of_the_configuration_keep_its_comments() {
    let stub = stub();
    let path = stub.dir.path().join("config.toml");
    let text = "# shared by the team\ncurrent = \"prod\" # never dev\n\n# see the wiki\n[contexts.prod]\nurl = \"https://prod.example\"\n";
    std::fs::write(&path, text).unwrap();
    let changed = |arguments: &[&str]| {
        let ran = run(stub.bare(arguments));
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        std::fs::read_to_string(&path).unwrap()
    };
    let dev = "\n[contexts.dev]\nurl = \"http://dev.example\"\n";
    assert_eq!(changed(&["context", "set", "dev", "--url", "http://dev.example"]), format!("{text}{dev}"));
    assert_eq!(changed(&["context", "use", "dev"]), format!("{text}{dev}").replacen("prod", "dev", 1));
    assert_eq!(changed(&["context", "use", "prod"]), format!("{text}{dev}"));
    assert_eq!(
        changed(&["config", "set", "output.time", "utc"]),
        format!("{text}{dev}\n[output]\ntime = \"utc\"\n")
    );
    assert_eq!(changed(&["config", "unset", "output.time"]), format!("{text}{dev}"));
    assert_eq!(changed(&["context", "delete", "dev", "-y"]), text);
}
