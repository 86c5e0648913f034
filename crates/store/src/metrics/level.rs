//! The levels of the roll-up tree: the lengths of its periods.

/// Length of a node's period on each level in microseconds: a day (UTC), an hour, a minute, a second, a
/// millisecond, a microsecond. There is no level below, because traces of the same microsecond cannot be
/// divided.
const PERIOD_MICROS: [i64; 6] = [86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1_000, 1];

/// A level of the roll-up tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(u8);

impl Level {
    /// Days.
    pub const DAY: Self = Self(0);
    /// Hours.
    pub const HOUR: Self = Self(1);
    /// Minutes.
    pub const MINUTE: Self = Self(2);

    /// Returns all levels, the longest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).take(PERIOD_MICROS.len()).map(Self)
    }

    /// Returns the stored form.
    pub fn stored(self) -> i16 {
        i16::from(self.0)
    }

    /// Converts from the stored form.
    pub fn of(stored: i16) -> Option<Self> {
        u8::try_from(stored).ok().filter(|it| usize::from(*it) < PERIOD_MICROS.len()).map(Self)
    }

    /// Returns the next lower level.
    pub fn next(self) -> Option<Self> {
        Self::of(self.stored() + 1)
    }

    /// Returns the length in microseconds.
    pub fn length(self) -> i64 {
        PERIOD_MICROS[usize::from(self.0)]
    }

    /// Returns the start of the period that contains a time.
    pub fn start(self, at: i64) -> i64 {
        at.saturating_sub(at.rem_euclid(self.length()))
    }

    /// Returns the last microsecond of the period that begins at `start`.
    pub fn last(self, start: i64) -> i64 {
        start.saturating_add(self.length() - 1)
    }
}
