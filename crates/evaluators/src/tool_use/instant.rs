//! Points in time in ISO 8601 notation, compared as far as their zones are known.

/// A point in time: seconds since 1970 with nanoseconds. Local times have no zone and equal only local times.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Instant {
    At(i64, u32),
    Local(i64, u32),
}

/// Parses `2026-11-22T10:00:00.5+01:00` and its shorter forms: no fraction, no seconds, a space for the `T`,
/// no zone, a zone without its colon. Returns none for other texts, including dates without a time.
pub(super) fn read(text: &str) -> Option<Instant> {
    let bytes = text.as_bytes();
    if bytes.len() < 16 || !text.is_ascii() || !matches!(bytes[10], b'T' | b't' | b' ') {
        return None;
    }
    let (date, rest) = (&text[..10], &text[11..]);
    let days = days(date)?;
    let zone = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone);
    let (clock, fraction) = match clock.split_once(['.', ',']) {
        Some((clock, fraction)) => (clock, nanoseconds(fraction)?),
        None => (clock, 0),
    };
    let mut parts = clock.split(':');
    let hours = number(parts.next()?, 2, 23)?;
    let minutes = number(parts.next()?, 2, 59)?;
    let seconds = match parts.next() {
        Some(seconds) => number(seconds, 2, 60)?,
        None if fraction == 0 => 0,
        None => return None,
    };
    if parts.next().is_some() {
        return None;
    }
    let local = days * 86_400 + hours * 3_600 + minutes * 60 + seconds;
    match zone {
        "" => Some(Instant::Local(local, fraction)),
        zone => Some(Instant::At(local - offset(zone)?, fraction)),
    }
}

fn number(text: &str, digits: usize, most: i64) -> Option<i64> {
    if text.len() != digits || !text.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|it| *it <= most)
}

fn nanoseconds(fraction: &str) -> Option<u32> {
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    format!("{fraction:0<9}").parse().ok()
}

fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some(parts) => parts,
        None if rest.len() == 4 => rest.split_at(2),
        None => (rest, "00"),
    };
    Some(sign * (number(hours, 2, 23)? * 3_600 + number(minutes, 2, 59)? * 60))
}

/// Returns the days since 1970 of a date in the Gregorian calendar.
fn days(date: &str) -> Option<i64> {
    let mut parts = date.split('-');
    let (year, month, day) =
        (number(parts.next()?, 4, 9_999)?, number(parts.next()?, 2, 12)?, number(parts.next()?, 2, 31)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => 31,
    };
    if parts.next().is_some() || month == 0 || day == 0 || day > longest {
        return None;
    }
    // Years are counted from March, so that the leap day is the last day of a year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let in_years = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(in_years + (153 * month + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_one_instant_are_equal() {
        let expected = Some(Instant::At(1_795_341_600, 0));
        for text in [
            "2026-11-22T10:00:00Z",
            "2026-11-22t10:00:00.000z",
            "2026-11-22 10:00+00:00",
            "2026-11-22T11:00:00+01:00",
            "2026-11-22T04:30:00-0530",
            "2026-11-22T12:00:00+02",
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        assert_eq!(read("2026-11-22T10:00"), Some(Instant::Local(1_795_341_600, 0)));
        assert_ne!(read("2026-11-22T10:00:00.5Z"), expected);
        assert_eq!(read("1970-01-01T00:00:00Z"), Some(Instant::At(0, 0)));
        assert_eq!(read("2000-02-29T00:00:00Z"), Some(Instant::At(951_782_400, 0)));
    }

    #[test]
    fn other_texts_are_not_instants() {
        for text in [
            "",
            "2026-11-22",
            "tomorrow at 10:00:00",
            "2026-13-22T10:00:00Z",
            "2026-02-30T10:00:00Z",
            "2026-11-22T25:00:00Z",
            "2026-11-22T10:00:00Zulu",
            "2026-11-22T10:00:00.Z",
            "22.11.2026 10:00:00",
            "2026-11-22T10",
            "2026-11-22Tü:00:00Z",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
