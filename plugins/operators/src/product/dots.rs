//! Dot products of rows with rows.

use tenon_plugin_api::op::number::Sum;
use tenon_plugin_api::op::prelude::*;

use crate::kernel::parallel::fill;

/// Elements of the result that one thread computes at once.
const BLOCK: usize = 32;

/// Dot products of `row` with `N` neighbouring rows.
fn dots<T: Number, const N: usize>(row: &[T], others: [&[T]; N]) -> [T::Sum; N] {
    let mut sums = [[T::Sum::default(); 4]; N];
    let depth = row.len();
    let whole = depth / 4 * 4;
    for k in (0..whole).step_by(4) {
        for lane in 0..4 {
            let x = row[k + lane].widen();
            for n in 0..N {
                sums[n][lane] = sums[n][lane].add(x.mul(others[n][k + lane].widen()));
            }
        }
    }
    std::array::from_fn(|n| {
        let rest = (whole..depth)
            .fold(T::Sum::default(), |sum, k| sum.add(row[k].widen().mul(others[n][k].widen())));
        sums[n].into_iter().fold(rest, T::Sum::add)
    })
}

/// `out[m, n] = dot(a[m], b[n])`, for each pair of matrices; `starts` has where the matrices begin.
pub(crate) fn multiply<T: Number>(
    a: &[T],
    b: &[T],
    [m, n, depth]: [usize; 3],
    starts: &[[isize; 2]],
) -> Vec<T> {
    let mut out = vec![T::default(); starts.len() * m * n];
    let each = |row: usize, out: &mut [T], first: usize| {
        let [a_start, b_start] = starts[row / m].map(|start| start as usize);
        let x = &a[a_start + row % m * depth..][..depth];
        let y = |n: usize| &b[b_start + (first + n) * depth..][..depth];
        let mut done = 0;
        while done + 4 <= out.len() {
            let sums = dots(x, [y(done), y(done + 1), y(done + 2), y(done + 3)]);
            (0..4).for_each(|n| out[done + n] = T::narrow(sums[n]));
            done += 4;
        }
        for (n, out) in out.iter_mut().enumerate().skip(done) {
            *out = T::narrow(dots(x, [y(n)])[0]);
        }
    };
    if n > 0 {
        fill(&mut out, n, &|row, out| {
            fill(out, BLOCK, &|block, out| each(row, out, block * BLOCK));
        });
    }
    out
}
