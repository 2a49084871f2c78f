//! Normalizations.

use super::number::Number;
use super::parallel::fill;
use super::shape::{parse, permute, relayout, wrap_axis};
use super::{Result, with_float, with_number};
use crate::eval::Tensor;
use crate::ir::DType;
use crate::ops::EvalCx;

pub(crate) fn batch_norm(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let epsilon = cx.attrs.float("epsilon")?;
    let axis = wrap_axis(cx.attrs.int("axis")?, shape.len());
    let inner: usize = shape[axis + 1..].iter().product();
    with_float!(dtype, T => {
        let param = |index| -> Result<Vec<f64>> {
            Ok(cx.arg(index)?.elements::<T>().iter().map(|x| x.to_f64()).collect())
        };
        let (gamma, beta) = (param(1)?, param(2)?);
        let (mean, var) = (param(3)?, param(4)?);
        let x = cx.arg(0)?.elements::<T>();
        let mut out = vec![T::default(); x.len()];
        fill(&mut out, inner, &|row, out| {
            let channel = row % gamma.len();
            let scale = gamma[channel] / (var[channel] + epsilon).sqrt();
            for (out, x) in out.iter_mut().zip(&x[row * inner..]) {
                *out = T::from_f64((x.to_f64() - mean[channel]) * scale + beta[channel]);
            }
        });
        Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
    })
}

pub(crate) fn bias_add(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let axis = wrap_axis(cx.attrs.int("axis")?, shape.len());
    let inner: usize = shape[axis + 1..].iter().product();
    with_number!(dtype, T => {
        let (x, bias) = (cx.arg(0)?.elements::<T>(), cx.arg(1)?.elements::<T>());
        let mut out = vec![T::default(); x.len()];
        fill(&mut out, inner, &|row, out| {
            let bias = bias[row % bias.len()];
            out.iter_mut().zip(&x[row * inner..]).for_each(|(out, &x)| *out = x.add(bias));
        });
        Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
    })
}

pub(crate) fn lrn(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let size = cx.attrs.int("size")? as usize;
    let (alpha, beta) = (cx.attrs.float("alpha")?, cx.attrs.float("beta")?);
    let bias = cx.attrs.float("bias")?;
    let layout = parse(cx.attrs.str("layout")?)?;
    let channels_last = parse("NHWC")?;
    let data = relayout(cx.arg(0)?, &layout, &channels_last)?;
    let channels = data.shape()[3];
    with_float!(data.dtype(), T => {
        let x = data.elements::<T>();
        let mut out = vec![T::default(); x.len()];
        fill(&mut out, channels, &|row, out| {
            let x = &x[row * channels..][..channels];
            for (channel, out) in out.iter_mut().enumerate() {
                let first = channel.saturating_sub((size - 1) / 2);
                let end = (channel + size / 2 + 1).min(channels);
                let squares: f64 = x[first..end].iter().map(|x| x.to_f64() * x.to_f64()).sum();
                let norm = (bias + alpha / size as f64 * squares).powf(beta);
                *out = T::from_f64(x[channel].to_f64() / norm);
            }
        });
        let out = Tensor::from_vec_as(data.dtype(), data.shape().to_vec(), out);
        Ok(vec![relayout(&out, &channels_last, &layout)?])
    })
}

pub(crate) fn softmax(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    along_axis(cx, |row| {
        let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|x| *x = (*x - max).exp());
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= sum);
    })
}

pub(crate) fn log_softmax(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    along_axis(cx, |row| {
        let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|x| (x - max).exp()).sum();
        row.iter_mut().for_each(|x| *x -= max + sum.ln());
    })
}

/// Puts each row along the axis of the attribute through a function.
fn along_axis(cx: &EvalCx<'_>, f: fn(&mut [f64])) -> Result<Vec<Tensor>> {
    let tensor = cx.arg(0)?;
    let rank = tensor.shape().len();
    let axis = wrap_axis(cx.attrs.int("axis")?, rank);
    // Swapping the axis with the last one is its own inverse.
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(axis, rank - 1);
    let moved = permute(tensor, &order)?;
    let length = tensor.shape()[axis];
    with_float!(tensor.dtype(), T => {
        let x = moved.elements::<T>();
        let mut out = vec![T::default(); x.len()];
        fill(&mut out, length, &|number, out| {
            let mut row: Vec<f64> =
                x[number * length..][..length].iter().map(|x| x.to_f64()).collect();
            f(&mut row);
            out.iter_mut().zip(row).for_each(|(out, x)| *out = T::from_f64(x));
        });
        let out = Tensor::from_vec_as(tensor.dtype(), moved.shape().to_vec(), out);
        Ok(vec![permute(&out, &order)?])
    })
}
