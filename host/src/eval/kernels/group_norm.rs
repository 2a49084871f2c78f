//! Normalizations by the statistics of the tensor itself.

use super::number::Number;
use super::parallel::fill;
use super::shape::permute;
use super::{Result, with_float};
use crate::eval::Tensor;
use crate::ir::DType;
use crate::ops::{EvalCx, Groups};

/// `nn.layer_norm`, `nn.group_norm` and `nn.instance_norm`.
pub(crate) fn standardize(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let epsilon = cx.attrs.float("epsilon")?;
    let [gamma, beta] = [numbers(cx.arg(1)?)?, numbers(cx.arg(2)?)?];
    by_group(cx, |group, params| {
        let count = group.len() as f64;
        let mean = group.iter().sum::<f64>() / count;
        let variance = group.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
        let deviation = (variance + epsilon).sqrt();
        for (x, param) in group.iter_mut().zip(params) {
            *x = (*x - mean) / deviation * gamma[param] + beta[param];
        }
    })
}

/// `nn.l2_normalize`.
pub(crate) fn l2_normalize(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let epsilon = cx.attrs.float("epsilon")?;
    by_group(cx, |group, _| {
        let length = group.iter().map(|x| x * x).sum::<f64>().max(epsilon).sqrt();
        group.iter_mut().for_each(|x| *x /= length);
    })
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    with_float!(tensor.dtype(), T => {
        Ok(tensor.elements::<T>().iter().map(|x| x.to_f64()).collect())
    })
}

/// Puts each group of the first argument through a function, with the number in scale and shift of each element.
fn by_group(
    cx: &EvalCx<'_>,
    f: impl Fn(&mut [f64], &mut dyn Iterator<Item = usize>) + Sync,
) -> Result<Vec<Tensor>> {
    let tensor = cx.arg(0)?;
    let extents: Vec<i64> = tensor.shape().iter().map(|&extent| extent as i64).collect();
    let groups = Groups::of(cx.op, cx.attrs, &extents)?;
    let shape: Vec<usize> = groups.shape.iter().map(|&extent| extent as usize).collect();
    let (outer, inner) = (groups.axes(false), groups.axes(true));
    let order: Vec<usize> = outer.iter().chain(&inner).copied().collect();
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &axis)| back[axis] = place);

    // How far one step along each axis leads in scale and shift.
    let mut steps = vec![0; shape.len()];
    let mut step = 1;
    for &axis in groups.params.iter().rev() {
        steps[axis] = step;
        step *= shape[axis];
    }
    let place = |number: usize, axes: &[usize]| {
        let mut rest = number;
        axes.iter().rev().fold(0, |place, &axis| {
            let index = rest % shape[axis];
            rest /= shape[axis];
            place + index * steps[axis]
        })
    };
    let length: usize = inner.iter().map(|&axis| shape[axis]).product();
    let places: Vec<usize> = (0..length).map(|number| place(number, &inner)).collect();

    let moved = permute(&tensor.reshaped(shape.clone()), &order)?;
    with_float!(tensor.dtype(), T => {
        let x = moved.elements::<T>();
        let mut out = vec![T::default(); x.len()];
        fill(&mut out, length, &|number, out| {
            let mut group: Vec<f64> =
                x[number * length..][..length].iter().map(|x| x.to_f64()).collect();
            let first = place(number, &outer);
            f(&mut group, &mut places.iter().map(|place| first + place));
            out.iter_mut().zip(group).for_each(|(out, x)| *out = T::from_f64(x));
        });
        let out = Tensor::from_vec_as(tensor.dtype(), moved.shape().to_vec(), out);
        Ok(vec![permute(&out, &back)?.reshaped(tensor.shape().to_vec())])
    })
}
