//! Tests of the precedence of settings, with files in a temporary folder.

use super::*;

struct ConfigFolder {
    dir: tempfile::TempDir,
    env: Env,
}

fn config_folder(config: &str, credentials: &str, vars: &[(&str, &str)]) -> ConfigFolder {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.toml"), config).unwrap();
    std::fs::write(dir.path().join("credentials.toml"), credentials).unwrap();
    let mut env = Env { cwd: Some(dir.path().to_owned()), ..Env::default() };
    env.vars.insert("LOUPE_CONFIG_DIR".into(), dir.path().display().to_string());
    env.vars.extend(vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    ConfigFolder { dir, env }
}

const CONFIG_TOML: &str = r#"
current = "prod"
[contexts.prod]
url = "https://prod.example"
project = "from-context"
protected = true
[contexts.dev]
url = "http://dev.example"
[output]
format = "json"
[filters]
slow = "latency:>1s"
"#;
const CREDENTIALS_TOML: &str = "[contexts.prod]\napi_key = \"lp_prod\"\nsession_token = \"tok\"\n";

#[test]
fn context_provides_address_project_and_secrets() {
    let config_folder = config_folder(CONFIG_TOML, CREDENTIALS_TOML, &[]);
    let settings = Settings::resolve(&GlobalArgs::default(), &config_folder.env).unwrap();
    assert_eq!(settings.url.value, "https://prod.example");
    assert_eq!(settings.url.source, "context prod");
    assert_eq!(settings.project.as_ref().unwrap().value, "from-context");
    assert_eq!(settings.api_key.as_ref().unwrap().value, "lp_prod");
    assert_eq!(settings.format.value, Format::Json);
    assert!(settings.context.protected);
}

#[test]
fn flag_precedes_environment_local_file_and_context() {
    let config_folder = config_folder(
        CONFIG_TOML,
        CREDENTIALS_TOML,
        &[("LOUPE_URL", "http://env"), ("LOUPE_API_KEY", "lp_env\n")],
    );
    std::fs::write(
        config_folder.dir.path().join(".loupe.toml"),
        "project = \"from-local\"\noutput = \"csv\"",
    )
    .unwrap();
    let mut global = GlobalArgs::default();
    let settings = Settings::resolve(&global, &config_folder.env).unwrap();
    assert_eq!(settings.url.value, "http://env");
    assert_eq!(settings.api_key.as_ref().unwrap().value, "lp_env");
    assert_eq!(settings.project.as_ref().unwrap().value, "from-local");
    assert_eq!(settings.format.value, Format::Csv);

    global.url = Some("http://flag".to_owned());
    global.project = Some("from-flag".to_owned());
    let settings = Settings::resolve(&global, &config_folder.env).unwrap();
    assert_eq!((settings.url.value.as_str(), settings.url.source.as_str()), ("http://flag", "flag"));
    assert_eq!(settings.project.as_ref().unwrap().value, "from-flag");
}

#[test]
fn local_file_with_an_address_is_a_usage_error() {
    let config_folder = config_folder(CONFIG_TOML, CREDENTIALS_TOML, &[]);
    std::fs::write(config_folder.dir.path().join(".loupe.toml"), "url = \"http://evil\"").unwrap();
    let error = Settings::resolve(&GlobalArgs::default(), &config_folder.env).unwrap_err();
    assert_eq!(error.exit.code(), 2);
}

#[test]
fn unknown_context_error_lists_the_contexts() {
    let config_folder = config_folder(CONFIG_TOML, CREDENTIALS_TOML, &[("LOUPE_CONTEXT", "prd")]);
    let error = Settings::resolve(&GlobalArgs::default(), &config_folder.env).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("contexts: dev, prod"));
}

#[test]
fn secret_is_read_from_a_mounted_file() {
    let mut config_folder = config_folder("", "", &[]);
    let path = config_folder.dir.path().join("key");
    std::fs::write(&path, "lp_mounted\n").unwrap();
    config_folder.env.vars.insert("LOUPE_API_KEY_FILE".into(), path.display().to_string());
    let settings = Settings::resolve(&GlobalArgs::default(), &config_folder.env).unwrap();
    assert_eq!(settings.api_key.unwrap().value, "lp_mounted");
    assert_eq!(settings.url.value, DEFAULT_URL);
}

#[cfg(unix)]
#[test]
fn readable_credentials_file_causes_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let config_folder = config_folder(CONFIG_TOML, CREDENTIALS_TOML, &[]);
    let path = config_folder.dir.path().join("credentials.toml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let settings = Settings::resolve(&GlobalArgs::default(), &config_folder.env).unwrap();
    assert!(settings.warnings[0].contains("credentials.toml"));
}
