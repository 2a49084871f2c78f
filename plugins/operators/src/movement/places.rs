//! Places along an axis.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_number;

/// The extents before, at and after an axis.
pub(crate) fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

/// The indices along an axis that a tensor holds; one below zero counts from the end.
pub(crate) fn places_of(indices: &Tensor, axis: usize, extent: usize) -> Result<Vec<usize>> {
    let place = |index: i64| {
        let place = if index < 0 { index + extent as i64 } else { index };
        match (0..extent as i64).contains(&place) {
            true => Ok(place as usize),
            false => Err(OpError::Value(format!(
                "index {index} is outside of axis {axis}, which has extent {extent}"
            ))),
        }
    };
    indices_of(indices)?.into_iter().map(place).collect()
}

fn indices_of(tensor: &Tensor) -> Result<Vec<i64>> {
    with_number!(tensor.dtype(), T => {
        Ok(tensor.elements::<T>().iter().map(|&index| index.to_i64()).collect())
    })
}

/// The type of the parts of the first argument along an axis, at the indices in the second.
pub(crate) fn taken(cx: &InferCx<'_>, axis: i64) -> Result<Type> {
    let tensor = cx.tensor(0)?;
    let indices = cx.tensor(1)?;
    if !indices.dtype.is_int() {
        let expected = "an integer type".into();
        return Err(OpError::WrongDType { index: 1, expected, found: indices.dtype });
    }
    let (Some(dims), Some(index_dims)) = (tensor.dims, indices.dims) else {
        return Ok(cx.tensor_type(tensor.dtype, None));
    };
    let axis = cx.axis("axis", axis, dims.len())?;
    let dims: Vec<Dim> =
        dims[..axis].iter().chain(index_dims).chain(&dims[axis + 1..]).copied().collect();
    Ok(cx.tensor_type(tensor.dtype, Some(&dims)))
}
