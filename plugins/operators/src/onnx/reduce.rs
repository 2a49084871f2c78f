//! Reductions along axes, which are an attribute or an input.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::cast_to;

/// What a reduction reduces.
pub(crate) struct Axes {
    /// All axes when there are none.
    pub(crate) axes: Vec<i64>,
    pub(crate) keepdims: bool,
    /// No axes mean that nothing is reduced.
    pub(crate) is_noop: bool,
}

/// The axes in an attribute, or in an input since version `since`.
pub(crate) fn axes(node: &Node<'_>, since: u64) -> Result<Axes, Problem> {
    let axes = match node.version() < since {
        true => node.ints("axes")?,
        false => node.optional_axes(1)?,
    };
    let rank = node.dims(node.input(0)?)?.len();
    let axes = node.axes(&axes.unwrap_or_default(), rank)?;
    let axes: Vec<i64> = axes.into_iter().map(|axis| axis as i64).collect();
    let is_noop = node.flag("noop_with_empty_axes", false)? && axes.is_empty();
    Ok(Axes { axes, keepdims: node.flag("keepdims", true)?, is_noop })
}

/// The outputs of a node that is a reduction, its axes an input since version `since`.
pub(crate) fn reduction(node: &mut Node<'_>, op: &'static str, since: u64) -> Outputs {
    let (x, axes) = (node.input(0)?, axes(node, since)?);
    Ok(vec![reduce(node, op, x, &axes)?])
}

/// A reduction.
pub(crate) fn reduce(
    node: &mut Node<'_>,
    op: &'static str,
    x: Value,
    axes: &Axes,
) -> Result<Value, Problem> {
    if axes.is_noop {
        return Ok(x);
    }
    let dtype = node.dtype(x)?;
    if dtype.is_bool() && matches!(op, "max" | "min") {
        let number = cast_to(node, x, DType::U8)?;
        let number = reduce(node, op, number, axes)?;
        return cast_to(node, number, dtype);
    }
    let mut attrs = vec![("keepdims", axes.keepdims.into())];
    if !axes.axes.is_empty() {
        attrs.push(("axis", axes.axes.clone().into()));
    }
    let y = node.call(op, &[x], &attrs)?;
    match op {
        "max" | "min" if is_of_nothing(node, x, axes)? => of_nothing(node, op, y),
        _ => Ok(y),
    }
}

/// Whether there is no element along the axes.
pub(crate) fn is_of_nothing(node: &Node<'_>, x: Value, axes: &Axes) -> Result<bool, Problem> {
    let dims = node.dims(x)?;
    let reduced = match axes.axes.as_slice() {
        [] => (0..dims.len()).collect(),
        axes => node.axes(axes, dims.len())?,
    };
    Ok(reduced.into_iter().any(|axis| node.terms().dim_value(dims[axis]) == Some(0)))
}

/// The largest or smallest of no elements: what any element is not below or not above.
fn of_nothing(node: &mut Node<'_>, op: &str, like: Value) -> Result<Value, Problem> {
    let (dtype, dims) = (node.dtype(like)?, node.dims(like)?);
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
    let shape = node.shape(&dims)?;
    node.call("full", &[shape], &[("value", value), ("dtype", dtype.to_string().into())])
}

/// The outputs of a node that is the place of an extreme element.
pub(crate) fn arg(node: &mut Node<'_>, op: &'static str) -> Outputs {
    if node.input_count() != 1 {
        return invalid(format!("it has {} inputs, expected one", node.input_count()));
    }
    let x = node.input(0)?;
    let axis = node.int_or("axis", 0)?;
    let attrs = [("axis", axis.into()), ("keepdims", node.flag("keepdims", true)?.into())];
    if !node.flag("select_last_index", false)? {
        return Ok(vec![node.call(op, &[x], &attrs)?]);
    }
    // The last one is the first from the end.
    let dims = node.dims(x)?;
    let extent = dims[node.axis(axis, dims.len())?];
    let backwards = [
        ("begin", vec![-1].into()),
        ("end", vec![i64::MIN].into()),
        ("strides", vec![-1].into()),
        ("axes", vec![axis].into()),
    ];
    let x = node.call("strided_slice", &[x], &backwards)?;
    let from_the_end = node.call(op, &[x], &attrs)?;
    let last = node.cx().dim_sub(extent, node.cx().dim(1));
    let last = node.known(&Known::scalar(node.dtype(from_the_end)?, last))?;
    Ok(vec![node.apply("subtract", &[last, from_the_end])?])
}
