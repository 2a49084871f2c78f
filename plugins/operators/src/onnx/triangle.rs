//! The triangles of matrices.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::reshape_to;

/// `Trilu`: the last two axes are a matrix, which is zero below or above a diagonal.
#[rule(import.onnx, key = "Trilu", since = 14)]
fn triangle(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let Some(matrix) = dims.last_chunk::<2>() else {
        return invalid(format!("its data have {} dimensions", dims.len()));
    };
    let [Some(rows), Some(columns)] = matrix.map(|dim| node.terms().dim_value(dim)) else {
        return unsupported("a symbolic dimension");
    };
    let is_upper = node.flag("upper", true)?;
    let diagonal = match node.optional(1).map(|diagonal| node.number(diagonal)) {
        None => Some(0),
        Some(Some(Scalar::Int(diagonal))) => Some(diagonal),
        Some(_) => None,
    };
    let count = rows.checked_mul(columns).and_then(|count| usize::try_from(count).ok());
    if !count.is_some_and(|count| node.spend(count)) {
        return unsupported(format!("a matrix of {rows} times {columns}"));
    }
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| column - row));
    let mask = match diagonal {
        Some(diagonal) => {
            let is_kept = |place: i64| match is_upper {
                true => place >= diagonal,
                false => place <= diagonal,
            };
            let mask: Vec<u8> = places.map(|place| u8::from(is_kept(place))).collect();
            node.constant(DType::BOOL, &[rows, columns], &mask)?
        }
        None => {
            let places: Vec<u8> = places.flat_map(i64::to_le_bytes).collect();
            let places = node.constant(DType::I64, &[rows, columns], &places)?;
            let diagonal = node.input(1)?;
            let diagonal = reshape_to(node, diagonal, &[])?;
            let op = if is_upper { "greater_equal" } else { "less_equal" };
            node.apply(op, &[places, diagonal])?
        }
    };
    if node.dtype(x)?.is_bool() {
        return Ok(vec![node.apply("logical_and", &[x, mask])?]);
    }
    let zero = node.scalar_like(x, 0.0)?;
    Ok(vec![node.apply("where", &[mask, x, zero])?])
}
