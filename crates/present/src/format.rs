//! Formats of times, durations, counts and money for tables.
//!
//! Each format states its maximum width, so that a column can be sized for it. An unknown value is the dash of the
//! glyph set.

use api::{Timestamp, metrics::Metric};
use chrono::{DateTime, Datelike, FixedOffset, Local, Offset, Utc};

/// The time zone in which times are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// The zone of this machine.
    Local,
    /// Coordinated universal time, for output that is the same on every machine.
    Utc,
}

impl Zone {
    /// Converts a time to the date and time in this zone.
    pub fn of(self, time: Timestamp) -> DateTime<FixedOffset> {
        let utc: DateTime<Utc> = time.to_chrono();
        match self {
            Self::Local => utc.with_timezone(&Local).fixed_offset(),
            Self::Utc => utc.with_timezone(&Utc.fix()),
        }
    }
}

/// Width in columns of the result of [`clock`] for a time of today.
pub const CLOCK_TODAY: usize = 8;
/// Width in columns of the result of [`clock`] for a time of another day.
pub const CLOCK_DATED: usize = 11;

/// Returns whether two times are on the same day of the zone.
pub fn same_day(zone: Zone, one: Timestamp, other: Timestamp) -> bool {
    zone.of(one).date_naive() == zone.of(other).date_naive()
}

/// Formats a time: `14:02:11` today, otherwise `11-20 14:02`.
pub fn clock(zone: Zone, time: Timestamp, now: Timestamp) -> String {
    let local = zone.of(time);
    if same_day(zone, time, now) {
        local.format("%H:%M:%S").to_string()
    } else {
        local.format("%m-%d %H:%M").to_string()
    }
}

/// Formats a time to the minute: `14:02` today, otherwise `11-20 14:02`.
pub fn clock_minute(zone: Zone, time: Timestamp, now: Timestamp) -> String {
    let form = if same_day(zone, time, now) { "%H:%M" } else { "%m-%d %H:%M" };
    zone.of(time).format(form).to_string()
}

/// Formats date and time to the millisecond, with the year unless it is the current one.
pub fn moment(zone: Zone, time: Timestamp, now: Timestamp) -> String {
    let local = zone.of(time);
    let form =
        if local.year() == zone.of(now).year() { "%m-%d %H:%M:%S%.3f" } else { "%Y-%m-%d %H:%M:%S%.3f" };
    local.format(form).to_string()
}

/// Formats milliseconds in at most seven columns: `96ms`, `1.84s`, `30.0s`, `12m05s`, `3h12m`, `5d04h`.
pub fn latency(ms: i64) -> String {
    let ms = ms.max(0);
    let (seconds, minutes, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..9_995 => format!("{:.2}s", ms as f64 / 1_000.0),
        9_995..99_950 => format!("{:.1}s", ms as f64 / 1_000.0),
        99_950..3_600_000 => format!("{}m{:02}s", minutes, seconds % 60),
        3_600_000..86_400_000 => format!("{}h{:02}m", hours, minutes % 60),
        _ => format!("{}d{:02}h", (hours / 24).min(9_999), hours % 24),
    }
}

/// Formats a count in at most six columns: `3,912`, `11,870`, `123k`, `4.5M`.
pub fn count(n: impl TryInto<i64>) -> String {
    let n = n.try_into().unwrap_or(i64::MAX);
    match n {
        ..0 => "0".to_owned(),
        0..100_000 => thousands(n),
        100_000..999_500 => format!("{}k", (n + 500) / 1_000),
        999_500..99_950_000 => format!("{:.1}M", n as f64 / 1e6),
        99_950_000..999_500_000 => format!("{}M", (n + 500_000) / 1_000_000),
        _ => format!("{:.0}G", (n as f64 / 1e9).min(9_999.0)),
    }
}

/// Formats a count in full, with commas between thousands.
pub fn thousands(n: impl TryInto<i64>) -> String {
    let n: i64 = n.try_into().unwrap_or(i64::MAX);
    let digits = n.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if n < 0 {
        text.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats US dollars in at most seven columns: `$0.0312`, `$12.34`, `$1,234`. A cost too small for four decimals is
/// `<$.0001`, because `$0.0000` would read as free.
pub fn money(usd: f64) -> String {
    if !usd.is_finite() {
        return "?".to_owned();
    }
    let size = usd.abs();
    let sign = if usd < 0.0 { "-" } else { "" };
    match size {
        _ if size == 0.0 => "$0.0000".to_owned(),
        _ if size < 0.00005 => "<$.0001".to_owned(),
        _ if size < 9.99995 => format!("{sign}${size:.4}"),
        _ if size < 999.995 => format!("{sign}${size:.2}"),
        _ if size < 99_999.5 => format!("{sign}${}", thousands(size.round() as i64)),
        _ => format!("{sign}${}", count(size.round() as i64)),
    }
}

/// Formats a metric of traces with its unit: `2.4 %`, `1.84s`, `$41.07`, `72,318`.
pub fn metric(metric: Metric, value: f64) -> String {
    match metric {
        Metric::ErrorRate | Metric::FeedbackGoodRate => format!("{:.1} %", value * 100.0),
        Metric::LatencyP50 | Metric::LatencyP95 | Metric::LatencyP99 => latency(value.round() as i64),
        Metric::TotalCost => money(value),
        Metric::TraceCount => thousands(value.round() as i64),
    }
}

/// Formats seconds as `00:42`, or as `1h02m` from one hour.
pub fn elapsed(seconds: impl TryInto<i64>) -> String {
    let seconds = seconds.try_into().unwrap_or(i64::MAX).max(0);
    if seconds < 3_600 {
        format!("{:02}:{:02}", seconds / 60, seconds % 60)
    } else {
        format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60)
    }
}

/// Returns a word with a capital first letter.
pub fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Returns the last eight characters of an ID, because IDs of the same hour share their beginning.
pub fn short_id(id: uuid::Uuid) -> String {
    let text = id.simple().to_string();
    text[24..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_fit_their_column() {
        for (ms, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_840, "1.84s"),
            (9_994, "9.99s"),
            (9_995, "10.0s"),
            (30_000, "30.0s"),
            (99_950, "1m39s"),
            (725_000, "12m05s"),
            (11_520_000, "3h12m"),
            (446_400_000, "5d04h"),
        ] {
            assert_eq!(latency(ms), text);
        }
        assert!(latency(i64::MAX).len() <= 8);
    }

    #[test]
    fn counts_and_money_fit_their_column() {
        for (n, text) in
            [(0, "0"), (3_912, "3,912"), (99_999, "99,999"), (123_456, "123k"), (1_000_000, "1.0M")]
        {
            assert_eq!(count(n), text);
        }
        assert_eq!((count(u64::MAX), thousands(1_234_usize)), ("9999G".to_owned(), "1,234".to_owned()));
        assert_eq!((thousands(-1_234), elapsed(-3)), ("-1,234".to_owned(), "00:00".to_owned()));
        for n in [i64::MAX, 999_499, 999_500, 99_950_000, 999_500_000] {
            assert!(count(n).len() <= 6, "{}", count(n));
        }
        for (usd, text) in [
            (0.0, "$0.0000"),
            (0.00001, "<$.0001"),
            (0.0312, "$0.0312"),
            (9.99996, "$10.00"),
            (1234.4, "$1,234"),
            (f64::NAN, "?"),
        ] {
            assert_eq!(money(usd), text);
            assert!(money(usd).len() <= 7);
        }
    }

    #[test]
    fn times_of_other_days_have_a_date() {
        let now = Timestamp::from_micros(1_795_269_731_000_000);
        let day = 86_400_000_000;
        assert_eq!(clock(Zone::Utc, now, now).len(), CLOCK_TODAY);
        assert_eq!(clock(Zone::Utc, Timestamp::from_micros(now.micros() - day), now).len(), CLOCK_DATED);
    }
}
