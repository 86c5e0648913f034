//! The sample failures of a cluster.

/// The first failure of a cluster and the latest ones.
///
/// The first failure shows when the problem began, and is never replaced. The newest of the others are kept,
/// because retention removes their traces last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples<T> {
    list: Vec<T>,
}

impl<T: PartialEq> Samples<T> {
    /// Maximum number of samples of a cluster.
    pub const MAX: usize = 8;

    /// Creates the samples from a stored list: the first failure, then the latest ones, oldest first.
    pub fn new(mut stored: Vec<T>) -> Self {
        let excess = stored.len().saturating_sub(Self::MAX);
        stored.drain(stored.len().min(1)..stored.len().min(1) + excess);
        Self { list: stored }
    }

    /// Adds the newest failure. Returns whether the list changed: a sample that is already in it is not added again.
    pub fn add(&mut self, sample: T) -> bool {
        if self.list.contains(&sample) {
            return false;
        }
        if self.list.len() >= Self::MAX {
            self.list.remove(1);
        }
        self.list.push(sample);
        true
    }

    /// Returns the first failure, then the latest ones, oldest first.
    pub fn list(&self) -> &[T] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_keep_the_first_and_the_latest() {
        let mut samples = Samples::new(Vec::new());
        for it in 0..20 {
            assert!(samples.add(it));
        }
        assert_eq!(samples.list(), [0, 13, 14, 15, 16, 17, 18, 19]);
        assert!(!samples.add(0), "a sample that is kept is not added again");
    }

    #[test]
    fn stored_samples_that_are_too_many_are_cut() {
        assert_eq!(Samples::new((0..10).collect::<Vec<_>>()).list(), [0, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(Samples::new(Vec::<u8>::new()).list(), [] as [u8; 0]);
    }
}
