//! The same elements in another shape.
//!
//! ```ir
//! %y = reshape(%x, %s)    f32[n, 6], shape[n, 2, 3]  =>  f32[n, 2, 3]
//! ```

use std::collections::HashSet;

use tenon_plugin_api::ir::{DimView, Symbol, Terms};
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::same_elements::same_elements;
use super::simplify::{same_shape, source};
use crate::onnx::fold::{self, Folded};
use crate::onnx::steps::product;
use crate::precision::follows_precision;
use crate::program::moves::regrouped;

/// The same elements in the shape of the second argument
#[op(name = "reshape", args = 2, effect = "shares", pattern = "injective")]
pub struct Reshape;

impl Operator for Reshape {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let tensor = cx.tensor(0)?;
        let shape = cx.shape(1)?;
        if let (Some(dims), Some(shape)) = (tensor.dims, shape)
            && cx.is_different(cx.dim_product(dims), cx.dim_product(shape))
        {
            return Err(cx.mismatch("the numbers of elements", dims, shape));
        }
        Ok(cx.tensor_type(tensor.dtype, shape))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        same_elements(cx)
    }
}

/// The same elements in the same order.
#[rule(compute)]
fn program(_: &Reshape, program: &mut Program) {
    regrouped(program);
}

/// The same memory.
#[rule(view)]
fn view(_: &Reshape, at: &mut Site<'_>) -> Expr {
    at.call.expr
}

/// Of a `reshape`, `expand_dims` or `squeeze` it is one reshape; where the shape comes back, none.
#[rule(simplify)]
fn simplify(_: &Reshape, at: &mut Site<'_>) -> Option<Expr> {
    same_shape(at).or_else(|| {
        // It keeps its shape argument, which may be known at run time alone.
        let source = source(at)?;
        let reshaped = at.apply("reshape", &[source, at.arg(1)]);
        at.same_type(reshaped)
    })
}

follows_precision!(Reshape);

/// `g` in the shape of `x`.
#[rule(gradient)]
fn gradient(_: &Reshape, at: &mut Adjoint<'_>) -> Grads {
    let g = at.reshape_like(at.grad(), at.arg(0));
    [Grad::Of(g), Grad::Zero].into()
}

/// `Reshape` to a shape that is known, perhaps by its symbols.
#[rule(import.onnx, key = "Reshape", since = 5)]
fn import(node: &mut Node<'_>) -> Outputs {
    node.check_arity(2, 2)?;
    let x = node.input(0)?;
    let wanted = node.input_dims(1)?;
    let dims = node.dims(x)?;
    expect_one_rest(node, &dims, &wanted)?;
    let dims = reshaped_dims(node, &dims, &wanted)?;
    let shape = node.shape(&dims)?;
    Ok(vec![node.apply("reshape", &[x, shape])?])
}

/// The dimensions that `Reshape` means: a zero keeps the dimension at its place, and one -1 is what the
/// others leave. A size that is not known may be a zero as well, and a -1 where it is not below that.
fn reshaped_dims(node: &Node<'_>, dims: &[Dim], wanted: &[Dim]) -> Result<Vec<Dim>, Problem> {
    let is_zero_kept = node.flag("allowzero", false)?;
    if wanted.iter().any(|&dim| may_be_rest(node, dim, dims)) {
        return dims_of_call(node, dims, wanted, is_zero_kept);
    }
    let mut shape = Vec::with_capacity(wanted.len());
    let mut open = None;
    for (axis, &dim) in wanted.iter().enumerate() {
        shape.push(match node.terms().dim_value(dim) {
            Some(0) if !is_zero_kept => match dims.get(axis) {
                Some(&dim) => dim,
                None => return invalid(format!("dimension {axis} of its shape is 0")),
            },
            Some(-1) if open.is_none() => {
                open = Some(axis);
                node.cx().dim(1)
            }
            Some(value) if value < 0 => {
                return invalid(format!("dimension {axis} of its shape is {value}"));
            }
            None if !is_zero_kept => kept_if_zero(node, dim, axis, dims),
            _ => dim,
        });
    }
    if let Some(axis) = open {
        shape[axis] = match node.cx().dim_quotient(dims, &shape) {
            Some(dim) => dim,
            None => return invalid("its shape does not divide the number of elements"),
        };
    }
    Ok(shape)
}

/// `size`, or the dimension at its place if that is zero. A part of what is reshaped is not asked: where that is zero, there is
/// nothing, and nothing to keep.
fn kept_if_zero(node: &Node<'_>, size: Dim, axis: usize, dims: &[Dim]) -> Dim {
    let (Some(&kept), cx) = (dims.get(axis), node.cx()) else { return size };
    if is_part_of(node.terms(), size, dims)
        || node.terms().dim_lower_bound(size).is_some_and(|least| least > 0)
    {
        return size;
    }
    let one = cx.dim(1);
    let is_zero = cx.dim_floor_div(one, cx.dim_add(size, one));
    cx.dim_add(size, cx.dim_mul(kept, is_zero))
}

/// Whether a size that is not known may be a -1, and nothing below that; a part of what is reshaped is not asked.
fn may_be_rest(node: &Node<'_>, size: Dim, dims: &[Dim]) -> bool {
    let is_known = node.terms().dim_value(size).is_some();
    !is_known
        && node.terms().dim_lower_bound(size) == Some(-1)
        && !is_part_of(node.terms(), size, dims)
}

/// A number that is 1 where a size is -1, and else 0; none where it surely is something else.
fn is_rest(node: &Node<'_>, size: Dim, dims: &[Dim]) -> Option<Dim> {
    let cx = node.cx();
    match node.terms().dim_value(size) {
        Some(-1) => Some(cx.dim(1)),
        None if may_be_rest(node, size, dims) => {
            Some(cx.dim_floor_div(cx.dim(1), cx.dim_add(size, cx.dim(2))))
        }
        _ => None,
    }
}

/// The dimensions where a call says whether one is what the others leave. Where that does not come out even they have another number
/// of elements.
fn dims_of_call(
    node: &Node<'_>,
    dims: &[Dim],
    wanted: &[Dim],
    is_zero_kept: bool,
) -> Result<Vec<Dim>, Problem> {
    let cx = node.cx();
    let mut sizes = Vec::with_capacity(wanted.len());
    for (axis, &dim) in wanted.iter().enumerate() {
        let kept = (!is_zero_kept).then(|| dims.get(axis).copied()).flatten();
        sizes.push(match (node.terms().dim_value(dim), kept) {
            (Some(0), Some(kept)) => kept,
            (Some(value), _) if value < -1 || (value == 0 && !is_zero_kept) => {
                return invalid(format!("dimension {axis} of its shape is {value}"));
            }
            (None, Some(kept)) if may_be_rest(node, dim, dims) => {
                // 2 of -1, 1 of 0, and else 0.
                let least = cx.dim_floor_div(cx.dim(2), cx.dim_add(dim, cx.dim(2)));
                let is_zero = cx.dim_floor_mod(least, cx.dim(2));
                cx.dim_add(dim, cx.dim_mul(kept, is_zero))
            }
            (None, Some(_)) => kept_if_zero(node, dim, axis, dims),
            _ => dim,
        });
    }
    // Of an empty tensor nothing is left, whatever the others are.
    let others: Vec<Dim> = sizes.iter().map(|&size| cx.dim_max(size, cx.dim(1))).collect();
    let rest = cx.dim_floor_div(cx.dim_product(dims), cx.dim_product(&others));
    let size = |(&asked, &size): (&Dim, &Dim)| match is_rest(node, asked, dims) {
        Some(is_rest) => cx.dim_max(size, cx.dim_mul(is_rest, rest)),
        None => size,
    };
    Ok(wanted.iter().zip(&sizes).map(size).collect())
}

/// Ends a call that says of several dimensions that they are what the others leave.
fn expect_one_rest(node: &mut Node<'_>, dims: &[Dim], wanted: &[Dim]) -> Result<(), Problem> {
    let rests: Vec<Dim> = wanted.iter().filter_map(|&dim| is_rest(node, dim, dims)).collect();
    if rests.len() < 2 {
        return Ok(());
    }
    let zero = node.cx().dim(0);
    let count = rests.into_iter().fold(zero, |count, is_rest| node.cx().dim_add(count, is_rest));
    let two = node.cx().dim(2);
    let [count, two] = [count, two].map(|dim| node.known(&Known::scalar(DType::I64, dim)));
    let is_one = node.apply("less", &[count?, two?])?;
    node.apply("expect", &[is_one]).map(|_| ())
}

/// Whether a symbol of some dimensions stands in another one.
fn is_part_of(terms: Terms<'_>, dim: Dim, dims: &[Dim]) -> bool {
    let known = symbols(terms, dims);
    symbols(terms, &[dim]).iter().any(|name| known.contains(name))
}

/// The symbols in dimensions.
fn symbols(terms: Terms<'_>, dims: &[Dim]) -> HashSet<Symbol> {
    let (mut found, mut waiting) = (HashSet::new(), dims.to_vec());
    while let Some(dim) = waiting.pop() {
        match terms.dim(dim) {
            DimView::Symbol(name) => {
                found.insert(name);
            }
            _ => waiting.extend(terms.children(dim).iter().map(|part| Dim(part.0))),
        }
    }
    found
}

/// `Flatten` to a matrix.
#[rule(import.onnx, key = "Flatten", since = 1)]
fn import_flatten(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let axis = match node.int_or("axis", 1)? {
        axis if axis == dims.len() as i64 => dims.len(),
        axis => node.axis(axis, dims.len())?,
    };
    let shape = [product(node, &dims[..axis]), product(node, &dims[axis..])];
    let shape = node.shape(&shape)?;
    Ok(vec![node.apply("reshape", &[x, shape])?])
}

/// `Reshape` of dimensions.
#[rule(import.onnx, key = "Reshape", since = 5, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::fold(node, |node, inputs| {
        let [data, wanted] = inputs else { return Ok(None) };
        let dims: Vec<Dim> = data.shape.iter().map(|&dim| node.cx().dim(dim as i64)).collect();
        let dims = reshaped_dims(node, &dims, &wanted.elements)?;
        let size = |&dim: &Dim| usize::try_from(node.terms().dim_value(dim)?).ok();
        let shape: Option<Vec<usize>> = dims.iter().map(size).collect();
        let shape = shape.filter(|shape| fold::count(shape) == Some(data.elements.len()));
        Ok(shape.map(|shape| Known { shape, ..data.clone() }))
    })
}
