//! Configuration: flags override environment variables, these override `loupe.toml`, and that overrides
//! defaults.

mod egress;
mod embedding;
mod judge;
mod oidc;
pub mod origins;
pub mod proxies;
pub mod values;

use std::{ffi::OsString, net::SocketAddr, path::PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use semantics::prices::PriceTable;
use store::sqlite_url;

pub use self::{
    egress::EgressSettings,
    embedding::EmbeddingSettings,
    judge::JudgeSettings,
    oidc::{OidcSettings, trusted_url},
};
use crate::config::{origins::CorsOrigins, proxies::TrustedProxies};

/// The server's configuration. Every setting has a flag, an environment variable and, under the flag's
/// name with `_` for `-`, a line in `loupe.toml`.
#[derive(Args, Clone)]
pub struct Config {
    /// Address to listen on; port 0 selects a free one.
    #[arg(
        long,
        env = "LOUPE_LISTEN",
        default_value = "127.0.0.1:4600",
        value_name = "ADDR",
        global = true,
        value_parser = values::parse_address
    )]
    pub listen: SocketAddr,

    /// Separate address for `/metrics`, which is then not served at the main address [default: none].
    #[arg(long, env = "LOUPE_METRICS_LISTEN", value_name = "ADDR")]
    pub metrics_listen: Option<String>,

    /// Address for OTLP over gRPC, usually with port 4317 [default: none].
    #[arg(long, env = "LOUPE_OTLP_GRPC_LISTEN", value_name = "ADDR")]
    pub otlp_grpc_listen: Option<String>,

    /// Directory of the SQLite database and the master key.
    #[arg(long, env = "LOUPE_DATA_DIR", default_value = "./loupe-data", value_name = "DIR", global = true)]
    pub data_dir: PathBuf,

    /// `sqlite://PATH`, or `postgres://…` for PostgreSQL with pgvector
    /// [default: loupe.db in the data directory].
    #[arg(long, env = "LOUPE_DATABASE_URL", value_name = "URL", hide_env_values = true, global = true)]
    pub database_url: Option<String>,

    /// PostgreSQL replica for lists and searches, whose results may then lag behind.
    #[arg(long, env = "LOUPE_DATABASE_READ_URL", value_name = "URL", hide_env_values = true)]
    pub database_read_url: Option<String>,

    /// Connections to the database (readers on SQLite).
    #[arg(
        long,
        env = "LOUPE_DATABASE_CONNECTIONS",
        default_value_t = 8,
        value_name = "N",
        global = true,
        value_parser = values::parse_number::<u32>
    )]
    pub database_connections: u32,

    /// 32 bytes in base64, or a list `id:key,…` whose first key is used. Required with
    /// PostgreSQL; generated at the first start on SQLite.
    #[arg(long, env = "LOUPE_MASTER_KEY", value_name = "KEY", hide_env_values = true, global = true)]
    pub master_key: Option<String>,

    /// Secret of at least 32 bytes that signs session tokens [default: derived from the master key;
    /// none, and no local session tokens, if an identity provider is set].
    #[arg(long, env = "LOUPE_SESSION_SECRET", value_name = "SECRET", hide_env_values = true, global = true)]
    pub session_secret: Option<String>,

    /// Identity provider.
    #[command(flatten)]
    pub oidc: OidcSettings,

    /// The API key that the first start creates, for containers, CI and benchmarks.
    #[arg(long, env = "LOUPE_BOOTSTRAP_API_KEY", value_name = "KEY", hide_env_values = true)]
    pub bootstrap_api_key: Option<String>,

    /// JSON file of model prices that override the built-in ones.
    #[arg(long, env = "LOUPE_PRICES_FILE", value_name = "FILE")]
    pub prices_file: Option<PathBuf>,

    /// Largest request body in bytes, compressed or not.
    #[arg(
        long,
        env = "LOUPE_MAX_BODY_BYTES",
        default_value_t = 32 * 1024 * 1024,
        value_name = "BYTES",
        value_parser = values::parse_number::<usize>
    )]
    pub max_body_bytes: usize,

    /// Memory for request bodies and unread responses, in KiB. A tenant can use at most a quarter of
    /// it; a request that finds no memory gets 503.
    #[arg(
        long,
        env = "LOUPE_REQUEST_MEMORY_KIB",
        default_value_t = 192 * 1024,
        value_name = "KIB",
        value_parser = values::parse_number::<usize>
    )]
    pub request_memory_kib: usize,

    /// Memory for vectors of spans in MiB, for searches on SQLite. A project that does not fit is read
    /// at each search.
    #[arg(
        long,
        env = "LOUPE_VECTOR_CACHE_MIB",
        default_value_t = 64,
        value_name = "MIB",
        value_parser = values::parse_number::<usize>
    )]
    pub vector_cache_mib: usize,

    /// Number of vectors within the filters of a search up to which PostgreSQL compares all; with more,
    /// it uses its HNSW index, to which the vectors of such tenants are added in the background.
    #[arg(
        long,
        env = "LOUPE_SEARCH_EXACT",
        default_value_t = 200_000,
        value_name = "N",
        value_parser = values::parse_number::<u32>
    )]
    pub search_exact: u32,

    /// Maximum seconds to send the head of a request.
    #[arg(
        long,
        env = "LOUPE_HEADER_TIMEOUT",
        default_value_t = 15,
        value_name = "SECONDS",
        value_parser = values::parse_number::<u64>
    )]
    pub header_timeout: u64,

    /// Maximum seconds to send the body of a request.
    #[arg(
        long,
        env = "LOUPE_BODY_TIMEOUT",
        default_value_t = 45,
        value_name = "SECONDS",
        value_parser = values::parse_number::<u64>
    )]
    pub body_timeout: u64,

    /// Maximum seconds that a client leaves a response unread.
    #[arg(
        long,
        env = "LOUPE_WRITE_TIMEOUT",
        default_value_t = 30,
        value_name = "SECONDS",
        value_parser = values::parse_number::<u64>
    )]
    pub write_timeout: u64,

    /// Maximum number of open connections; further ones get 503. Limited by the system's number of open
    /// files.
    #[arg(
        long,
        env = "LOUPE_MAX_CONNECTIONS",
        default_value_t = 8_192,
        value_name = "N",
        value_parser = values::parse_number::<usize>
    )]
    pub max_connections: usize,

    /// Origins whose pages may call the API from a browser, comma-separated, or `*` for all [default:
    /// none].
    #[arg(
        long,
        env = "LOUPE_CORS_ORIGINS",
        default_value = "",
        hide_default_value = true,
        value_name = "LIST"
    )]
    pub cors_origins: CorsOrigins,

    /// Proxies whose `X-Forwarded-For` or `Forwarded` header is trusted: addresses and networks (CIDR),
    /// comma-separated [default: none].
    #[arg(
        long,
        env = "LOUPE_TRUSTED_PROXIES",
        default_value = "",
        hide_default_value = true,
        value_name = "LIST"
    )]
    pub trusted_proxies: TrustedProxies,

    /// Maximum requests per minute from an address without a valid token.
    #[arg(
        long,
        env = "LOUPE_UNAUTHENTICATED_PER_MINUTE",
        default_value_t = 600,
        value_name = "N",
        value_parser = values::parse_number::<u32>
    )]
    pub unauthenticated_per_minute: u32,

    /// At the first start, also write the context `local` with the key and an owner's session of 30
    /// days into the configuration of `loupe`.
    #[arg(long, env = "LOUPE_WRITE_PROFILE")]
    pub write_profile: bool,

    /// Run no jobs in this process.
    #[arg(long, env = "LOUPE_NO_WORKERS")]
    pub no_workers: bool,

    /// Outbound requests to addresses that tenants set.
    #[command(flatten)]
    pub egress: EgressSettings,

    /// The platform's embedding provider.
    #[command(flatten)]
    pub embedding: EmbeddingSettings,

    /// The platform's judge providers.
    #[command(flatten)]
    pub judge: JudgeSettings,

    /// Log level: `error`, `warn`, `info`, `debug`, or a filter such as `info,sqlx=debug`.
    #[arg(long, env = "LOUPE_LOG", default_value = "info", value_name = "FILTER", global = true)]
    pub log: String,

    /// Log format: `text` or `json` [default: text on a terminal, json otherwise].
    #[arg(long, env = "LOUPE_LOG_FORMAT", value_name = "FORMAT", global = true)]
    pub log_format: Option<String>,
}

impl Config {
    /// Returns the address of the database.
    pub fn database_url(&self) -> String {
        self.database_url.clone().unwrap_or_else(|| sqlite_url(&self.data_dir))
    }

    /// Treats empty settings as unset, because compose files pass on unset variables as empty ones.
    pub fn drop_empty(&mut self) {
        for setting in [
            &mut self.metrics_listen,
            &mut self.otlp_grpc_listen,
            &mut self.database_url,
            &mut self.database_read_url,
            &mut self.master_key,
            &mut self.session_secret,
            &mut self.bootstrap_api_key,
            &mut self.log_format,
        ] {
            *setting = setting.take().filter(|it| !it.is_empty());
        }
        self.egress.drop_empty();
        self.embedding.drop_empty();
        self.judge.drop_empty();
        self.oidc.drop_empty();
    }

    /// Validates what clap cannot.
    ///
    /// # Errors
    ///
    /// Fails when a setting is invalid, with what to do about it.
    pub fn check(&self) -> anyhow::Result<()> {
        if let Some(secret) = &self.session_secret {
            ensure!(
                secret.len() >= 32,
                "LOUPE_SESSION_SECRET must have at least 32 bytes; it has {}",
                secret.len()
            );
        }
        self.oidc.check()?;
        if let Some(url) = &self.database_url {
            let known = ["sqlite://", "postgres://", "postgresql://"].iter().any(|it| url.starts_with(it));
            ensure!(known, "LOUPE_DATABASE_URL must begin with sqlite:// or postgres://");
        }
        if let Some(format) = &self.log_format {
            ensure!(matches!(format.as_str(), "text" | "json"), "LOUPE_LOG_FORMAT must be text or json");
        }
        self.egress.check()?;
        self.embedding.check()?;
        self.judge.check()?;
        Ok(())
    }

    /// Returns the prices for all tenants.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read.
    pub fn price_table(&self) -> anyhow::Result<PriceTable> {
        let table = PriceTable::builtin();
        let Some(path) = &self.prices_file else { return Ok(table) };
        let text = std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
        let overrides =
            PriceTable::parse_file(&text).map_err(|it| anyhow::anyhow!("{}: {it}", path.display()))?;
        Ok(table.with_overrides(&overrides))
    }

    /// Returns the number of bodies decoded at the same time, which only uses the processor.
    pub fn decoder_count(&self) -> usize {
        std::thread::available_parallelism().map_or(2, usize::from)
    }
}

/// Returns the folder of the command line's configuration, according to the environment.
#[expect(clippy::disallowed_methods, reason = "this is the configuration module")]
pub fn profile_folder() -> Option<PathBuf> {
    api::profile::config_dir(|name| std::env::var(name).ok())
}

#[expect(clippy::disallowed_methods, reason = "this is the configuration module")]
fn is_set(variable: &std::ffi::OsStr) -> bool {
    std::env::var_os(variable).is_some()
}

/// Returns the command line with the lines of `loupe.toml` in front of it, as flags: a flag on the
/// command line comes later and takes precedence. Settings in the environment are skipped.
///
/// # Errors
///
/// Fails when the file cannot be read, or contains an unknown setting.
pub fn arguments(arguments_given: impl IntoIterator<Item = OsString>) -> anyhow::Result<Vec<OsString>> {
    let mut arguments_given: Vec<OsString> = arguments_given.into_iter().collect();
    let path = std::path::Path::new("loupe.toml");
    if !path.exists() {
        return Ok(arguments_given);
    }
    let text = std::fs::read_to_string(path).context("can't read loupe.toml")?;
    let table: toml::Table = text.parse().context("loupe.toml is not valid TOML")?;
    let command = Config::augment_args(clap::Command::new("loupe-server"));
    let mut lines = Vec::new();
    for (name, value) in table {
        let flag = name.replace('_', "-");
        let argument = command.get_arguments().find(|it| it.get_long() == Some(flag.as_str()));
        let argument = argument.with_context(|| format!("loupe.toml: `{name}` is not a setting"))?;
        let in_environment = argument.get_env().is_some_and(is_set);
        let on_line = arguments_given
            .iter()
            .filter_map(|it| it.to_str())
            .any(|it| it.strip_prefix("--").and_then(|it| it.split('=').next()) == Some(flag.as_str()));
        if in_environment || on_line {
            continue;
        }
        let text = match value {
            toml::Value::String(text) => text,
            toml::Value::Boolean(true) if !argument.get_action().takes_values() => {
                lines.push(format!("--{flag}").into());
                continue;
            }
            toml::Value::Boolean(false) if !argument.get_action().takes_values() => continue,
            other => other.to_string(),
        };
        lines.push(format!("--{flag}={text}").into());
    }
    let insert_at = arguments_given.len().min(1);
    arguments_given.splice(insert_at..insert_at, lines);
    Ok(arguments_given)
}

/// Returns the configuration of a command line with only flags, with the defaults for the rest.
#[cfg(feature = "fakes")]
pub fn from_flags(flags: &[&str]) -> Result<Config, clap::Error> {
    use clap::FromArgMatches;
    let command = Config::augment_args(clap::Command::new("loupe-server"));
    Config::from_arg_matches(&command.try_get_matches_from(std::iter::once(&"loupe-server").chain(flags))?)
}
