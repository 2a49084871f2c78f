//! Constants that a node holds.

use tenon_plugin_api::rule::prelude::*;

/// `Constant`: a tensor, a number or a list of numbers.
#[rule(import.onnx, key = "Constant", since = 1)]
fn constant(node: &mut Node<'_>) -> Outputs {
    if let Some(constant) = node.tensor("value")? {
        return Ok(vec![constant]);
    }
    let value = if let Some(value) = node.float("value_float")? {
        node.constant(DType::F32, &[], &value.to_le_bytes())?
    } else if let Some(value) = node.int("value_int")? {
        node.constant(DType::I64, &[], &value.to_le_bytes())?
    } else if let Some(values) = node.floats("value_floats")? {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        node.constant(DType::F32, &[values.len() as i64], &bytes)?
    } else if let Some(values) = node.ints("value_ints")? {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        node.constant(DType::I64, &[values.len() as i64], &bytes)?
    } else {
        for name in ["value_string", "value_strings", "sparse_value"] {
            if node.has(name) {
                return unsupported(format!("attribute `{name}`"));
            }
        }
        return invalid("it has no value");
    };
    Ok(vec![value])
}
