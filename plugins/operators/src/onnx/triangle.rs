//! The triangles of matrices.

use tenon_plugin_api::rule::prelude::*;

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
        None => 0,
        Some(Some(Scalar::Int(diagonal))) => diagonal,
        Some(_) => return node.not_constant(1),
    };
    let count = rows.checked_mul(columns).and_then(|count| usize::try_from(count).ok());
    if !count.is_some_and(|count| node.spend(count)) {
        return unsupported(format!("a matrix of {rows} times {columns}"));
    }
    let is_kept = |row: i64, column: i64| match is_upper {
        true => column - row >= diagonal,
        false => column - row <= diagonal,
    };
    let mask = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let mask: Vec<u8> = mask.map(|(row, column)| u8::from(is_kept(row, column))).collect();
    let mask = node.constant(DType::BOOL, &[rows, columns], &mask)?;
    if node.dtype(x)?.is_bool() {
        return Ok(vec![node.apply("logical_and", &[x, mask])?]);
    }
    let zero = node.scalar_like(x, 0.0)?;
    Ok(vec![node.apply("where", &[mask, x, zero])?])
}
