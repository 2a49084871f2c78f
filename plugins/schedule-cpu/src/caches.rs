//! How fast what lies in caches comes to a core.

use tenon_schedule::Machine;

/// Bytes that a core reads in a cycle from its second cache, its third, and memory.
const BYTES_PER_CYCLE: [f64; 3] = [32.0, 12.0, 5.0];

/// Bytes that come in a cycle of what is so large and read again and again.
pub(crate) fn bandwidth(machine: &Machine, bytes: f64) -> f64 {
    let [_, second, third] = machine.caches;
    let level = [second, third].iter().position(|&cache| bytes <= 0.75 * cache as f64);
    BYTES_PER_CYCLE[level.unwrap_or(2)]
}

/// Bytes after which addresses fall into the same sets of the nearest cache: those of a page, in all processors that look a line up
/// while they translate its address.
pub(crate) const SAME_SET: i64 = 4096;

/// How many places within [`SAME_SET`] lines begin at that lie so many bytes apart.
pub(crate) fn places(bytes: i64) -> i64 {
    SAME_SET / gcd(bytes.saturating_abs(), SAME_SET)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}
