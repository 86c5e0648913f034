//! Metrics of the process, as reported by the system. Without `/proc` they are omitted.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};

/// Number of units per second in which Linux reports processor time.
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads the system's values when the metrics are served.
#[derive(Debug)]
pub struct ProcessCollector {
    start_seconds: f64,
}

impl ProcessCollector {
    /// Creates the collector of a process that started at `now` (microseconds).
    #[expect(clippy::cast_precision_loss, reason = "a time in seconds, exact to well below one")]
    pub fn started_at(now: i64) -> Self {
        Self { start_seconds: now as f64 / 1e6 }
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        // These names are standard for programs monitored with Prometheus.
        let start = ConstGauge::new(self.start_seconds);
        write(&mut encoder, "process_start_time_seconds", "Start of the process, since 1970", &start)?;
        if let Some(bytes) = resident_bytes() {
            let text = "Resident memory of the process";
            write(&mut encoder, "process_resident_memory_bytes", text, &ConstGauge::new(bytes))?;
        }
        if let Some(seconds) = processor_seconds() {
            let text = "Processor time used";
            write(&mut encoder, "process_cpu_seconds", text, &ConstCounter::new(seconds))?;
        }
        if let Some(n) = open_files() {
            write(&mut encoder, "process_open_fds", "Open file descriptors", &ConstGauge::new(n))?;
        }
        if let Some(n) = max_open_files() {
            write(&mut encoder, "process_max_fds", "Limit of open file descriptors", &ConstGauge::new(n))?;
        }
        Ok(())
    }
}

/// Returns the maximum number of open files and sockets; `None` when the system does not limit or
/// report them.
pub fn max_open_files() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|it| it.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn write(
    encoder: &mut DescriptorEncoder,
    name: &str,
    text: &str,
    metric: &impl EncodeMetric,
) -> Result<(), fmt::Error> {
    metric.encode(encoder.encode_descriptor(name, text, None, metric.metric_type())?)
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in brackets may contain anything; fields 14 and 15 are counted after it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((f64::from(user) + f64::from(system)) / TICKS_PER_SECOND)
}

fn open_files() -> Option<u64> {
    // The directory handle itself is included.
    Some(u64::try_from(std::fs::read_dir("/proc/self/fd").ok()?.count()).ok()?.saturating_sub(1))
}
