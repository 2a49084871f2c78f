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
    let matrix = *matrix;
    let is_upper = node.flag("upper", true)?;
    let diagonal = match node.optional(1).map(|diagonal| node.number(diagonal)) {
        None => Some(0),
        Some(Some(Scalar::Int(diagonal))) => Some(diagonal),
        Some(_) => None,
    };
    let mask = match (matrix.map(|dim| node.terms().dim_value(dim)), diagonal) {
        ([Some(rows), Some(columns)], Some(diagonal)) => {
            let is_kept = |place: i64| match is_upper {
                true => place >= diagonal,
                false => place <= diagonal,
            };
            let places = places_of(node, rows, columns)?;
            let mask: Vec<u8> = places.map(|place| u8::from(is_kept(place))).collect();
            node.constant(DType::BOOL, &[rows, columns], &mask)?
        }
        (_, diagonal) => {
            let places = places(node, matrix)?;
            let diagonal = match diagonal {
                Some(diagonal) => node.scalar(DType::I64, diagonal as f64)?,
                None => {
                    let diagonal = node.input(1)?;
                    reshape_to(node, diagonal, &[])?
                }
            };
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

/// How far each element of a matrix is to the right of the diagonal.
fn places(node: &mut Node<'_>, [rows, columns]: [Dim; 2]) -> Result<Value, Problem> {
    let extents = [rows, columns].map(|dim| node.terms().dim_value(dim));
    if let [Some(rows), Some(columns)] = extents {
        let places: Vec<u8> = places_of(node, rows, columns)?.flat_map(i64::to_le_bytes).collect();
        return node.constant(DType::I64, &[rows, columns], &places);
    }
    let [row, column] = [rows, columns].map(|dim| {
        let shape = node.shape(&[dim])?;
        node.apply("arange", &[shape])
    });
    let row = node.call("expand_dims", &[row?], &[("axis", vec![1].into())])?;
    node.apply("subtract", &[column?, row])
}

/// The same as numbers, where there are not too many.
fn places_of(
    node: &mut Node<'_>,
    rows: i64,
    columns: i64,
) -> Result<impl Iterator<Item = i64>, Problem> {
    let count = rows.checked_mul(columns).and_then(|count| usize::try_from(count).ok());
    if !count.is_some_and(|count| node.spend(count)) {
        return unsupported(format!("a matrix of {rows} times {columns}"));
    }
    Ok((0..rows).flat_map(move |row| (0..columns).map(move |column| column - row)))
}
