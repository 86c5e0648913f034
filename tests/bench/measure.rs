//! Processor time and memory of processes, as reported by Linux.

use std::fs;

/// Ticks per second of the kernel's counters.
const TICKS_PER_SECOND: f64 = 100.0;

/// The processes whose processor time is measured.
#[derive(Debug)]
pub struct Processor {
    server: u32,
    postgres: Option<u32>,
}

impl Processor {
    /// Measures the server and, if given, a PostgreSQL server with its processes.
    pub fn of(server: u32, postgres: Option<u32>) -> Self {
        Self { server, postgres }
    }

    /// Returns the user and system time so far in seconds, including PostgreSQL processes that have ended.
    pub fn seconds(&self) -> f64 {
        let postgres: f64 = self.postgres.iter().map(|it| tree(*it)).sum();
        stat(self.server).map_or(0.0, |it| it.own) + postgres
    }

    /// Returns the resident memory of the server in MiB.
    pub fn resident_mib(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server)).unwrap_or_default();
        let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
        let kib = line.and_then(|it| it.split_whitespace().next()?.parse::<f64>().ok());
        kib.unwrap_or(0.0) / 1024.0
    }
}

/// Returns the number of bytes that a process has written to files and sockets. With SQLite, nearly all of them go to the
/// write-ahead log and the database.
pub fn bytes_written(process: u32) -> f64 {
    let counters = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
    let line = counters.lines().find_map(|it| it.strip_prefix("wchar:"));
    line.and_then(|it| it.trim().parse().ok()).unwrap_or(0.0)
}

/// Returns the median.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

struct Stat {
    parent: u32,
    own: f64,
    ended_children: f64,
}

fn tree(root: u32) -> f64 {
    let Some(first) = stat(root) else { return 0.0 };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let children = processes.filter_map(|it| stat(it.file_name().to_str()?.parse().ok()?));
    first.own + first.ended_children + children.filter(|it| it.parent == root).map(|it| it.own).sum::<f64>()
}

/// Reads a process's counters; `None` when the process has ended.
fn stat(id: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may contain any character; only numbers follow it.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let seconds = |at: usize| Some(fields.get(at)?.parse::<f64>().ok()? / TICKS_PER_SECOND);
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        own: seconds(11)? + seconds(12)?,
        ended_children: seconds(13)? + seconds(14)?,
    })
}
