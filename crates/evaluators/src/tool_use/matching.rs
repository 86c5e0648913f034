//! Matching of expected items with actual items.

/// Returns a maximum matching: for each expected item the index of its actual item. `fits[e][d]`: whether
/// they may be paired.
pub(crate) fn in_any_order(fits: &[Vec<bool>], done: usize) -> Vec<Option<usize>> {
    let mut taken: Vec<Option<usize>> = vec![None; done];
    for expected in 0..fits.len() {
        let mut seen = vec![false; done];
        paired(expected, fits, &mut seen, &mut taken);
    }
    let mut pairs = vec![None; fits.len()];
    for (done, expected) in taken.into_iter().enumerate() {
        if let Some(expected) = expected {
            pairs[expected] = Some(done);
        }
    }
    pairs
}

/// Finds a partner, and reassigns earlier pairs if necessary.
fn paired(expected: usize, fits: &[Vec<bool>], seen: &mut [bool], taken: &mut [Option<usize>]) -> bool {
    for done in 0..taken.len() {
        if !fits[expected][done] || std::mem::replace(&mut seen[done], true) {
            continue;
        }
        if taken[done].is_none_or(|other| paired(other, fits, seen, taken)) {
            taken[done] = Some(expected);
            return true;
        }
    }
    false
}

/// Returns a maximum matching whose pairs do not cross.
pub(crate) fn in_order(fits: &[Vec<bool>], done: usize) -> Vec<Option<usize>> {
    // `best[e][d]` is the number of pairs among the expected items from e and the actual items from d.
    let mut best = vec![vec![0_usize; done + 1]; fits.len() + 1];
    for e in (0..fits.len()).rev() {
        for d in (0..done).rev() {
            let with = if fits[e][d] { best[e + 1][d + 1] + 1 } else { 0 };
            best[e][d] = with.max(best[e + 1][d]).max(best[e][d + 1]);
        }
    }
    let mut pairs = vec![None; fits.len()];
    let (mut e, mut d) = (0, 0);
    while e < fits.len() && d < done {
        if fits[e][d] && best[e][d] == best[e + 1][d + 1] + 1 {
            pairs[e] = Some(d);
            (e, d) = (e + 1, d + 1);
        } else if best[e][d] == best[e + 1][d] {
            e += 1;
        } else {
            d += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maximum_number_of_calls_is_paired() {
        // The first expected item fits both actual items, the second only the first of them.
        assert_eq!(in_any_order(&[vec![true, true], vec![true, false]], 2), [Some(1), Some(0)]);
        assert_eq!(in_any_order(&[vec![false], vec![true]], 1), [None, Some(0)]);
        assert_eq!(in_any_order(&[], 3), [None; 0]);
    }

    #[test]
    fn pairs_do_not_cross_where_the_order_counts() {
        assert_eq!(in_order(&[vec![false, true], vec![true, false]], 2).iter().flatten().count(), 1);
        assert_eq!(in_order(&[vec![true, false, false], vec![false, false, true]], 3), [Some(0), Some(2)]);
    }
}
