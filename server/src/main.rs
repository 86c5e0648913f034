//! The command line of the server.

mod signals;

use std::{io::IsTerminal, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use outbound::resolver::SystemResolver;
use server::{
    access::{api_key::ApiKey, seal::Sealer},
    admin,
    app::App,
    clock::{Clock, SystemClock},
    config::Config,
    demo::{self, DemoEnvironment},
    features,
    first_start::{self, NewTenant},
    http::{self, serve::Listeners},
    idle_cleanup, ignored_settings,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use signals::Signals;
use store::{Db, trace_index};

// Its background thread returns freed memory to the system, even while all other threads are idle.
#[global_allocator]
static GLOBAL_ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Maximum time for commits and jobs on shutdown, after requests in progress; a stop takes ten seconds
/// in all.
const COMMIT_GRACE_PERIOD: Duration = Duration::from_secs(4);
/// How long the process waits for running threads after everything else has stopped.
const THREAD_EXIT_WAIT: Duration = Duration::from_millis(500);

/// Observability and evaluation for LLM applications: one binary over one SQLite file, or over PostgreSQL.
#[derive(Parser)]
#[command(name = "loupe-server", version, args_conflicts_with_subcommands = false)]
struct Cli {
    #[command(flatten)]
    config: Config,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API and run jobs. The default.
    Serve,
    /// Run jobs only.
    Worker,
    /// Serve sample data: a temporary database with traces of the last days, and a new one every
    /// second. Configured and stored data is not touched.
    Demo {
        /// Seed of the sample traces; the same seed gives the same traces.
        #[arg(long, default_value_t = 1, value_parser = server::config::values::parse_number::<u64>)]
        seed: u64,
        /// The port, instead of that of --listen.
        #[arg(long, value_parser = server::config::values::parse_number::<u16>)]
        port: Option<u16>,
    },
    /// Administer tenants, tokens and keys.
    #[command(subcommand)]
    Admin(admin::AdminCommand),
}

/// Exit code of `admin check` when it finds inconsistencies.
const INCONSISTENCY_EXIT_CODE: u8 = 1;

fn main() -> ExitCode {
    let arguments = match server::config::arguments(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) => return fail(&error),
    };
    let cli = Cli::from_arg_matches_mut(&mut command().get_matches_from(arguments));
    let cli = cli.unwrap_or_else(|error| error.exit());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(worker_threads()).enable_all().build();
    let outcome = runtime.context("can't start the runtime").and_then(|runtime| {
        let outcome = runtime.block_on(run(cli));
        // Dropping the runtime would wait without limit for blocked threads.
        runtime.shutdown_timeout(THREAD_EXIT_WAIT);
        outcome
    });
    match outcome {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

/// Builds the command line, where every setting may precede or follow the subcommand: `loupe-server serve`
/// accepts what `loupe-server` accepts. The help of `admin` shows only the settings that its commands use;
/// their declarations mark them as `global`.
fn command() -> clap::Command {
    let settings = Config::augment_args(clap::Command::new("settings"));
    let unused_by_admin = settings.get_arguments().filter(|it| !it.is_global_set());
    let hidden: Vec<clap::Arg> = unused_by_admin.map(|it| it.clone().global(true).hide(true)).collect();
    Cli::command().mut_args(|it| it.global(true)).mut_subcommand("admin", |admin| admin.args(hidden))
}

/// Number of threads that run tasks. As many as there are processors may be busy decoding; two more
/// serve other requests meanwhile.
fn worker_threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from) + 2
}

#[expect(clippy::print_stderr, reason = "the error that ends the process is printed")]
fn fail(error: &anyhow::Error) -> ExitCode {
    // Removes the error numbers from errors of the operating system.
    let causes = error.chain().map(|it| match it.downcast_ref::<std::io::Error>() {
        Some(error) => api::plain::io_error(error),
        None => it.to_string(),
    });
    eprintln!("loupe-server: {}", causes.collect::<Vec<_>>().join(": "));
    ExitCode::FAILURE
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let mut cli = cli;
    cli.config.drop_empty();
    cli.config.check()?;
    start_log(&cli.config);
    match cli.command.unwrap_or(Command::Serve) {
        Command::Admin(command) => {
            return administer(command, &cli.config).await;
        }
        Command::Serve => serve(cli.config, RunMode::Serve).await?,
        Command::Worker => serve(cli.config, RunMode::Work).await?,
        Command::Demo { seed, port } => {
            if let Some(port) = port {
                cli.config.listen.set_port(port);
            }
            let environment = DemoEnvironment::create(&mut cli.config)?;
            serve(cli.config, RunMode::Demo { environment: &environment, seed }).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs an operator's command. A signal drops the command, which then cleans up.
async fn administer(command: admin::AdminCommand, config: &Config) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen().context("can't listen for signals")?;
    let report = tokio::select! {
        report = admin::run(command, config, &SystemClock) => report?,
        () = signals.next() => anyhow::bail!("stopped by a signal before it was complete"),
    };
    print(&report.text);
    Ok(if report.is_successful { ExitCode::SUCCESS } else { ExitCode::from(INCONSISTENCY_EXIT_CODE) })
}

/// The mode of a process.
#[derive(Clone, Copy)]
enum RunMode<'a> {
    /// Serves, and runs jobs unless disabled.
    Serve,
    /// Runs jobs.
    Work,
    /// Serves a demo.
    Demo { environment: &'a DemoEnvironment, seed: u64 },
}

/// Starts everything, runs until a signal, stops everything.
async fn serve(config: Config, mode: RunMode<'_>) -> anyhow::Result<()> {
    let with_http = !matches!(mode, RunMode::Work);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let bootstrap = match &config.bootstrap_api_key {
        Some(text) => Some(ApiKey::parse(text).context(
            "LOUPE_BOOTSTRAP_API_KEY is not a valid API key: it must be lp_, 43 letters or digits and a checksum of 6",
        )?),
        None => None,
    };
    if config.database_url.is_none() {
        admin::make_data_dir(&config)?;
    }
    let master = admin::master_key(&config)?;
    let db =
        Db::open(&config.database_url(), config.database_read_url.as_deref(), config.database_connections)
            .await
            .with_context(|| "can't open the database")?;
    let migrations = db.migrate().await.context("can't bring the schema up to date")?;
    if migrations > 0 {
        tracing::info!(migrations, "the schema is up to date");
    }
    trace_index::index_long_tails_completely(&db, clock.now()).await.context("traces can't be indexed")?;
    let first_tenant = match mode {
        RunMode::Demo { .. } => None,
        _ => {
            let (embedding, judge, sealer) = (&config.embedding, &config.judge, Sealer::new(&master));
            let first_tenant =
                first_start::run(&db, bootstrap.clone(), embedding, judge, &sealer, clock.now())
                    .await
                    .context("the first start failed")?;
            if first_tenant.is_none() {
                let ignored = ignored_settings::warnings(&db, bootstrap.as_ref(), embedding, judge, &sealer);
                for warning in ignored.await.context("the settings can't be compared with the stored ones")? {
                    tracing::warn!("{warning}");
                }
            }
            first_tenant
        }
    };

    let listener = match with_http {
        true => Some(
            http::serve::listen(config.listen)
                .with_context(|| format!("can't listen on {}", config.listen))?,
        ),
        false => None,
    };
    let runs_jobs = !with_http || !config.no_workers;
    let metrics_listener = listen(config.metrics_listen.as_deref(), "metrics-listen").await?;
    let otlp_grpc_address = config.otlp_grpc_listen.as_deref().filter(|_| with_http);
    let otlp_grpc_listener = listen(otlp_grpc_address, "otlp-grpc-listen").await?;
    let app =
        App::start(db, clock, Arc::new(SystemResolver::default()), config, &master, features::assemble())?;
    if let Some(metrics_listener) = metrics_listener {
        tracing::info!(address = %metrics_listener.local_addr()?, "metrics are served at /metrics");
        app.spawn(http::serve::serve_metrics(Arc::clone(&app), features::routes(), metrics_listener));
    }
    if runs_jobs {
        app.start_workers();
    }
    idle_cleanup::start(&app);
    let mut signals = Signals::listen().context("can't listen for signals")?;
    if matches!(mode, RunMode::Demo { .. }) {
        signals = signals.with_hangup().context("can't listen for signals")?;
    }
    let stop = CancellationToken::new();
    let mut demo_context = None;
    if let Some(listener) = &listener {
        let url = format!("http://{}", listener.local_addr()?);
        let mut demo_tenant = None;
        if let RunMode::Demo { environment, seed } = mode {
            tracing::info!("storing sample data");
            let opened = tokio::select! {
                opened = demo::fill(&app, environment, features::routes(), seed) => opened,
                // Jobs of the demo need not be finished.
                () = signals.next() => return Ok(()),
            };
            demo_tenant = Some(opened.context("the demo could not be set up")?);
        }
        if let Some(otlp_grpc_listener) = &otlp_grpc_listener {
            tracing::info!(address = %otlp_grpc_listener.local_addr()?, "OTLP is served over gRPC");
        }
        // Logged before the welcome text, which stays at the bottom of a terminal.
        tracing::info!(address = url, database = ?app.db.dialect, workers = runs_jobs, "ready");
        if let Some(demo_tenant) = demo_tenant {
            let (greeting, context) = demo::welcome_text(&app, &demo_tenant, &url)?;
            demo_context = context;
            print_on_fresh_line(&greeting);
        }
        print_welcome(&app, first_tenant.as_ref(), bootstrap.is_some(), &url)?;
    } else {
        tracing::info!("running jobs");
    }
    let second_signal = async {
        signals.next().await;
        tracing::info!("stopping; another signal stops immediately");
        stop.cancel();
        signals.next().await;
    };
    tokio::select! {
        () = run_until(&app, listener.map(|http| Listeners { http, otlp_grpc: otlp_grpc_listener }), &stop) => Ok(()),
        () = second_signal => {
            drop(demo_context);
            if let RunMode::Demo { environment, .. } = mode {
                environment.clear();
            }
            std::process::exit(1)
        }
    }
}

/// Listens on the address of a setting, if it is set.
async fn listen(address: Option<&str>, setting: &str) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let listener = match address.parse() {
        Ok(address) => http::serve::listen(address),
        // The address contains a host name.
        Err(_) => TcpListener::bind(address).await,
    };
    listener.map(Some).with_context(|| format!("can't listen on {address} ({setting})"))
}

/// Prints the address of the server, and after the first start how to sign in.
fn print_welcome(
    app: &App,
    first_tenant: Option<&NewTenant>,
    key_is_known: bool,
    url: &str,
) -> anyhow::Result<()> {
    if let Some(first_tenant) = first_tenant {
        if !key_is_known {
            print(&first_start::welcome_text(first_tenant, &app.sessions, url));
        }
        if app.config.write_profile {
            let folder = first_start::write_profile(first_tenant, &app.sessions, url, app.clock.now())?;
            print(&format!("The context `local` is in {}", folder.display()));
        }
    }
    print(&format!("loupe-server {} is ready at {url}", env!("CARGO_PKG_VERSION")));
    Ok(())
}

/// Serves, or only runs jobs, until `stop`; then stops everything.
async fn run_until(app: &Arc<App>, listeners: Option<Listeners>, stop: &CancellationToken) {
    match listeners {
        Some(listeners) => http::serve::serve(app, features::routes(), listeners, stop.cancelled()).await,
        None => stop.cancelled().await,
    }
    if tokio::time::timeout(COMMIT_GRACE_PERIOD, app.stop()).await.is_err() {
        tracing::warn!("some tasks did not end in time; their jobs will be claimed again");
    }
    tracing::info!("stopped");
}

fn start_log(config: &Config) {
    // The certificate verifier logs an error for every bad certificate, and tenants choose the endpoints.
    // The migrator logs two lines for each migration; the server logs one for all of them.
    let muted_targets = "rustls_platform_verifier=off,sea_orm_migration=warn";
    let filter = tracing_subscriber::EnvFilter::try_new(format!("{muted_targets},{}", config.log))
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(format!("{muted_targets},info")));
    let json = match config.log_format.as_deref() {
        Some(format) => format == "json",
        None => !std::io::stderr().is_terminal(),
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if json { builder.json().init() } else { builder.init() }
}

#[expect(clippy::print_stdout, reason = "output that the operator requested, or that is shown once")]
fn print(text: &str) {
    println!("{text}");
}

/// Prints a text. Keys that were typed while the reader waited stand on the last line of a terminal, so that line is
/// cleared first.
fn print_on_fresh_line(text: &str) {
    const CLEAR_LINE: &str = "\r\x1b[K";
    let clear = if std::io::stdout().is_terminal() { CLEAR_LINE } else { "" };
    print(&format!("{clear}{text}"));
}
