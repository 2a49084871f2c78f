//! Operators on elements of several tensors that are broadcast against each other.

use super::number::Number;
use super::parallel::fill;
use super::space::Space;
use super::{Result, with_bits, with_number};
use crate::eval::{Element, Tensor};
use crate::ir::DType;
use crate::ops::{EvalCx, OpError};

/// Sets a row of results from two rows of elements.
type Row<T, U> = fn(&[T], &[T], &mut [U]);

/// Elements that are brought together for a row at once where they do not lie so.
const BLOCK: usize = 256;

/// Elements of two tensors put through a function, row by row.
fn zip<T: Element + Default, U: Element + Default>(
    cx: &EvalCx<'_>,
    f: Row<T, U>,
) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let (a, b) = (cx.arg(0)?, cx.arg(1)?);
    let space = Space::broadcast(shape, [a.shape(), b.shape()]);
    let (a, b) = (a.elements::<T>(), b.elements::<T>());
    let mut out = vec![U::default(); shape.iter().product()];
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

#[inline]
fn each<T: Copy, U>(a: &[T], b: &[T], out: &mut [U], f: impl Fn(T, T) -> U) {
    out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (&x, &y))| *out = f(x, y));
}

macro_rules! arithmetic {
    ($($name:ident)*) => {$(
        pub(crate) fn $name(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
            with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
                each(a, b, out, <T as Number>::$name)
            }))
        }
    )*};
}

macro_rules! comparisons {
    ($($name:ident = $op:tt;)*) => {$(
        pub(crate) fn $name(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
            with_number!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [u8]| {
                each(a, b, out, |x, y| (x $op y) as u8)
            }))
        }
    )*};
}

arithmetic!(add sub mul larger smaller pow);

comparisons! {
    equal = ==;
    not_equal = !=;
    less = <;
    less_equal = <=;
    greater = >;
    greater_equal = >=;
}

pub(crate) fn div(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let dtype = cx.arg(0)?.dtype();
    with_number!(dtype, T => {
        let divisor = cx.arg(1)?.elements::<T>();
        if !T::IS_FLOAT && divisor.contains(&T::default()) {
            return Err(OpError::Value("an integer is divided by zero".into()));
        }
        zip(cx, |a: &[T], b: &[T], out: &mut [T]| each(a, b, out, <T as Number>::div))
    })
}

pub(crate) fn logical_and(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    zip(cx, |a: &[u8], b: &[u8], out: &mut [u8]| each(a, b, out, |x, y| (x != 0 && y != 0) as u8))
}

pub(crate) fn logical_or(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    zip(cx, |a: &[u8], b: &[u8], out: &mut [u8]| each(a, b, out, |x, y| (x != 0 || y != 0) as u8))
}

pub(crate) fn choose(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let (cond, a, b) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let space = Space::broadcast(shape, [cond.shape(), a.shape(), b.shape()]);
    let (row, steps) = space.row();
    let rows_at_once = space.rows_at_once();
    let cond = cond.elements::<u8>();
    with_bits!(dtype, T => {
        let (a, b) = (a.elements::<T>(), b.elements::<T>());
        let mut out = vec![T::default(); shape.iter().product()];
        fill(&mut out, row * rows_at_once, &|chunk, out| {
            let rows = space.rows(chunk * rows_at_once);
            for (out, offsets) in out.chunks_exact_mut(row).zip(rows) {
                for (i, out) in out.iter_mut().enumerate() {
                    let at = |k: usize| (offsets[k] + i as isize * steps[k]) as usize;
                    *out = if cond[at(0)] != 0 { a[at(1)] } else { b[at(2)] };
                }
            }
        });
        Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
    })
}
