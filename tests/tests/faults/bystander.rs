//! The other tenant: lists its traces, and optionally stores some, during an attack.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use tests::Caller;
use tokio::task::JoinHandle;

use crate::installation::Installation;

/// A running loop of requests.
pub struct Bystander {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Figures>,
}

/// The results of the loop.
#[derive(Debug, Default)]
pub struct Figures {
    list: Vec<Duration>,
    ingest: Vec<Duration>,
    server_errors: Vec<String>,
}

impl Bystander {
    /// Stores 50 small traces and starts to list them; with `ingests` it also stores more.
    pub async fn start(installation: &Installation, ingests: bool) -> Self {
        let caller = installation.bystander();
        let traces: Vec<_> = (0..50)
            .map(|n| json!({"id": format!("small-{n}"), "name": "small", "input": "x".repeat(500)}))
            .collect();
        caller.post("/v1/ingest/batch", &json!({"traces": traces})).await.ok();
        let stop = Arc::new(AtomicBool::new(false));
        #[allow(clippy::disallowed_methods, reason = "a test's own task")]
        let task = tokio::spawn(run(caller, Arc::clone(&stop), ingests));
        Self { stop, task }
    }

    /// Ends the loop.
    pub async fn stop(self) -> Figures {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap()
    }
}

async fn run(caller: Caller, stop: Arc<AtomicBool>, ingests: bool) -> Figures {
    let mut figures = Figures::default();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let reply = caller.get("/v1/traces?limit=50").await;
        figures.list.push(began.elapsed());
        if reply.status != 200 {
            figures.server_errors.push(format!("list {} {}", reply.status, reply.text()));
        }
        if ingests {
            let began = Instant::now();
            let reply = caller.post("/v1/ingest", &json!({"name": "during"})).await;
            figures.ingest.push(began.elapsed());
            if reply.status != 201 {
                figures.server_errors.push(format!("ingest {} {}", reply.status, reply.text()));
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    figures.list.sort_unstable();
    figures.ingest.sort_unstable();
    figures
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default()
}

impl Figures {
    /// Fails if a request was rejected. The latencies are figures of the printed report only.
    #[track_caller]
    pub fn assert_served(&self) {
        assert!(self.server_errors.is_empty(), "{:?}", self.server_errors);
        assert!(self.list.len() > 10, "only {} lists were served", self.list.len());
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p50, p99) = (percentile(&self.list, 50), percentile(&self.list, 99));
        write!(f, "{} lists, p50 {p50:.1?}, p99 {p99:.1?}", self.list.len())?;
        if !self.ingest.is_empty() {
            let (p50, p99) = (percentile(&self.ingest, 50), percentile(&self.ingest, 99));
            write!(f, "; {} ingests, p50 {p50:.1?}, p99 {p99:.1?}", self.ingest.len())?;
        }
        write!(f, "; {} refused", self.server_errors.len())
    }
}
