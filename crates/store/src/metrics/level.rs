//! The levels of the tree: how long the stretches of time are.

/// Length of a node's stretch on each level in microseconds: a day (UTC), an hour, a minute, a
/// second, a millisecond, a microsecond. Traces of one microsecond are told apart by nothing, so
/// there is no level below.
const LENGTHS: [i64; 6] = [86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1_000, 1];

/// One level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(u8);

impl Level {
    /// Days.
    pub const DAY: Self = Self(0);
    /// Hours.
    pub const HOUR: Self = Self(1);
    /// Minutes.
    pub const MINUTE: Self = Self(2);

    /// All of them, the longest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).take(LENGTHS.len()).map(Self)
    }

    /// As it is stored.
    pub fn stored(self) -> i16 {
        i16::from(self.0)
    }

    /// From what is stored.
    pub fn of(stored: i16) -> Option<Self> {
        u8::try_from(stored).ok().filter(|it| usize::from(*it) < LENGTHS.len()).map(Self)
    }

    /// The one below.
    pub fn next(self) -> Option<Self> {
        Self::of(self.stored() + 1)
    }

    /// Microseconds.
    pub fn length(self) -> i64 {
        LENGTHS[usize::from(self.0)]
    }

    /// The start of the stretch that a time belongs to.
    pub fn start(self, at: i64) -> i64 {
        at.saturating_sub(at.rem_euclid(self.length()))
    }

    /// The last microsecond of the stretch that begins at `start`.
    pub fn last(self, start: i64) -> i64 {
        start.saturating_add(self.length() - 1)
    }
}
