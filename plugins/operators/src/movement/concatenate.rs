//! Tensors one after the other.
//!
//! ```ir
//! %y = concatenate(%t) { axis = 1 }    (f32[n, 3], f32[n, 4])  =>  f32[n, 7]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_bits;

use super::places::around;
use crate::kernel::moves::wrap_axis;
use crate::onnx::fold::{self, Folded};
use crate::precision::follows_precision;
use crate::program::index::axis_of;
use tenon_plugin_api::op::OpPattern;
use tenon_plugin_api::program::Extent;

/// The tensors of a tuple one after the other along an axis
#[op(name = "concatenate", pattern = "injective")]
pub struct Concatenate {
    /// the axis they are joined along
    #[attr(default = 0)]
    axis: i64,
}

impl Operator for Concatenate {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let fields = cx.tuple(0)?;
        let mut joined: Option<(DType, Vec<Dim>, usize)> = None;
        let mut extents = Vec::with_capacity(fields.len());
        let mut unranked = None;
        for &field in fields {
            let TypeView::Tensor { dtype, dims } = cx.terms().ty(field) else {
                return Err(cx.wrong_arg(0, "a tuple of tensors"));
            };
            let Some(dims) = dims else {
                unranked = Some(dtype);
                continue;
            };
            let Some((expected, first, axis)) = &joined else {
                let axis = cx.axis("axis", self.axis, dims.len())?;
                extents.push((dims[axis], 1));
                joined = Some((dtype, dims.to_vec(), axis));
                continue;
            };
            if *expected != dtype {
                let expected = expected.to_string();
                return Err(OpError::WrongDType { index: 0, expected, found: dtype });
            }
            let is_wrong =
                |other: usize| other != *axis && cx.is_different(first[other], dims[other]);
            if dims.len() != first.len() || (0..dims.len()).any(is_wrong) {
                return Err(cx.mismatch("the shapes of the parts", first, dims));
            }
            extents.push((dims[*axis], 1));
        }
        match (joined, unranked) {
            (_, Some(dtype)) => Ok(cx.tensor_type(dtype, None)),
            (Some((dtype, mut dims, axis)), None) => {
                dims[axis] = cx.dim_sum(&extents);
                Ok(cx.tensor_type(dtype, Some(&dims)))
            }
            (None, None) => Err(cx.wrong_arg(0, "a tuple of at least one tensor")),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let axis = wrap_axis(self.axis, shape.len());
        with_bits!(dtype, T => Ok(vec![join::<T>(cx.args, dtype, shape, axis)]))
    }
}

/// A copy of each part.
#[rule(compute)]
fn program(op: &Concatenate, program: &mut Program) -> Result<()> {
    program.set_pattern(OpPattern::Opaque);
    let out = program.output(0);
    let axis = axis_of(op.axis, out.shape().len())?;
    let cx = program.cx();
    let mut first = cx.dim(0);
    for input in program.inputs() {
        let before = first.index(program);
        if !input.shape().iter().any(|extent| extent.is(program, 0)) {
            program.each(input.shape(), |indices| {
                let mut target = indices.to_vec();
                target[axis] = indices[axis] + before;
                out.set(&target, input.at(indices))
            });
        }
        first = cx.dim_add(first, input.shape()[axis]);
    }
    Ok(())
}

fn join<T: Element + Default>(
    parts: &[Tensor],
    dtype: DType,
    shape: &[usize],
    axis: usize,
) -> Tensor {
    let (outer, extent, inner) = around(shape, axis);
    let row = extent * inner;
    let mut out = vec![T::default(); outer * row];
    let mut begin = 0;
    for part in parts {
        let length = part.shape()[axis] * inner;
        if length == 0 {
            continue;
        }
        let elements = part.elements::<T>();
        for (out, part) in out.chunks_exact_mut(row).zip(elements.chunks_exact(length)) {
            out[begin..begin + length].copy_from_slice(part);
        }
        begin += length;
    }
    Tensor::from_vec_as(dtype, shape.to_vec(), out)
}

/// Of one part it is that part.
#[rule(simplify)]
fn simplify(_: &Concatenate, at: &mut Site<'_>) -> Option<Expr> {
    let tuple = at.definition(at.arg(0));
    let View::Tuple(fields) = at.view(tuple) else { return None };
    let part = fields.get(0).filter(|_| fields.len() == 1)?;
    at.same_type(part)
}

follows_precision!(Concatenate);

/// Along the place of its axis, all parts in one order.
#[rule(layout)]
fn layout(op: &Concatenate, at: &mut Following<'_>) -> Option<Carried> {
    let [LayoutArg::Tuple(parts)] = &at.inputs.clone()[..] else { return None };
    let x = parts.iter().find_map(|part| part.carried.clone())?;
    let place = x.place(op.axis)? as i64;
    let parts: Option<Vec<Expr>> = parts.iter().map(|part| at.in_order(part, &x.order)).collect();
    let value = at.tuple(&parts?);
    at.with_attr(Carried { value, order: x.order }, "axis", place.into())
}

/// To each part its range of `g`.
#[rule(gradient)]
fn gradient(op: &Concatenate, at: &mut Adjoint<'_>) -> Result<Grads> {
    let fields = match at.body().ty(at.arg(0)).map(|ty| at.terms().ty(ty)) {
        Some(TypeView::Tuple(fields)) => fields.to_vec(),
        _ => return Err(OpError::Unsupported("its argument is no tuple".into())),
    };
    let g = at.grad();
    let axis = at.axis(g, op.axis)?;
    let mut begin = 0;
    let mut grads = Vec::with_capacity(fields.len());
    for field in fields {
        let dims = at.terms().tensor(field).map(|(_, dims)| dims[axis as usize]);
        let Some(extent) = dims.and_then(|dim| at.terms().dim_value(dim)) else {
            return Err(OpError::Unsupported("the extent of a part is not known".into()));
        };
        grads.push(at.slice(g, axis, begin, begin + extent));
        begin += extent;
    }
    Ok([Grad::Fields(grads)].into())
}

/// `Concat`.
#[rule(import.onnx, key = "Concat", since = 4)]
fn import(node: &mut Node<'_>) -> Outputs {
    let inputs = node.all_inputs()?;
    let Some(axis) = node.int("axis")? else { return invalid("its attribute `axis` is missing") };
    if let &[only] = inputs.as_slice() {
        return Ok(vec![only]);
    }
    let tuple = node.tuple(&inputs)?;
    Ok(vec![node.call("concatenate", &[tuple], &[("axis", axis.into())])?])
}

/// `Concat` of dimensions.
#[rule(import.onnx, key = "Concat", since = 4, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::fold(node, |node, inputs| {
        let is_like = |known: &Known| known.shape.len() == 1 && known.dtype == inputs[0].dtype;
        if !inputs.iter().all(is_like) {
            return Ok(None);
        }
        node.axis(node.int_or("axis", 0)?, 1)?;
        let elements: Vec<Dim> =
            inputs.iter().flat_map(|known| known.elements.iter().copied()).collect();
        Ok(Some(Known { dtype: inputs[0].dtype, shape: vec![elements.len()], elements }))
    })
}
