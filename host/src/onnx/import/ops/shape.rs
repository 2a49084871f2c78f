//! Operators that change the shape and keep the elements, and those that ask for the shape.

use crate::ir::{Constant, Context, DType, Dim};
use crate::onnx::import::builder::{Builder, Value};
use crate::onnx::import::dim_math::quotient;
use crate::onnx::import::error::{Problem, invalid, unsupported};
use crate::onnx::import::known::Known;
use crate::onnx::import::node::NodeCx;

type Outputs = Result<Vec<Value>, Problem>;

/// `Identity`.
pub(in crate::onnx::import) fn identity(cx: &mut NodeCx<'_, '_>) -> Outputs {
    Ok(vec![cx.input(0)?])
}

/// `Reshape` to a shape that is known, perhaps by its symbols.
pub(in crate::onnx::import) fn reshape(cx: &mut NodeCx<'_, '_>) -> Outputs {
    cx.check_arity(2, 2)?;
    let x = cx.input(0)?;
    let wanted = cx.input_dims(1)?;
    let dims = cx.dims(x)?;
    let dims = reshaped_dims(cx, &dims, &wanted)?;
    let shape = cx.shape(&dims);
    Ok(vec![cx.apply("reshape", &[x, shape])?])
}

/// The dimensions that `Reshape` means: a zero keeps the dimension at its place, and one -1 is what the
/// others leave.
pub(in crate::onnx::import) fn reshaped_dims(
    cx: &NodeCx<'_, '_>,
    dims: &[Dim],
    wanted: &[Dim],
) -> Result<Vec<Dim>, Problem> {
    let is_zero_kept = cx.flag("allowzero", false)?;
    let mut shape = Vec::with_capacity(wanted.len());
    let mut open = None;
    for (axis, &dim) in wanted.iter().enumerate() {
        shape.push(match cx.terms().dim_value(dim) {
            Some(0) if !is_zero_kept => match dims.get(axis) {
                Some(&dim) => dim,
                None => return invalid(format!("dimension {axis} of its shape is 0")),
            },
            Some(-1) if open.is_none() => {
                open = Some(axis);
                cx.cx().dim(1)
            }
            Some(value) if value < 0 => {
                return invalid(format!("dimension {axis} of its shape is {value}"));
            }
            _ => dim,
        });
    }
    if let Some(axis) = open {
        shape[axis] = match quotient(cx.cx(), dims, &shape) {
            Some(dim) => dim,
            None => return invalid("its shape does not divide the number of elements"),
        };
    }
    Ok(shape)
}

/// `value` in another shape; a constant stays one, with the same bytes.
pub(super) fn reshape_to(
    builder: &mut Builder,
    value: Value,
    dims: &[Dim],
) -> Result<Value, Problem> {
    if let Some(constant) = builder.as_constant(value) {
        let dtype = builder.dtype(value)?;
        let ty = builder.cx().tensor_type(dtype, dims);
        let Constant { name, data, .. } = (*constant).clone();
        return Ok(builder.constant(Constant { ty, name, data }));
    }
    let shape = builder.shape(dims);
    builder.apply("reshape", &[value, shape])
}

/// `Flatten` to a matrix.
pub(in crate::onnx::import) fn flatten(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let dims = cx.dims(x)?;
    let axis = match cx.int_or("axis", 1)? {
        axis if axis == dims.len() as i64 => dims.len(),
        axis => cx.axis(axis, dims.len())?,
    };
    let shape = [product(cx, &dims[..axis]), product(cx, &dims[axis..])];
    let shape = cx.shape(&shape);
    Ok(vec![cx.apply("reshape", &[x, shape])?])
}

/// The number of elements of a shape.
pub(super) fn product(builder: &Builder, dims: &[Dim]) -> Dim {
    let cx = builder.cx();
    dims.iter().fold(cx.dim(1), |product, &dim| cx.dim_mul(product, dim))
}

/// `Transpose`.
pub(in crate::onnx::import) fn transpose(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    match cx.ints("perm")? {
        Some(perm) => Ok(vec![cx.call("transpose", &[x], &[("axes", perm.into())])?]),
        None => Ok(vec![cx.apply("transpose", &[x])?]),
    }
}

/// `Squeeze`, its axes an attribute or an input.
pub(in crate::onnx::import) fn squeeze(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let dims = cx.dims(x)?;
    let axes = squeezed_axes(cx, &dims)?;
    let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
    Ok(vec![cx.call("squeeze", &[x], &[("axis", axes.into())])?])
}

/// The axes that `Squeeze` takes out.
pub(in crate::onnx::import) fn squeezed_axes(
    cx: &NodeCx<'_, '_>,
    dims: &[Dim],
) -> Result<Vec<usize>, Problem> {
    if let Some(axes) = axes_of(cx)? {
        return cx.axes(&axes, dims.len());
    }
    let mut axes = Vec::new();
    for (axis, &dim) in dims.iter().enumerate() {
        match cx.terms().dim_value(dim) {
            Some(1) => axes.push(axis),
            Some(_) => {}
            None => return unsupported("a symbolic dimension where no axes are given"),
        }
    }
    Ok(axes)
}

/// The axes in an attribute, since version 13 in an input.
pub(in crate::onnx::import) fn axes_of(cx: &NodeCx<'_, '_>) -> Result<Option<Vec<i64>>, Problem> {
    match cx.version < 13 {
        true => cx.ints("axes"),
        false => cx.optional_ints(1),
    }
}

/// `Unsqueeze`, its axes an attribute or an input.
pub(in crate::onnx::import) fn unsqueeze(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let Some(axes) = axes_of(cx)? else { return invalid("its axes are missing") };
    cx.axes(&axes, cx.dims(x)?.len() + axes.len())?;
    Ok(vec![cx.call("expand_dims", &[x], &[("axis", axes.into())])?])
}

/// `Expand`: broadcast both ways.
pub(in crate::onnx::import) fn expand(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let wanted = cx.input_dims(1)?;
    let dims = cx.dims(x)?;
    let shape = broadcast(cx, &dims, &wanted);
    let shape = cx.shape(&shape);
    Ok(vec![cx.apply("broadcast_to", &[x, shape])?])
}

/// The shape that two are broadcast to. Where it cannot be told whether they fit, they do: that is left
/// to the checks of the operators.
fn broadcast(builder: &Builder, left: &[Dim], right: &[Dim]) -> Vec<Dim> {
    let cx = builder.cx();
    let rank = left.len().max(right.len());
    let at = |dims: &[Dim], axis: usize| {
        (axis + dims.len()).checked_sub(rank).map_or_else(|| cx.dim(1), |at| dims[at])
    };
    let value = |dim| cx.terms().dim_value(dim);
    (0..rank)
        .map(|axis| {
            let (a, b) = (at(left, axis), at(right, axis));
            match (value(a), value(b)) {
                _ if a == b => a,
                (Some(1), _) => b,
                (_, Some(1)) => a,
                (_, Some(_)) => b,
                (Some(_), None) => a,
                (None, None) => cx.dim_max(a, b),
            }
        })
        .collect()
}

/// `Shape`, or a part of it.
pub(in crate::onnx::import) fn shape(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let dims = cx.dims(x)?;
    let rank = dims.len() as i64;
    let clamp =
        |index: i64| if index < 0 { index.saturating_add(rank) } else { index }.clamp(0, rank);
    let start = clamp(cx.int_or("start", 0)?) as usize;
    let end = clamp(cx.int_or("end", rank)?) as usize;
    let dims = dims.get(start..end).unwrap_or_default().to_vec();
    Ok(vec![cx.known(Known::vector(dims))])
}

/// `Size`: the number of elements.
pub(in crate::onnx::import) fn size(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let dims = cx.dims(x)?;
    let size = product(cx, &dims);
    Ok(vec![cx.known(Known::scalar(DType::I64, size))])
}
