//! Operators that look at where an element stands.

use crate::ir::DType;
use crate::onnx::import::builder::Value;
use crate::onnx::import::error::{Problem, invalid, unsupported};
use crate::onnx::import::node::NodeCx;

use super::cast::cast_to;
use super::scalar::{Number, number, scalar_like};

type Outputs = Result<Vec<Value>, Problem>;

/// `Trilu`: the last two axes are a matrix, which is zero below or above a diagonal.
pub(in crate::onnx::import) fn triangle(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let dims = cx.dims(x)?;
    let Some(matrix) = dims.last_chunk::<2>() else {
        return invalid(format!("its data have {} dimensions", dims.len()));
    };
    let [Some(rows), Some(columns)] = matrix.map(|dim| cx.terms().dim_value(dim)) else {
        return unsupported("a symbolic dimension");
    };
    let is_upper = cx.flag("upper", true)?;
    let diagonal = match cx.optional(1).map(|diagonal| number(cx, diagonal)) {
        None => 0,
        Some(Some(Number::Int(diagonal))) => diagonal,
        Some(_) => return cx.not_constant(1),
    };
    let count = rows.checked_mul(columns).and_then(|count| usize::try_from(count).ok());
    if !count.is_some_and(|count| cx.spend(count)) {
        return unsupported(format!("a matrix of {rows} times {columns}"));
    }
    let is_kept = |row: i64, column: i64| match is_upper {
        true => column - row >= diagonal,
        false => column - row <= diagonal,
    };
    let mask = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let mask = mask.map(|(row, column)| u8::from(is_kept(row, column))).collect();
    let mask = cx.constant_of(DType::BOOL, &[rows, columns], mask);
    if cx.dtype(x)?.is_bool() {
        return Ok(vec![cx.apply("logical_and", &[x, mask])?]);
    }
    let zero = scalar_like(cx, x, 0.0)?;
    Ok(vec![cx.apply("where", &[mask, x, zero])?])
}

/// `OneHot`: along a new axis, the second value at the index and the first elsewhere. Negative indices count
/// from the end; those beyond the axis are nowhere.
pub(in crate::onnx::import) fn one_hot(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let (indices, values) = (cx.input(0)?, cx.input(2)?);
    let depth = match number(cx, cx.input(1)?) {
        Some(Number::Int(depth)) => depth,
        Some(Number::Float(depth)) => depth as i64,
        Some(Number::Bool(_)) | None => return cx.not_constant(1),
    };
    let rank = cx.dims(indices)?.len();
    let axis = cx.axis(cx.int_or("axis", -1)?, rank + 1)?;
    let bytes = usize::try_from(depth).ok().and_then(|depth| depth.checked_mul(size_of::<i64>()));
    if !bytes.is_some_and(|bytes| cx.spend(bytes)) {
        return unsupported(format!("a depth of {depth}"));
    }
    let indices = cast_to(cx, indices, DType::I64)?;
    let (zero, extent) = (scalar_like(cx, indices, 0.0)?, scalar_like(cx, indices, depth as f64)?);
    let is_negative = cx.apply("less", &[indices, zero])?;
    let moved = cx.apply("add", &[indices, extent])?;
    let indices = cx.apply("where", &[is_negative, moved, indices])?;
    let indices = cx.call("expand_dims", &[indices], &[("axis", vec![axis as i64].into())])?;

    let mut shape = vec![depth];
    shape.resize(1 + rank - axis, 1);
    let places = (0..depth).flat_map(i64::to_le_bytes).collect();
    let places = cx.constant_of(DType::I64, &shape, places);
    let is_here = cx.apply("equal", &[indices, places])?;
    let [off, on] = [0i64, 1].map(|index| {
        let index = cx.constant_of(DType::I64, &[], index.to_le_bytes().to_vec());
        cx.call("take", &[values, index], &[("axis", 0.into())])
    });
    Ok(vec![cx.apply("where", &[is_here, on?, off?])?])
}
