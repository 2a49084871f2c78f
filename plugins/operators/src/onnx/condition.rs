//! A condition as one boolean, which control flow reads.

use tenon_plugin_api::rule::prelude::*;

/// A condition has one element, in any number of dimensions.
#[rule(import.onnx, key = "tenon::Condition", since = 0)]
fn condition(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    if node.dtype(x)? != DType::BOOL {
        let ty = node.terms().type_text(node.ty(x));
        return invalid(format!("its condition is {ty}"));
    }
    let dims = node.dims(x)?;
    if dims.is_empty() {
        return Ok(vec![x]);
    }
    let is_one = |dim: &Dim| node.terms().dim_value(*dim) == Some(1);
    if !dims.iter().all(is_one) {
        let ty = node.terms().type_text(node.ty(x));
        return unsupported(format!("the condition {ty}, which is not known to be one element"));
    }
    let shape = node.shape(&[])?;
    Ok(vec![node.call("reshape", &[x, shape], &[])?])
}
