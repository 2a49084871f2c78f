//! Copies by strides: transpositions, layouts, slices and broadcasts are all of this form.

use super::parallel::{GRAIN, fill};
use super::space::{Rows, Space, row_major};
use tenon_plugin_api::op::{Element, zeros};
use zerocopy::{IntoBytes, Unalign};

/// How many rows are copied together, so that lines of the source are used while they are near.
const ROWS: usize = 16;
/// How many elements of a row are copied before the next row of the group has its turn.
const TILE: usize = 16;

/// A row-major copy of the elements of `source` that start at `first` and have these strides. They may lie anywhere in memory, as
/// those of a file do that is mapped.
pub(crate) fn copy<T: Element + Default>(
    source: &[Unalign<T>],
    first: usize,
    shape: &[usize],
    strides: Vec<isize>,
) -> Vec<T> {
    let count: usize = shape.iter().product();
    let mut out = zeros(count);
    if count == 0 {
        return out;
    }
    let space = Space::new(shape, [strides]);
    let (row, [step]) = space.row();
    match step {
        1 => copy_rows(source, first, &space, &mut out),
        _ if space.dims.len() == 1 => {
            let at = |index: usize| source[(first as isize + index as isize * step) as usize].get();
            fill(&mut out, GRAIN, &|chunk, out| {
                let start = chunk * GRAIN;
                out.iter_mut().enumerate().for_each(|(i, out)| *out = at(start + i));
            });
        }
        0 => fill(&mut out, row * space.rows_at_once(), &|chunk, out| {
            let rows = space.rows(chunk * space.rows_at_once());
            for (out, [offset]) in out.chunks_exact_mut(row).zip(rows) {
                out.fill(source[(first as isize + offset) as usize].get());
            }
        }),
        _ => copy_tiles(source, first, &space, &mut out),
    }
    out
}

/// Copies where the innermost axis is contiguous.
fn copy_rows<T: Element>(source: &[Unalign<T>], first: usize, space: &Space<1>, out: &mut [T]) {
    let (row, _) = space.row();
    fill(out, row * space.rows_at_once(), &|chunk, out| {
        let rows = space.rows(chunk * space.rows_at_once());
        for (out, [offset]) in out.chunks_exact_mut(row).zip(rows) {
            let start = (first as isize + offset) as usize;
            out.as_mut_bytes().copy_from_slice(source[start..start + row].as_bytes());
        }
    });
}

/// Copies where some other axis is contiguous in the source.
fn copy_tiles<T: Element>(source: &[Unalign<T>], first: usize, space: &Space<1>, out: &mut [T]) {
    let last = space.dims.len() - 1;
    let contiguous = space.strides[..last].iter().position(|&[stride]| stride == 1).unwrap_or(0);
    let parts: usize = space.dims[..contiguous].iter().product();
    match parts >= 64 {
        true => copy_blocks(source, first, space, contiguous, out),
        false => copy_bands(source, first, space, contiguous + 1, out),
    }
}

/// The result is cut before axis `cut`, whose forerunner is contiguous in the source: neighbouring parts
/// come from neighbouring elements, and `ROWS` of them are filled together.
fn copy_bands<T: Element>(
    source: &[Unalign<T>],
    first: usize,
    space: &Space<1>,
    cut: usize,
    out: &mut [T],
) {
    let last = space.dims.len() - 1;
    let part: usize = space.dims[cut..].iter().product();
    let (row, [step]) = space.row();
    fill(out, part * ROWS, &|chunk, out| {
        let starts: Vec<isize> = Rows::new(&space.dims[..cut], &space.strides, chunk * ROWS)
            .take(out.len() / part)
            .map(|[offset]| first as isize + offset)
            .collect();
        let rows = Rows::new(&space.dims[cut..last], &space.strides[cut..last], 0);
        for (index, [offset]) in rows.take(part / row).enumerate() {
            for tile in (0..row).step_by(TILE) {
                let end = (tile + TILE).min(row);
                for (number, start) in starts.iter().enumerate() {
                    let out = &mut out[number * part + index * row..][tile..end];
                    gather(source, start + offset + tile as isize * step, step, out);
                }
            }
        }
    });
}

/// The result is cut before axis `contiguous`, so that it and the last axis, which are tiled, lie inside
/// of each part; the axes between are walked through.
fn copy_blocks<T: Element>(
    source: &[Unalign<T>],
    first: usize,
    space: &Space<1>,
    contiguous: usize,
    out: &mut [T],
) {
    let last = space.dims.len() - 1;
    let own = row_major(&space.dims);
    let part: usize = space.dims[contiguous..].iter().product();
    let (row, [step]) = space.row();
    let walk_dims = &space.dims[contiguous + 1..last];
    let walk_strides: Vec<[isize; 2]> =
        (contiguous + 1..last).map(|axis| [space.strides[axis][0], own[axis]]).collect();
    let count: usize = walk_dims.iter().product();
    let line = own[contiguous] as usize;
    let group = (GRAIN / part).max(1);
    fill(out, part * group, &|chunk, out| {
        let starts = Rows::new(&space.dims[..contiguous], &space.strides, chunk * group);
        for (out, [start]) in out.chunks_exact_mut(part).zip(starts) {
            let start = first as isize + start;
            for [from, to] in Rows::new(walk_dims, &walk_strides, 0).take(count) {
                for tile in (0..row).step_by(TILE) {
                    let end = (tile + TILE).min(row);
                    for index in 0..space.dims[contiguous] {
                        let out = &mut out[to as usize + index * line..][tile..end];
                        let from = start + from + index as isize + tile as isize * step;
                        gather(source, from, step, out);
                    }
                }
            }
        }
    });
}

#[inline]
fn gather<T: Copy>(source: &[Unalign<T>], mut from: isize, step: isize, out: &mut [T]) {
    for out in out {
        *out = source[from as usize].get();
        from += step;
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::FromBytes;

    use super::*;

    fn anywhere(source: &[u32]) -> &[Unalign<u32>] {
        <[Unalign<u32>]>::ref_from_bytes(source.as_bytes()).unwrap()
    }

    /// The copy, element by element.
    fn slow(source: &[u32], first: usize, shape: &[usize], strides: &[isize]) -> Vec<u32> {
        let steps: Vec<[isize; 1]> = strides.iter().map(|&stride| [stride]).collect();
        Rows::new(shape, &steps, 0)
            .take(shape.iter().product())
            .map(|[offset]| source[(first as isize + offset) as usize])
            .collect()
    }

    #[test]
    fn all_orders_of_axes_are_copied() {
        let orders = [
            [0, 1, 2, 3],
            [3, 2, 1, 0],
            [0, 2, 3, 1],
            [0, 3, 1, 2],
            [2, 3, 1, 0],
            [1, 0, 2, 3],
            [1, 0, 3, 2],
            [2, 0, 3, 1],
            [3, 0, 1, 2],
            [0, 1, 3, 2],
            [3, 1, 2, 0],
            [1, 3, 0, 2],
        ];
        for shape in [[2, 3, 4, 5], [70, 3, 2, 33], [1, 40, 17, 20], [3, 1, 1, 50]] {
            let source: Vec<u32> = (0..shape.iter().product::<usize>() as u32).collect();
            let strides = row_major(&shape);
            for order in orders {
                let shape = order.map(|axis| shape[axis]);
                let strides: Vec<isize> = order.iter().map(|&axis| strides[axis]).collect();
                let expected = slow(&source, 0, &shape, &strides);
                assert_eq!(
                    copy(anywhere(&source), 0, &shape, strides),
                    expected,
                    "{shape:?} {order:?}"
                );
            }
        }
    }

    #[test]
    fn steps_back_and_repetitions_are_copied() {
        let source: Vec<u32> = (0..100).collect();
        for (first, shape, strides) in [
            (99, vec![100], vec![-1]),
            (90, vec![10, 10], vec![-10, 1]),
            (9, vec![10, 5], vec![10, -2]),
            (0, vec![10, 7], vec![1, 0]),
            (3, vec![4, 1, 5, 2], vec![0, 7, 10, 1]),
        ] {
            let expected = slow(&source, first, &shape, &strides);
            assert_eq!(copy(anywhere(&source), first, &shape, strides), expected, "{shape:?}");
        }
    }
}
