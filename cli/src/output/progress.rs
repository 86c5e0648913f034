//! Progress of long operations on stderr: a line that is redrawn on a terminal, a line now and then in a log.

use std::{
    io::{self, Write},
    sync::OnceLock,
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use present::{Glyphs, format};

/// An operation that ends within this time shows no progress.
const MIN_DURATION: Duration = Duration::from_millis(500);
/// Interval between two frames of the animation.
const FRAME_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of drawings per second.
const MAX_DRAW_RATE: u8 = 10;
/// Interval between two lines in a log.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The progress bars on the terminal; set by the first bar.
static PROGRESS_BARS: OnceLock<MultiProgress> = OnceLock::new();

/// Writes other text to the terminal, between two drawings of the bars.
pub fn suspended<T>(write: impl FnOnce() -> T) -> T {
    match PROGRESS_BARS.get() {
        Some(bars) => bars.suspend(write),
        None => write(),
    }
}

/// The destination of progress reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressTarget {
    /// On a terminal, in one line that is redrawn.
    Terminal,
    /// In a log, as a line now and then.
    Log,
    /// Nowhere.
    Nowhere,
}

/// Counts the completed items and shows the progress. Dropping the value removes its line from the terminal.
pub struct Progress {
    unit: &'static str,
    target: ProgressTarget,
    glyphs: Glyphs,
    start: Instant,
    logged: Instant,
    bar: Option<ProgressBar>,
    count: usize,
    bytes: usize,
}

impl Progress {
    /// Begins to count items of a unit, such as "traces".
    pub fn new(unit: &'static str, target: ProgressTarget, glyphs: Glyphs) -> Self {
        let now = Instant::now();
        Self { unit, target, glyphs, start: now, logged: now, bar: None, count: 0, bytes: 0 }
    }

    /// Counts items and their bytes, and reports the totals.
    pub fn add(&mut self, count: usize, bytes: usize) {
        self.count += count;
        self.bytes += bytes;
        let (unit, count, bytes) = (self.unit, self.count, self.bytes);
        self.report(None, |elapsed| totals(unit, count, bytes, elapsed));
    }

    /// Runs an operation whose progress is unknown, and reports a sentence meanwhile.
    pub async fn during<T>(
        &mut self,
        sentence: impl Fn(Duration) -> String,
        operation: impl Future<Output = T>,
    ) -> T {
        let mut operation = std::pin::pin!(operation);
        loop {
            match tokio::time::timeout(FRAME_INTERVAL, operation.as_mut()).await {
                Ok(result) => return result,
                Err(_) => self.report(None, &sentence),
            }
        }
    }

    /// Reports a sentence, which gets the time since the beginning. With the number of finished items and of all
    /// items, a terminal shows a bar.
    pub fn report(&mut self, done: Option<(u64, u64)>, sentence: impl FnOnce(Duration) -> String) {
        let elapsed = self.start.elapsed();
        match self.target {
            ProgressTarget::Terminal if elapsed >= MIN_DURATION => {
                let (glyphs, has_length) = (self.glyphs, done.is_some());
                let bar = self.bar.get_or_insert_with(|| new_bar(&glyphs, has_length));
                if let Some((done, all)) = done {
                    bar.set_length(all);
                    bar.set_position(done);
                }
                bar.set_message(sentence(elapsed));
            }
            ProgressTarget::Log if self.logged.elapsed() >= LOG_INTERVAL => {
                self.logged = Instant::now();
                // A failure to write to stderr cannot be reported.
                _ = writeln!(io::stderr(), "{}", sentence(elapsed));
            }
            ProgressTarget::Terminal | ProgressTarget::Log | ProgressTarget::Nowhere => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            if let Some(bars) = PROGRESS_BARS.get() {
                bars.remove(bar);
            }
        }
    }
}

fn new_bar(glyphs: &Glyphs, has_length: bool) -> ProgressBar {
    let template = if has_length { "{bar:20} {wide_msg}" } else { "{spinner} {wide_msg}" };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    let (frames, cells) =
        if glyphs.ascii { ("|/-\\ ", "#-") } else { ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ", "█░") };
    let bars = PROGRESS_BARS
        .get_or_init(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(MAX_DRAW_RATE)));
    let bar = bars.add(ProgressBar::no_length());
    bar.set_style(style.tick_chars(frames).progress_chars(cells));
    // The animation goes on while the server is silent.
    bar.enable_steady_tick(FRAME_INTERVAL);
    bar
}

fn totals(unit: &str, count: usize, bytes: usize, elapsed: Duration) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    let rate = mebibytes / elapsed.as_secs_f64().max(0.001);
    let count = format::count(count);
    format!("{count} {unit}, {mebibytes:.1} MiB, {rate:.1} MiB/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_totals_show_count_size_and_rate() {
        let text = totals("lines", 12_345, 10 << 20, Duration::from_secs(5));
        assert_eq!(text, "12,345 lines, 10.0 MiB, 2.0 MiB/s");
    }

    #[test]
    fn short_operations_draw_nothing() {
        let mut progress = Progress::new("lines", ProgressTarget::Terminal, Glyphs::UNICODE);
        progress.add(1, 1);
        assert!(progress.bar.is_none());
        progress.start -= MIN_DURATION;
        progress.report(Some((1, 4)), |_| "1 of 4".to_owned());
        let bar = progress.bar.as_ref().unwrap();
        assert_eq!((bar.position(), bar.length(), bar.message().as_str()), (1, Some(4), "1 of 4"));
    }
}
