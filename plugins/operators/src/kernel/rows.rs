//! Elements of two tensors that are broadcast against each other.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::op::zeros;

use super::parallel::fill;
use super::space::Space;

/// Sets a row of results from two rows of elements.
pub(crate) type Row<T, U> = fn(&[T], &[T], &mut [U]);

/// Elements that are brought together for a row at once where they do not lie so.
const BLOCK: usize = 256;

/// Elements of two tensors put through a function, row by row.
pub(crate) fn zip<T: Element + Default, U: Element + Default>(
    cx: &EvalCx<'_>,
    f: Row<T, U>,
) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let (a, b) = (cx.arg(0)?, cx.arg(1)?);
    let space = Space::broadcast(shape, [a.shape(), b.shape()]);
    let (a, b) = (a.elements::<T>(), b.elements::<T>());
    let mut out = zeros::<U>(shape.iter().product());
    let (row, [step_a, step_b]) = space.row();
    let rows_at_once = space.rows_at_once();
    fill(&mut out, row * rows_at_once, &|chunk, out| {
        let rows = space.rows(chunk * rows_at_once);
        let (mut block_a, mut block_b) = ([T::default(); BLOCK], [T::default(); BLOCK]);
        for (out, [x, y]) in out.chunks_exact_mut(row).zip(rows) {
            for (number, out) in out.chunks_mut(BLOCK).enumerate() {
                let at = (number * BLOCK) as isize;
                let x = part(&a, x + at * step_a, step_a, &mut block_a[..out.len()]);
                let y = part(&b, y + at * step_b, step_b, &mut block_b[..out.len()]);
                f(x, y, out);
            }
        }
    });
    Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
}

/// The elements from `start` on, `step` apart: as they lie when they are neighbours, otherwise copied.
#[inline]
fn part<'a, T: Copy>(elements: &'a [T], start: isize, step: isize, block: &'a mut [T]) -> &'a [T] {
    let start = start as usize;
    match step {
        1 => return &elements[start..start + block.len()],
        0 => block.fill(elements[start]),
        _ => {
            let elements = elements[start..].iter().step_by(step as usize);
            block.iter_mut().zip(elements).for_each(|(to, &x)| *to = x);
        }
    }
    block
}

/// A row of results, each of two elements.
#[inline]
pub(crate) fn each<T: Copy, U>(a: &[T], b: &[T], out: &mut [U], f: impl Fn(T, T) -> U) {
    out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (&x, &y))| *out = f(x, y));
}
