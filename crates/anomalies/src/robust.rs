//! Statistics that a few extreme values do not change.

/// Returns the median, and reorders the values. `None` if there are none.
pub(crate) fn median(values: &mut [f32]) -> Option<f32> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    let is_odd = values.len() % 2 == 1;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f32::total_cmp);
    let upper = *upper;
    if is_odd {
        return Some(upper);
    }
    let lower = below.iter().copied().max_by(f32::total_cmp).unwrap_or(upper);
    Some(f32::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn median_of_even_count_is_the_midpoint() {
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 100.0]), Some(3.5));
        assert_eq!(median(&mut [2.0, 9.0, -5.0]), Some(2.0));
        assert_eq!(median(&mut []), None);
    }
}
