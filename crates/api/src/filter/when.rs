//! Parses times and durations: `-15m`, `yesterday`, `2026-11-21`, `250ms`.

use chrono::{DateTime, Days, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};

use crate::Timestamp;

/// The current time and the user's time zone.
pub struct Clock {
    now: DateTime<FixedOffset>,
    local: Box<dyn Fn(NaiveDateTime) -> Option<DateTime<Utc>>>,
}

impl Clock {
    /// Creates a clock from a time and its zone.
    pub fn of<Tz: TimeZone + 'static>(now: &DateTime<Tz>) -> Self {
        let zone = now.timezone();
        // When clocks are set back, an hour occurs twice; `earliest` selects the first.
        let local = move |naive: NaiveDateTime| Some(zone.from_local_datetime(&naive).earliest()?.to_utc());
        Self { now: now.fixed_offset(), local: Box::new(local) }
    }

    fn midnight(&self, date: NaiveDate) -> Result<Timestamp, String> {
        self.local_time(date.and_time(NaiveTime::MIN))
    }

    fn local_time(&self, naive: NaiveDateTime) -> Result<Timestamp, String> {
        // When clocks are set forward, an hour does not exist; the next one is used.
        let found = (self.local)(naive).or_else(|| (self.local)(naive + TimeDelta::hours(1)));
        found.map(Timestamp::from).ok_or_else(|| format!("{naive} does not exist in this time zone"))
    }
}

/// Parses a time: RFC 3339 (seconds optional), a date or date and time in the local zone, `now`,
/// `today`, `yesterday`, or an age such as `-15m`.
pub fn instant(text: &str, clock: &Clock) -> Result<Timestamp, String> {
    let today = clock.now.date_naive();
    match text {
        "now" => return Ok(clock.now.to_utc().into()),
        "today" => return clock.midnight(today),
        "yesterday" => return clock.midnight(today.checked_sub_days(Days::new(1)).unwrap_or(today)),
        _ => {}
    }
    if let Some(age) = text.strip_prefix('-') {
        let millis = i64::try_from(duration_ms(age)?).map_err(|_| format!("`{text}` is too long ago"))?;
        let then = TimeDelta::try_milliseconds(millis).and_then(|age| clock.now.checked_sub_signed(age));
        return then.map(|then| then.to_utc().into()).ok_or_else(|| format!("`{text}` is too long ago"));
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    if let Ok(date) = text.parse::<NaiveDate>() {
        return clock.midnight(date);
    }
    for form in ["%Y-%m-%dT%H:%M%#z", "%Y-%m-%dT%H:%M:%S%.f%#z"] {
        if let Ok(time) = DateTime::parse_from_str(text, form) {
            return Ok(time.to_utc().into());
        }
    }
    for form in ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f"] {
        if let Ok(naive) = NaiveDateTime::parse_from_str(text, form) {
            return clock.local_time(naive);
        }
    }
    Err(format!("`{text}` is not a time"))
}

/// Parses a duration in milliseconds: a number with the unit `ms`, `s`, `m`, `h`, `d` or `w`. Fractions
/// are rounded to the nearest millisecond.
pub fn duration_ms(text: &str) -> Result<u64, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let factor: u32 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 604_800_000,
        "" if text == "0" => 1,
        "" if !number.is_empty() => return Err(format!("`{text}` needs a unit: {text}ms or {text}s")),
        _ => return Err(format!("`{text}` is not a duration such as 250ms, 2s, 15m or 1h")),
    };
    let not_a_number = || format!("`{text}` is not a duration such as 250ms, 2s, 15m or 1h");
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor.into()).ok_or_else(|| format!("`{text}` is too long"));
    }
    let number: f64 = number.parse().map_err(|_| not_a_number())?;
    Ok((number * f64::from(factor)).round() as u64)
}
