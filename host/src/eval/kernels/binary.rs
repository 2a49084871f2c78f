//! Operators on elements of several tensors that are broadcast against each other.

use rayon::prelude::*;

use super::number::Number;
use super::space::Space;
use super::{Result, with_bits, with_number};
use crate::eval::{Element, Tensor};
use crate::ir::DType;
use crate::ops::{EvalCx, OpError};

/// Elements of two tensors put through a function.
fn zip<T: Element, U: Element + Default>(
    cx: &EvalCx<'_>,
    f: impl Fn(T, T) -> U + Sync,
) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let (a, b) = (cx.arg(0)?, cx.arg(1)?);
    let space = Space::broadcast(shape, [a.shape(), b.shape()]);
    let (a, b) = (a.elements::<T>(), b.elements::<T>());
    let mut out = vec![U::default(); shape.iter().product()];
    let (row, steps) = space.row();
    let rows_at_once = space.rows_at_once();
    out.par_chunks_mut((row * rows_at_once).max(1)).enumerate().for_each(|(chunk, out)| {
        let rows = space.rows(chunk * rows_at_once);
        for (out, [x, y]) in out.chunks_exact_mut(row).zip(rows) {
            let (x, y) = (x as usize, y as usize);
            match steps {
                [1, 1] => {
                    let pairs = a[x..x + row].iter().zip(&b[y..y + row]);
                    out.iter_mut().zip(pairs).for_each(|(out, (&x, &y))| *out = f(x, y));
                }
                [1, 0] => {
                    let y = b[y];
                    out.iter_mut().zip(&a[x..x + row]).for_each(|(out, &x)| *out = f(x, y));
                }
                [0, 1] => {
                    let x = a[x];
                    out.iter_mut().zip(&b[y..y + row]).for_each(|(out, &y)| *out = f(x, y));
                }
                [p, q] => {
                    for (i, out) in out.iter_mut().enumerate() {
                        *out = f(a[x + i * p as usize], b[y + i * q as usize]);
                    }
                }
            }
        }
    });
    Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
}

macro_rules! arithmetic {
    ($($name:ident)*) => {$(
        pub(crate) fn $name(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
            with_number!(cx.arg(0)?.dtype(), T => zip(cx, <T as Number>::$name))
        }
    )*};
}

macro_rules! comparisons {
    ($($name:ident = $op:tt;)*) => {$(
        pub(crate) fn $name(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
            with_number!(cx.arg(0)?.dtype(), T => zip(cx, |x: T, y: T| (x $op y) as u8))
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
        zip(cx, <T as Number>::div)
    })
}

pub(crate) fn logical_and(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    zip(cx, |x: u8, y: u8| (x != 0 && y != 0) as u8)
}

pub(crate) fn logical_or(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    zip(cx, |x: u8, y: u8| (x != 0 || y != 0) as u8)
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
        out.par_chunks_mut((row * rows_at_once).max(1)).enumerate().for_each(|(chunk, out)| {
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
