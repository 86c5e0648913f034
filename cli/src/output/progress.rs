//! How far something long has come, on stderr.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use present::format;

/// What is done before this is over shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);
/// Between two looks of a line that is drawn anew.
const FRAME: Duration = Duration::from_millis(100);
/// Between two lines where nothing can be drawn anew.
const LINE: Duration = Duration::from_secs(10);

/// Where progress can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On a terminal: one line, drawn anew.
    Terminal,
    /// In a log: a line now and then.
    Log,
    /// Nowhere.
    Nowhere,
}

/// Counts, and tells now and then.
pub struct Progress {
    what: &'static str,
    place: Place,
    start: Instant,
    told: Instant,
    drawn: bool,
    /// Width of the visible line in columns.
    columns: usize,
    count: usize,
    bytes: usize,
}

impl Progress {
    /// Nothing done yet; `what` is counted.
    pub fn new(what: &'static str, place: Place) -> Self {
        let now = Instant::now();
        Self { what, place, start: now, told: now, drawn: false, columns: 0, count: 0, bytes: 0 }
    }

    /// So much more is done.
    pub fn add(&mut self, count: usize, bytes: usize) {
        self.count += count;
        self.bytes += bytes;
        let (what, count, bytes) = (self.what, self.count, self.bytes);
        self.tell(|elapsed| sentence(what, count, bytes, elapsed));
    }

    /// Says where things stand, if that is due; `sentence` gets the time since the beginning.
    pub fn tell(&mut self, sentence: impl FnOnce(Duration) -> String) {
        let due = match self.place {
            Place::Terminal if self.drawn => FRAME,
            Place::Terminal => PATIENCE,
            Place::Log => LINE,
            Place::Nowhere => return,
        };
        if self.told.elapsed() < due {
            return;
        }
        self.told = Instant::now();
        let text = sentence(self.start.elapsed());
        // Where stderr is closed there is nobody to tell.
        _ = match self.place {
            Place::Terminal => {
                // Spaces overwrite the rest of the last line, because any terminal supports them.
                let columns = present::text::width(&text);
                let rest = " ".repeat(self.columns.saturating_sub(columns));
                (self.drawn, self.columns) = (true, columns);
                write!(io::stderr(), "\r{text}{rest}")
            }
            _ => writeln!(io::stderr(), "{text}"),
        };
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn {
            _ = write!(io::stderr(), "\r{}\r", " ".repeat(self.columns));
        }
    }
}

fn sentence(what: &str, count: usize, bytes: usize, elapsed: Duration) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    let rate = mebibytes / elapsed.as_secs_f64().max(0.001);
    let count = format::count(i64::try_from(count).unwrap_or(i64::MAX));
    format!("{count} {what}, {mebibytes:.1} MiB, {rate:.1} MiB/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_count_size_and_rate() {
        let text = sentence("lines", 12_345, 10 << 20, Duration::from_secs(5));
        assert_eq!(text, "12,345 lines, 10.0 MiB, 2.0 MiB/s");
    }
}
