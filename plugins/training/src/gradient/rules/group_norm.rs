//! Normalizations by the tensor's own statistics.
//!
//! With `n = (x - mean) r` and `h = g gamma`: to x `r (h - mean(h) - n mean(h n))`, to gamma `sum(g n)`, to beta
//! `sum(g)`. The means are over a group, the sums over all that one number of gamma and beta is for.

use tenon_plugin_api::prelude::*;

use crate::gradient::step::{Grad, Grads, Step, one};

pub(super) fn layer_norm(s: &mut Step<'_>) -> Grads {
    let (_, dims) = s.tensor(s.arg(0))?;
    let axes = axes_or_last(s, "axes", dims.len() as i64);
    standardized(s, &dims, &axes, &axes)
}

pub(super) fn instance_norm(s: &mut Step<'_>) -> Grads {
    let (_, dims) = s.tensor(s.arg(0))?;
    let rank = dims.len() as i64;
    let channel = channel_axis(s, rank);
    let inner: Vec<i64> = (1..rank).filter(|&axis| axis != channel).collect();
    standardized(s, &dims, &inner, &[channel])
}

pub(super) fn group_norm(s: &mut Step<'_>) -> Grads {
    let (_, dims) = s.tensor(s.arg(0))?;
    let rank = dims.len() as i64;
    let channel = channel_axis(s, rank);
    let groups = s.attrs().int("num_groups").unwrap_or(1);
    let Some(channels) = s.rw.terms().dim_value(dims[channel as usize]) else {
        return Err(PassError::new("the number of channels is not known"));
    };
    let mut split = dims;
    split[channel as usize] = s.rw.cx().dim(groups);
    split.insert(channel as usize + 1, s.rw.cx().dim(channels / groups.max(1)));
    let inner: Vec<i64> = (1..=rank).filter(|&axis| axis != channel).collect();
    standardized(s, &split, &inner, &[channel, channel + 1])
}

/// With `r` one over the length: `r (g - y sum(g y))`, and `r g` where the length is the least there is.
pub(super) fn l2_normalize(s: &mut Step<'_>) -> Grads {
    let (x, g) = (s.arg(0), s.grad());
    let axes = axes_or_last(s, "axis", s.rank(x)?);
    let epsilon = s.attrs().float("epsilon").unwrap_or(1e-12);
    let square = s.mul(x, x);
    let sum = s.reduce("sum", square, &axes, true);
    let least = s.number(x, epsilon);
    let bounded = s.op("maximum", &[sum, least]);
    let r = s.op("rsqrt", &[bounded]);
    let product = s.mul(g, s.value);
    let along = s.reduce("sum", product, &axes, true);
    let along = s.masked("greater", sum, least, along);
    let along = s.mul(s.value, along);
    let across = s.sub(g, along);
    one(s.mul(across, r))
}

/// The gradients of data in the shape `split`, normalized over the axes `inner`; gamma and beta run over `params`.
fn standardized(s: &mut Step<'_>, split: &[Dim], inner: &[i64], params: &[i64]) -> Grads {
    let epsilon = s.attrs().float("epsilon").unwrap_or(1e-5);
    let one = s.rw.cx().dim(1);
    let spread: Vec<Dim> = (0..)
        .zip(split)
        .map(|(axis, &dim)| if params.contains(&axis) { dim } else { one })
        .collect();
    let x = s.rw.reshape(s.arg(0), split);
    let g = s.rw.reshape(s.grad(), split);
    let gamma = s.rw.reshape(s.arg(1), &spread);

    let mean = s.reduce("mean", x, inner, true);
    let centered = s.sub(x, mean);
    let square = s.mul(centered, centered);
    let variance = s.reduce("mean", square, inner, true);
    let variance = s.plus(variance, epsilon);
    let r = s.op("rsqrt", &[variance]);
    let normal = s.mul(centered, r);

    let h = s.mul(g, gamma);
    let shift = s.reduce("mean", h, inner, true);
    let product = s.mul(h, normal);
    let slope = s.reduce("mean", product, inner, true);
    let slope = s.mul(normal, slope);
    let rest = s.sub(h, shift);
    let rest = s.sub(rest, slope);
    let to_x = s.mul(rest, r);
    let to_x = s.reshape_like(to_x, s.arg(0));

    let others: Vec<i64> = (0..split.len() as i64).filter(|axis| !params.contains(axis)).collect();
    let product = s.mul(g, normal);
    let to_gamma = s.reduce("sum", product, &others, false);
    let to_gamma = s.reshape_like(to_gamma, s.arg(1));
    let to_beta = s.reduce("sum", g, &others, false);
    let to_beta = s.reshape_like(to_beta, s.arg(2));
    Ok([to_x, to_gamma, to_beta].map(Grad::Of).into())
}

/// The axes that an attribute names, none negative; the last one when it is not given.
fn axes_or_last(s: &Step<'_>, name: &str, rank: i64) -> Vec<i64> {
    match s.attrs().get(name) {
        Some(_) => s.axes(name, rank),
        None => vec![rank - 1],
    }
}

fn channel_axis(s: &Step<'_>, rank: i64) -> i64 {
    s.attrs().int("channel_axis").unwrap_or(1).rem_euclid(rank.max(1))
}
