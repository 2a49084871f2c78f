//! A shape as a tensor.
//!
//! ```ir
//! %y = shape_to_tensor(%s)    shape[n, 3]  =>  i64[2]
//! ```
//!
//! A shape is evaluated as a tensor of its extents, so it is the argument itself.

use tenon_plugin_api::ir::DimView;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::cast_to;

/// A shape as a tensor of i64
#[op(name = "shape_to_tensor")]
pub struct ShapeToTensor;

impl Operator for ShapeToTensor {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        match cx.shape(0)? {
            Some(dims) => Ok(cx.static_tensor_type(DType::I64, &[dims.len() as i64])),
            None => Err(cx.wrong_arg(0, "a shape of known rank")),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![cx.arg(0)?.clone()])
    }
}

/// A shape is a tensor of its extents.
#[rule(view)]
fn view(_: &ShapeToTensor, at: &mut Site<'_>) -> Expr {
    at.call.expr
}

/// Two dimensions whose difference a dimension is: the terms with positive factors of a sum, and those with negative ones.
fn difference(node: &Node<'_>, dim: Dim) -> [Dim; 2] {
    let (cx, terms) = (node.cx(), node.terms());
    let zero = cx.dim(0);
    if terms.dim_lower_bound(dim).is_some_and(|least| least >= 0) {
        return [dim, zero];
    }
    let one = [dim];
    let parts = match terms.dim(dim) {
        DimView::Add(parts) => parts,
        _ => &one,
    };
    let is_negative = |part: Dim| match terms.dim(part) {
        DimView::Mul(factors) => {
            factors.iter().any(|&factor| terms.dim_value(factor).is_some_and(|value| value < 0))
        }
        _ => terms.dim_value(part).is_some_and(|value| value < 0),
    };
    let (below, above): (Vec<Dim>, Vec<Dim>) = parts.iter().partition(|&&part| is_negative(part));
    let sum = |all: Vec<Dim>, factor: i64| {
        cx.dim_sum(&all.into_iter().map(|part| (part, factor)).collect::<Vec<_>>())
    };
    let mut sides = [sum(above, 1), sum(below, -1)];
    // A shape has no extent below zero: as much is added to both as keeps them above.
    for side in 0..2 {
        if let Some(least @ ..0) = terms.dim_lower_bound(sides[side]) {
            sides = sides.map(|side| cx.dim_sub(side, cx.dim(least)));
        }
    }
    sides
}

/// Integers that are only known as dimensions, as a tensor that is computed at run time. One that may be negative is the
/// difference of two that are not.
#[rule(import.onnx, domain = "tenon", key = "Dimensions")]
fn import(node: &mut Node<'_>) -> Outputs {
    let Some(known) = node.elements(node.input(0)?) else { return node.not_constant(0) };
    let parts: Vec<[Dim; 2]> = known.elements.iter().map(|&dim| difference(node, dim)).collect();
    let mut parts = [0, 1].map(|side| parts.iter().map(|both| both[side]).collect::<Vec<Dim>>());
    let is_negative = |dim| node.terms().dim_lower_bound(dim).is_none_or(|least| least < 0);
    if parts.iter().flatten().any(|&dim| is_negative(dim)) {
        return unsupported("a number computed from dimensions that may be negative");
    }
    let [above, below] = &mut parts;
    let shape = node.shape(above)?;
    let mut y = node.apply("shape_to_tensor", &[shape])?;
    if below.iter().any(|&dim| node.terms().dim_value(dim) != Some(0)) {
        let below = node.shape(below)?;
        let below = node.apply("shape_to_tensor", &[below])?;
        y = node.apply("subtract", &[y, below])?;
    }
    if known.shape.len() != 1 {
        let dims: Vec<Dim> = known.shape.iter().map(|&dim| node.cx().dim(dim as i64)).collect();
        let shape = node.shape(&dims)?;
        y = node.apply("reshape", &[y, shape])?;
    }
    Ok(vec![cast_to(node, y, known.dtype)?])
}
