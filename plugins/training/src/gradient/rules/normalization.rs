//! Normalizations, and what works on channels.

use tenon_plugin_api::prelude::*;

use crate::gradient::step::{Grad, Grads, Step, one};

/// `y (g - sum(g y))`.
pub(super) fn softmax(s: &mut Step<'_>) -> Grads {
    let axis = s.axis(-1, s.rank(s.arg(0))?);
    let product = s.mul(s.grad(), s.value);
    let sum = s.reduce("sum", product, &[axis], true);
    let rest = s.sub(s.grad(), sum);
    one(s.mul(s.value, rest))
}

/// `g - exp(y) sum(g)`.
pub(super) fn log_softmax(s: &mut Step<'_>) -> Grads {
    let axis = s.axis(-1, s.rank(s.arg(0))?);
    let sum = s.reduce("sum", s.grad(), &[axis], true);
    let softmax = s.op("exp", &[s.value]);
    let product = s.mul(softmax, sum);
    one(s.sub(s.grad(), product))
}

/// The axes that are not those of the channels, and a vector of channels with axes behind it.
fn channels(s: &mut Step<'_>) -> Result<(Vec<i64>, Vec<i64>)> {
    let rank = s.rank(s.arg(0))?;
    let axis = s.axis(1, rank);
    Ok(((0..rank).filter(|&other| other != axis).collect(), (1..rank - axis).collect()))
}

fn expanded(s: &mut Step<'_>, x: Expr, behind: &[i64]) -> Expr {
    match behind.is_empty() {
        true => x,
        false => s.rw.apply_with("expand_dims", &[x], &[("axis", behind.into())]),
    }
}

/// `g`, and its sum over all but the channels.
pub(super) fn bias_add(s: &mut Step<'_>) -> Grads {
    let (others, _) = channels(s)?;
    let bias = s.reduce("sum", s.grad(), &others, false);
    Ok(vec![Grad::Of(s.grad()), Grad::Of(bias)])
}

/// With `r = rsqrt(var + epsilon)` and sums over all but the channels: to x `g gamma r`, to gamma
/// `sum(g (x - mean)) r`, to beta `sum(g)`, to the mean `-sum(g) gamma r`, to the variance
/// `-sum(g (x - mean)) gamma r^3 / 2`.
pub(super) fn batch_norm(s: &mut Step<'_>) -> Grads {
    let (others, behind) = channels(s)?;
    let [x, gamma, _, mean, variance] = [0, 1, 2, 3, 4].map(|index| s.arg(index));
    let g = s.grad();
    let epsilon = s.attrs().float("epsilon").unwrap_or(1e-5);
    let spread = s.plus(variance, epsilon);
    let r = s.op("rsqrt", &[spread]);
    let scale = s.mul(gamma, r);
    let scale_of_x = expanded(s, scale, &behind);
    let mean = expanded(s, mean, &behind);
    let centered = s.sub(x, mean);
    let product = s.mul(g, centered);
    let moment = s.reduce("sum", product, &others, false);
    let total = s.reduce("sum", g, &others, false);

    let grad_x = s.mul(g, scale_of_x);
    let grad_gamma = s.mul(moment, r);
    let shift = s.mul(total, scale);
    let grad_mean = s.op("negative", &[shift]);
    let square = s.mul(r, r);
    let slope = s.mul(scale, square);
    let product = s.mul(moment, slope);
    let grad_variance = s.scale(product, -0.5);
    Ok([grad_x, grad_gamma, total, grad_mean, grad_variance].map(Grad::Of).into())
}

/// With `t = bias + alpha / size sum of squares of the near channels`: `g t^-beta - 2 alpha beta / size x times
/// the sum of g x t^(-beta - 1) over the channels that x is near to`.
pub(super) fn lrn(s: &mut Step<'_>) -> Grads {
    let attrs = s.attrs();
    if attrs.str("layout").is_some_and(|layout| layout != "NCHW") {
        return Err(PassError::new("its layout is other than NCHW"));
    }
    let size = attrs.int("size").unwrap_or(1);
    let float = |name, default| attrs.float(name).unwrap_or(default);
    let (alpha, beta, bias) = (float("alpha", 1e-4), float("beta", 0.75), float("bias", 1.0));
    let (x, g) = (s.arg(0), s.grad());
    let (before, after) = ((size - 1) / 2, size / 2);
    let squares = s.mul(x, x);
    let near = channel_sums(s, squares, before, after)?;
    let near = s.scale(near, alpha / size as f64);
    let t = s.plus(near, bias);
    let exponent = s.number(x, -beta);
    let factor = s.op("power", &[t, exponent]);
    let direct = s.mul(g, factor);
    let slope = s.div(factor, t);
    let product = s.mul(g, x);
    let product = s.mul(product, slope);
    let sums = channel_sums(s, product, after, before)?;
    let cross = s.mul(x, sums);
    let cross = s.scale(cross, 2.0 * alpha * beta / size as f64);
    one(s.sub(direct, cross))
}

/// For each channel, the sum of those from `before` before it to `after` behind it.
fn channel_sums(s: &mut Step<'_>, x: Expr, before: i64, after: i64) -> Result<Expr> {
    let channels = s.extents(x)?[1];
    let padded = s.pad(x, &[[0, 0], [before, after], [0, 0], [0, 0]]);
    let mut sum = s.rw.slice(padded, 1, 0, channels);
    for shift in 1..=before + after {
        let part = s.rw.slice(padded, 1, shift, shift + channels);
        sum = s.add(sum, part);
    }
    Ok(sum)
}
