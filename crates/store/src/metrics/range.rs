//! Divides a period into nodes.

use super::level::Level;

/// Nodes of one level by their starts, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Their level.
    pub level: Level,
    /// The first start, microseconds.
    pub from: i64,
    /// The last start, microseconds.
    pub to: i64,
    /// Whether to read only nodes that list their traces: others are divided into nodes of the next
    /// level, which are read too.
    pub leaves: bool,
}

/// Returns the ranges of nodes for the traces from `from` to `to`, both inclusive and in microseconds,
/// with totals of at most the level `widest`.
///
/// Nodes of that level are used where they are completely within the period; at the two ends, nodes of
/// the next level cover the rest, and so on.
pub fn ranges(from: i64, to: i64, widest: Level) -> Vec<Range> {
    let mut ranges = Vec::with_capacity(12);
    for level in Level::all() {
        let (first, last) = (level.start(from), level.start(to));
        if level <= widest {
            ranges.push(Range { level, from: first, to: last, leaves: level < widest });
        }
        let Some(next) = level.next().filter(|_| level >= widest) else { continue };
        let cut_first = first < from;
        let cut_last = level.last(last) > to;
        let (below_first, below_last) = (next.start(from), next.start(to));
        let mut push = |from, to| ranges.push(Range { level: next, from, to, leaves: false });
        if first == last {
            if cut_first || cut_last {
                push(below_first, below_last);
            }
            continue;
        }
        if cut_first {
            push(below_first, next.start(level.last(first)));
        }
        if cut_last {
            push(last, below_last);
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use crate::metrics::range::*;

    const DAY: i64 = 86_400_000_000;
    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn whole_days_are_read_as_day_nodes() {
        let days = Range { level: Level::DAY, from: 2 * DAY, to: 4 * DAY, leaves: false };
        assert_eq!(ranges(2 * DAY, 5 * DAY - 1, Level::DAY), [days]);
    }

    #[test]
    fn ends_of_period_are_read_as_shorter_nodes() {
        let read = ranges(2 * DAY + 5 * HOUR, 4 * DAY + 3 * HOUR - 1, Level::DAY);
        let of = |level, from, to| Range { level, from, to, leaves: false };
        assert_eq!(
            read,
            [
                of(Level::DAY, 2 * DAY, 4 * DAY),
                of(Level::HOUR, 2 * DAY + 5 * HOUR, 2 * DAY + 23 * HOUR),
                of(Level::HOUR, 4 * DAY, 4 * DAY + 2 * HOUR),
            ]
        );
    }

    #[test]
    fn single_microsecond_reads_one_node_per_level() {
        let read = ranges(7, 7, Level::DAY);
        assert_eq!(read.len(), 6);
        assert!(read.iter().all(|it| it.from == it.to));
    }

    #[test]
    fn series_reads_longer_nodes_only_if_they_are_leaves() {
        let read = ranges(0, 10 * DAY - 1, Level::HOUR);
        assert_eq!(read.len(), 2);
        assert!(read[0].leaves && read[0].level == Level::DAY);
        assert!(!read[1].leaves && read[1].to == 10 * DAY - HOUR);
    }
}
