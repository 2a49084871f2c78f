//! Lengths of what windows hold.

use tenon_plugin_api::rule::prelude::*;

use super::pool::{by_pairs, windows};
use super::steps::{cast_to, reshape_to, wide};
use crate::movement::pad::with_around;

/// `LpPool`: the p-th root of the sum of the p-th powers in each window, whose padding counts as zeros.
#[rule(import.onnx, key = "LpPool", since = 2)]
fn lp_pool(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dtype = node.dtype(x)?;
    let (mut dims, mut window, around) = windows(node, x)?;
    if node.flag("ceil_mode", false)? {
        // What the last window reaches over the end for are zeros too.
        for (axis, &dim) in dims[2..].iter().enumerate() {
            let Some(extent) = node.terms().dim_value(dim) else {
                return unsupported("ceil_mode over a symbolic dimension");
            };
            let (stride, before) = (window.strides[axis], window.pads[0][axis]);
            let room = extent + before + window.pads[1][axis] - window.reach(axis);
            let last = (room + stride - 1).div_euclid(stride);
            // A window that begins behind the data is left out.
            let last = last.min((extent + before - 1).div_euclid(stride));
            let needed = last * stride + window.reach(axis);
            window.pads[1][axis] = (needed - extent - before).max(0);
        }
    }
    let p = node.int_or("p", 2)?;
    let mut powers = powers(node, x, p)?;
    for (axis, around) in around {
        powers = with_around(node, powers, 2 + axis, around, 0.0)?;
        dims[2 + axis] = around[1];
    }
    let sums = by_pairs(node, powers, &dims, &window, &mut |node, x, pair| {
        let dims = node.dims(x)?;
        let &[batch, channels, height, width] = dims.as_slice() else {
            return invalid("images are expected");
        };
        let one = node.cx().dim(1);
        let images = node.cx().dim_mul(batch, channels);
        let image = reshape_to(node, x, &[images, one, height, width])?;
        let dtype = node.dtype(x)?;
        let taps = pair.kernel.map(|extent| node.cx().dim(extent));
        let shape = node.shape(&[one, one, taps[0], taps[1]])?;
        let attrs = [("value", 1.0.into()), ("dtype", dtype.to_string().into())];
        let ones = node.call("full", &[shape], &attrs)?;
        let sums = node.call("nn.conv2d", &[image, ones], &pair.attrs())?;
        let found = node.dims(sums)?;
        reshape_to(node, sums, &[batch, channels, found[2], found[3]])
    })?;
    Ok(vec![root(node, sums, p, dtype)?])
}

/// `GlobalLpPool`: the p-th root of the sum of the p-th powers of each channel.
#[rule(import.onnx, key = "GlobalLpPool", since = 2)]
fn global_lp_pool(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dtype = node.dtype(x)?;
    let axes: Vec<i64> = (2..node.dims(x)?.len() as i64).collect();
    if axes.is_empty() {
        return invalid("its data have no spatial axes");
    }
    let p = node.int_or("p", 2)?;
    let powers = powers(node, x, p)?;
    let attrs = [("axis", axes.into()), ("keepdims", true.into())];
    let sums = node.call("sum", &[powers], &attrs)?;
    Ok(vec![root(node, sums, p, dtype)?])
}

/// The p-th powers of absolute values.
fn powers(node: &mut Node<'_>, x: Value, p: i64) -> Result<Value, Problem> {
    if p < 1 {
        return invalid(format!("its attribute `p` is {p}"));
    }
    let dtype = node.dtype(x)?;
    let x = cast_to(node, x, wide(dtype))?;
    match p {
        1 => node.apply("abs", &[x]),
        2 => node.apply("multiply", &[x, x]),
        _ => {
            let (x, p) = (node.apply("abs", &[x])?, node.scalar_like(x, p as f64)?);
            node.apply("power", &[x, p])
        }
    }
}

fn root(node: &mut Node<'_>, sums: Value, p: i64, dtype: DType) -> Result<Value, Problem> {
    let root = match p {
        1 => sums,
        2 => node.apply("sqrt", &[sums])?,
        _ => {
            let exponent = node.scalar_like(sums, 1.0 / p as f64)?;
            node.apply("power", &[sums, exponent])?
        }
    };
    cast_to(node, root, dtype)
}
