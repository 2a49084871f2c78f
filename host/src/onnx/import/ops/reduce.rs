//! Reductions along axes.

use crate::ir::{AttrValue, DType};
use crate::onnx::import::builder::Value;
use crate::onnx::import::error::{Problem, invalid, unsupported};
use crate::onnx::import::node::NodeCx;

use super::cast::cast_to;
use super::scalar::scalar_like;

type Outputs = Result<Vec<Value>, Problem>;

macro_rules! reductions {
    ($($(#[doc = $doc:literal])* $name:ident $op:literal axes as input since $since:literal;)*) => {$(
        $(#[doc = $doc])*
        pub(in crate::onnx::import) fn $name(cx: &mut NodeCx<'_, '_>) -> Outputs {
            let (x, axes) = (cx.input(0)?, axes(cx, $since)?);
            Ok(vec![reduce(cx, $op, x, &axes)?])
        }
    )*};
}

reductions! {
    /// `ReduceMax`.
    max "max" axes as input since 18;
    /// `ReduceMean`.
    mean "mean" axes as input since 18;
    /// `ReduceMin`.
    min "min" axes as input since 18;
    /// `ReduceProd`.
    prod "prod" axes as input since 18;
    /// `ReduceSum`.
    sum "sum" axes as input since 13;
}

/// `ReduceL1`: the sum of the absolute values.
pub(in crate::onnx::import) fn l1(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let (x, axes) = (cx.input(0)?, axes(cx, 18)?);
    let x = cx.apply("abs", &[x])?;
    Ok(vec![reduce(cx, "sum", x, &axes)?])
}

/// `ReduceL2`: the root of the sum of squares.
pub(in crate::onnx::import) fn l2(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let (x, axes) = (cx.input(0)?, axes(cx, 18)?);
    let square = cx.apply("multiply", &[x, x])?;
    let sum = reduce(cx, "sum", square, &axes)?;
    Ok(vec![cx.apply("sqrt", &[sum])?])
}

/// `ReduceSumSquare`.
pub(in crate::onnx::import) fn sum_square(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let (x, axes) = (cx.input(0)?, axes(cx, 18)?);
    let square = cx.apply("multiply", &[x, x])?;
    Ok(vec![reduce(cx, "sum", square, &axes)?])
}

/// `ReduceLogSum`.
pub(in crate::onnx::import) fn log_sum(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let (x, axes) = (cx.input(0)?, axes(cx, 18)?);
    let sum = reduce(cx, "sum", x, &axes)?;
    Ok(vec![cx.apply("log", &[sum])?])
}

/// `ReduceLogSumExp`: the largest element, and the logarithm of the sum of what the others are beside it, which does
/// not overflow. One that is infinite or no number stays out of the difference, and comes back by its exponential.
pub(in crate::onnx::import) fn log_sum_exp(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let (x, axes) = (cx.input(0)?, axes(cx, 18)?);
    if axes.is_noop {
        return Ok(vec![x]);
    }
    if is_of_nothing(cx, x, &axes)? {
        let sum = reduce(cx, "sum", x, &axes)?;
        return Ok(vec![cx.apply("log", &[sum])?]);
    }
    let kept = Axes { axes: axes.axes.clone(), keepdims: true, is_noop: false };
    let top = reduce(cx, "max", x, &kept)?;
    let size = cx.apply("abs", &[top])?;
    let (limit, zero) = (scalar_like(cx, x, f64::INFINITY)?, scalar_like(cx, x, 0.0)?);
    let is_finite = cx.apply("less", &[size, limit])?;
    let top = cx.apply("where", &[is_finite, top, zero])?;
    let lowered = cx.apply("subtract", &[x, top])?;
    let exp = cx.apply("exp", &[lowered])?;
    let sum = reduce(cx, "sum", exp, &axes)?;
    let log = cx.apply("log", &[sum])?;
    let dims = cx.dims(log)?;
    let shape = cx.shape(&dims);
    let top = cx.apply("reshape", &[top, shape])?;
    Ok(vec![cx.apply("add", &[log, top])?])
}

/// What a reduction reduces.
struct Axes {
    /// All axes when there are none.
    axes: Vec<i64>,
    keepdims: bool,
    /// No axes mean that nothing is reduced.
    is_noop: bool,
}

/// The axes in an attribute, or in an input since version `since`.
fn axes(cx: &NodeCx<'_, '_>, since: i64) -> Result<Axes, Problem> {
    let axes = match cx.version < since {
        true => cx.ints("axes")?,
        false => cx.optional_ints(1)?,
    };
    let axes = axes.unwrap_or_default();
    let is_noop = cx.flag("noop_with_empty_axes", false)? && axes.is_empty();
    Ok(Axes { axes, keepdims: cx.flag("keepdims", true)?, is_noop })
}

fn reduce(
    cx: &mut NodeCx<'_, '_>,
    op: &'static str,
    x: Value,
    axes: &Axes,
) -> Result<Value, Problem> {
    if axes.is_noop {
        return Ok(x);
    }
    let dtype = cx.dtype(x)?;
    if dtype.is_bool() && matches!(op, "max" | "min") {
        let number = cast_to(cx, x, DType::U8)?;
        let number = reduce(cx, op, number, axes)?;
        return cast_to(cx, number, dtype);
    }
    let mut attrs = vec![("keepdims", axes.keepdims.into())];
    if !axes.axes.is_empty() {
        attrs.push(("axis", axes.axes.clone().into()));
    }
    let y = cx.call(op, &[x], &attrs)?;
    match op {
        "max" | "min" if is_of_nothing(cx, x, axes)? => of_nothing(cx, op, y),
        _ => Ok(y),
    }
}

/// Whether there is no element along the axes.
fn is_of_nothing(cx: &NodeCx<'_, '_>, x: Value, axes: &Axes) -> Result<bool, Problem> {
    let dims = cx.dims(x)?;
    let reduced = match axes.axes.as_slice() {
        [] => (0..dims.len()).collect(),
        axes => cx.axes(axes, dims.len())?,
    };
    Ok(reduced.into_iter().any(|axis| cx.terms().dim_value(dims[axis]) == Some(0)))
}

/// The largest or smallest of no elements: what any element is not below or not above.
fn of_nothing(cx: &mut NodeCx<'_, '_>, op: &str, like: Value) -> Result<Value, Problem> {
    let (dtype, dims) = (cx.dtype(like)?, cx.dims(like)?);
    let is_max = op == "max";
    let bits = dtype.bits().min(64);
    let value: AttrValue = match (dtype.is_float(), dtype.is_signed()) {
        (true, _) => if is_max { f64::NEG_INFINITY } else { f64::INFINITY }.into(),
        (false, true) => {
            if is_max { i64::MIN >> (64 - bits) } else { i64::MAX >> (64 - bits) }.into()
        }
        (false, false) if is_max => 0i64.into(),
        (false, false) if bits < 64 => ((1i64 << bits) - 1).into(),
        _ => return unsupported("the smallest of no elements of u64"),
    };
    let shape = cx.shape(&dims);
    cx.call("full", &[shape], &[("value", value), ("dtype", dtype.to_string().into())])
}

/// `ArgMax`.
pub(in crate::onnx::import) fn arg_max(cx: &mut NodeCx<'_, '_>) -> Outputs {
    arg(cx, "argmax")
}

/// `ArgMin`.
pub(in crate::onnx::import) fn arg_min(cx: &mut NodeCx<'_, '_>) -> Outputs {
    arg(cx, "argmin")
}

fn arg(cx: &mut NodeCx<'_, '_>, op: &'static str) -> Outputs {
    if cx.inputs.len() != 1 {
        return invalid(format!("it has {} inputs, expected one", cx.inputs.len()));
    }
    let x = cx.input(0)?;
    let axis = cx.int_or("axis", 0)?;
    let attrs = [("axis", axis.into()), ("keepdims", cx.flag("keepdims", true)?.into())];
    if !cx.flag("select_last_index", false)? {
        return Ok(vec![cx.call(op, &[x], &attrs)?]);
    }
    // The last one is the first from the end.
    let dims = cx.dims(x)?;
    let Some(extent) = cx.terms().dim_value(dims[cx.axis(axis, dims.len())?]) else {
        return unsupported("the last index of a symbolic dimension");
    };
    let backwards = [
        ("begin", vec![-1].into()),
        ("end", vec![i64::MIN].into()),
        ("strides", vec![-1].into()),
        ("axes", vec![axis].into()),
    ];
    let x = cx.call("strided_slice", &[x], &backwards)?;
    let from_the_end = cx.call(op, &[x], &attrs)?;
    let last = scalar_like(cx, from_the_end, (extent - 1) as f64)?;
    Ok(vec![cx.apply("subtract", &[last, from_the_end])?])
}
