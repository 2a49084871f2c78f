//! "Did you mean": the names nearest to one that does not exist.

/// Longer names are near to none: they come from no keyboard, and comparing two of them takes their product.
const LONGEST: usize = 128;

/// The name in `names` nearest to `wanted`, if it is near enough to be a slip of the finger. The case of
/// letters is no difference; of names that are equally near the shortest counts, then the first.
pub fn nearest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = slips(wanted);
    let wanted = lower(wanted);
    names
        .filter_map(|name| Some((distance(&wanted, &lower(name), limit)?, name)))
        .min_by_key(|&(distance, name)| (distance, name.len()))
        .map(|(_, name)| name)
}

/// Up to `count` names that are near enough, the nearest first. What stands behind the last dot may be near alone.
pub fn several_nearest<'n>(
    wanted: &str,
    names: impl Iterator<Item = &'n str>,
    count: usize,
) -> Vec<&'n str> {
    let last = |name: &str| lower(name.rsplit('.').next().unwrap_or(name));
    let (limit, wanted, part) = (slips(wanted), lower(wanted), last(wanted));
    let near = |name: &str| {
        let of_part = distance(&part, &last(name), part.len() / 3);
        distance(&wanted, &lower(name), limit).into_iter().chain(of_part).min()
    };
    let mut ranked: Vec<(usize, &str)> =
        names.filter_map(|name| Some((near(name)?, name))).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(count).map(|(_, name)| name).collect()
}

/// How many slips a name of this length may have.
fn slips(wanted: &str) -> usize {
    (wanted.chars().count() / 3).max(1)
}

fn lower(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).take(LONGEST + 1).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours between two words, when `limit` of
/// them suffice.
fn distance(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit || a.len().max(b.len()) > LONGEST {
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
    use super::{nearest, several_nearest};

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let names = ["parallel", "vectorized", "unrolled", "thread"];
        assert_eq!(nearest("paralel", names.into_iter()), Some("parallel"));
        assert_eq!(nearest("vectorised", names.into_iter()), Some("vectorized"));
        assert_eq!(nearest("htread", names.into_iter()), Some("thread"));
        assert_eq!(nearest("THREAD", names.into_iter()), Some("thread"));
        assert_eq!(nearest("blocked", names.into_iter()), None);
    }

    #[test]
    fn several_are_in_the_order_of_their_nearness() {
        let names = ["my.ramp", "my.ramp6", "my.pramp", "exp"];
        let near = |name, count| several_nearest(name, names.into_iter(), count);
        assert_eq!(near("ramp", 3), ["my.ramp", "my.pramp", "my.ramp6"]);
        assert_eq!(near("my.rmap", 1), ["my.ramp"]);
        assert_eq!(near("conv", 3), [""; 0]);
    }

    #[test]
    fn long_names_cost_nothing() {
        let long = "x".repeat(1 << 20);
        assert_eq!(nearest(&long, [long.as_str(), "x"].into_iter()), None);
    }
}
