//! Lists and tensors among attributes, and constants of them.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, wide};

pub(super) fn constant(node: &mut Node<'_>, list: &[i64], shape: &[i64]) -> Result<Value, Problem> {
    let bytes: Vec<u8> = list.iter().flat_map(|number| number.to_le_bytes()).collect();
    node.constant(DType::I64, shape, &bytes)
}

pub(super) fn table(
    node: &mut Node<'_>,
    numbers: &[f64],
    shape: &[i64],
    dtype: DType,
) -> Result<Value, Problem> {
    let bytes: Vec<u8> = match dtype {
        DType::F64 => numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
        _ => numbers.iter().flat_map(|&number| (number as f32).to_le_bytes()).collect(),
    };
    let value = node.constant(wide(dtype), shape, &bytes)?;
    cast_to(node, value, dtype)
}

/// A list with an entry for each of so many.
pub(super) fn list(node: &Node<'_>, name: &str, count: usize) -> Result<Vec<i64>, Problem> {
    match node.ints(name)? {
        Some(list) if list.len() == count => Ok(list),
        list => {
            let length = list.map_or(0, |list| list.len());
            invalid(format!("its attribute `{name}` has {length} numbers, expected {count}"))
        }
    }
}

/// The elements of an attribute that is a tensor.
pub(super) fn numbers(node: &mut Node<'_>, name: &str) -> Result<Vec<f64>, Problem> {
    match numbers_if_any(node, name)? {
        Some(numbers) => Ok(numbers),
        None => invalid(format!("it has no attribute `{name}`")),
    }
}

pub(super) fn numbers_if_any(node: &mut Node<'_>, name: &str) -> Result<Option<Vec<f64>>, Problem> {
    let Some(value) = node.tensor(name)? else { return Ok(None) };
    let Some(tensor) = node.as_constant(value) else {
        return invalid(format!("its attribute `{name}` is no constant"));
    };
    let bytes = tensor.bytes();
    let numbers = match tensor.dtype() {
        DType::U8 => bytes.iter().map(|&byte| f64::from(byte)).collect(),
        dtype => {
            let size = dtype.bytes(1).unwrap_or(1) as usize;
            let number = |bytes: &[u8]| Scalar::of_bytes(dtype, bytes).and_then(Scalar::as_float);
            let numbers: Option<Vec<f64>> = bytes.chunks_exact(size).map(number).collect();
            match numbers {
                Some(numbers) => numbers,
                None => return unsupported(format!("its attribute `{name}` of {dtype}")),
            }
        }
    };
    Ok(Some(numbers))
}

/// A list of floats, empty where it is not given.
pub(super) fn floats(node: &Node<'_>, name: &str) -> Result<Vec<f64>, Problem> {
    let list = node.floats(name)?.unwrap_or_default();
    Ok(list.into_iter().map(f64::from).collect())
}

/// A list of floats, or the tensor of f64 that stands for it.
pub(super) fn floats_or_tensor(node: &mut Node<'_>, name: &str) -> Result<Vec<f64>, Problem> {
    match numbers_if_any(node, &format!("{name}_as_tensor"))? {
        Some(numbers) => Ok(numbers),
        None => floats(node, name),
    }
}

/// Refuses an attribute of strings: no tensor holds any.
pub(super) fn no_strings(node: &Node<'_>, name: &str, remedy: &str) -> Result<(), Problem> {
    match node.has(name) {
        true => unsupported(format!("strings, as in its attribute `{name}`; {remedy}")),
        false => Ok(()),
    }
}
