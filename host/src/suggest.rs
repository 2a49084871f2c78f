//! "Did you mean": the names nearest to one that does not exist.

/// The name in `names` nearest to `wanted`, if it is near enough to be a slip of the finger. The case of
/// letters is no difference; of names that are equally near the shortest counts, then the first.
pub(crate) fn nearest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = (wanted.chars().count() / 3).max(1);
    let wanted = wanted.to_lowercase();
    names
        .filter_map(|name| Some((distance(&wanted, &name.to_lowercase(), limit)?, name)))
        .min_by_key(|&(distance, name)| (distance, name.len()))
        .map(|(_, name)| name)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words, when `limit` of
/// them suffice.
fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut row = above.clone();
    for i in 0..a.len() {
        row[0] = i + 1;
        for j in 0..b.len() {
            let replaced = above[j] + (a[i] != b[j]) as usize;
            row[j + 1] = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before.copy_from_slice(&above);
        above.copy_from_slice(&row);
    }
    Some(above[b.len()]).filter(|&distance| distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let names = ["parallel", "vectorized", "unrolled", "thread"];
        assert_eq!(nearest("paralel", names.into_iter()), Some("parallel"));
        assert_eq!(nearest("vectorised", names.into_iter()), Some("vectorized"));
        assert_eq!(nearest("htread", names.into_iter()), Some("thread"));
        assert_eq!(nearest("THREAD", names.into_iter()), Some("thread"));
        assert_eq!(nearest("blocked", names.into_iter()), None);
    }
}
