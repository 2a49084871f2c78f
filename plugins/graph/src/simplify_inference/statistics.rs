//! Normalizations by the tensor's own statistics, as arithmetic.
//!
//! Floats that are narrower than f32 are computed with in f32, as the operators do: a sum of squares is soon beyond
//! the range of f16.

use tenon_plugin_api::prelude::*;

/// The normalization `op` of `args` as arithmetic; `None` where that cannot be written down, since the rank or the
/// number of channels is not known, or for another operator.
pub(super) fn written_out(
    rw: &mut Rewriter,
    op: &str,
    args: &[Expr],
    attrs: Attrs,
) -> Option<Expr> {
    let (dtype, dims) = rw.tensor(*args.first()?)?;
    let rank = dims.len() as i64;
    let read = rw.terms().attrs(attrs);
    let epsilon = read.float("epsilon");
    let channel = read.int("channel_axis").unwrap_or(1).rem_euclid(rank.max(1));
    let groups = read.int("num_groups");
    let name = if op == "nn.layer_norm" { "axes" } else { "axis" };
    let axes = read.ints(name).or_else(|| read.int(name).map(|axis| vec![axis]));
    let axes = axes.unwrap_or_else(|| vec![-1]).into_iter();
    let axes: Vec<i64> = axes.map(|axis| axis.rem_euclid(rank.max(1))).collect();
    match (op, args) {
        ("nn.layer_norm", &[x, gamma, beta]) => {
            let x = wide(rw, x);
            let normal = standardized(rw, x, &axes, epsilon.unwrap_or(1e-5))?;
            Some(scaled(rw, normal, [gamma, beta], &dims, &axes, dtype))
        }
        ("nn.group_norm", &[x, gamma, beta]) => {
            let groups = groups?;
            let channels = rw.terms().dim_value(dims[channel as usize])?;
            let mut split = dims.clone();
            split[channel as usize] = rw.cx().dim(groups);
            split.insert(channel as usize + 1, rw.cx().dim(channels / groups.max(1)));
            let inner: Vec<i64> = (1..=rank).filter(|&axis| axis != channel).collect();
            let x = wide(rw, x);
            let grouped = rw.reshape(x, &split);
            let normal = standardized(rw, grouped, &inner, epsilon.unwrap_or(1e-5))?;
            let normal = rw.reshape(normal, &dims);
            Some(scaled(rw, normal, [gamma, beta], &dims, &[channel], dtype))
        }
        ("nn.instance_norm", &[x, gamma, beta]) => {
            let inner: Vec<i64> = (1..rank).filter(|&axis| axis != channel).collect();
            let x = wide(rw, x);
            let normal = standardized(rw, x, &inner, epsilon.unwrap_or(1e-5))?;
            Some(scaled(rw, normal, [gamma, beta], &dims, &[channel], dtype))
        }
        ("nn.l2_normalize", &[x]) => {
            let x = wide(rw, x);
            let square = rw.apply("multiply", &[x, x]);
            let sum = over(rw, "sum", square, &axes);
            let least = rw.number(rw.tensor(x)?.0, epsilon.unwrap_or(1e-12))?;
            let sum = rw.apply("maximum", &[sum, least]);
            let inverse = rw.apply("rsqrt", &[sum]);
            let result = rw.apply("multiply", &[x, inverse]);
            Some(narrow(rw, result, dtype))
        }
        _ => None,
    }
}

/// `(x - mean) * rsqrt(variance + epsilon)`.
fn standardized(rw: &mut Rewriter, x: Expr, axes: &[i64], epsilon: f64) -> Option<Expr> {
    let mean = over(rw, "mean", x, axes);
    let centered = rw.apply("subtract", &[x, mean]);
    let square = rw.apply("multiply", &[centered, centered]);
    let variance = over(rw, "mean", square, axes);
    let epsilon = rw.number(rw.tensor(x)?.0, epsilon)?;
    let spread = rw.apply("add", &[variance, epsilon]);
    let inverse = rw.apply("rsqrt", &[spread]);
    Some(rw.apply("multiply", &[centered, inverse]))
}

/// `x * gamma + beta`, with gamma and beta along `axes`, in an element type.
fn scaled(
    rw: &mut Rewriter,
    x: Expr,
    params: [Expr; 2],
    dims: &[Dim],
    axes: &[i64],
    dtype: DType,
) -> Expr {
    let one = rw.cx().dim(1);
    let extent = |axis: usize| if axes.contains(&(axis as i64)) { dims[axis] } else { one };
    let first = axes.iter().copied().min().unwrap_or(0) as usize;
    let shape: Vec<Dim> = (first..dims.len()).map(extent).collect();
    let [gamma, beta] = params.map(|param| {
        let param = wide(rw, param);
        rw.reshape(param, &shape)
    });
    let product = rw.apply("multiply", &[x, gamma]);
    let sum = rw.apply("add", &[product, beta]);
    narrow(rw, sum, dtype)
}

/// A reduction that keeps the axes it reduces.
fn over(rw: &mut Rewriter, op: &str, x: Expr, axes: &[i64]) -> Expr {
    rw.apply_with(op, &[x], &[("axis", axes.into()), ("keepdims", true.into())])
}

/// A tensor in the element type that its statistics are computed in.
fn wide(rw: &mut Rewriter, x: Expr) -> Expr {
    match rw.tensor(x) {
        Some((DType::F16 | DType::BF16, _)) => narrow(rw, x, DType::F32),
        _ => x,
    }
}

/// A tensor in an element type.
fn narrow(rw: &mut Rewriter, x: Expr, dtype: DType) -> Expr {
    match rw.tensor(x) {
        Some((own, _)) if own != dtype => {
            rw.apply_with("cast", &[x], &[("dtype", dtype.to_string().as_str().into())])
        }
        _ => x,
    }
}
