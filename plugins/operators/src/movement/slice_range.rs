//! Which elements a slice has, as NumPy counts them.

/// The first index and the number of indices that a slice of an axis of `extent` has.
pub(super) fn slice_range(extent: i64, begin: i64, end: i64, stride: i64) -> (i64, i64) {
    let (low, high) = if stride > 0 { (0, extent) } else { (-1, extent - 1) };
    let clamp = |index: i64| {
        let index = if index < 0 { index.saturating_add(extent) } else { index };
        index.clamp(low, high.max(low))
    };
    let (begin, end) = (clamp(begin), clamp(end));
    let count = match stride > 0 {
        true => (end - begin + stride - 1).div_euclid(stride),
        false => (begin - end - stride - 1).div_euclid(stride.saturating_neg()),
    };
    (begin, count.max(0))
}

#[cfg(test)]
mod tests {
    use super::slice_range;

    #[test]
    fn slices_are_those_of_numpy() {
        assert_eq!(slice_range(10, 2, 8, 1), (2, 6));
        assert_eq!(slice_range(10, 2, 8, 4), (2, 2));
        assert_eq!(slice_range(10, -3, i64::MAX, 1), (7, 3));
        assert_eq!(slice_range(10, 20, 30, 1), (10, 0));
        assert_eq!(slice_range(10, -1, i64::MIN, -1), (9, 10));
        assert_eq!(slice_range(10, 9, 0, -3), (9, 3));
        assert_eq!(slice_range(0, 0, 5, 1), (0, 0));
        assert_eq!(slice_range(0, -1, i64::MIN, -1), (-1, 0));
        assert_eq!(slice_range(10, 5, 2, 1).1, 0);
    }
}
