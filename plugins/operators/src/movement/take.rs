//! Parts of a tensor at indices.
//!
//! ```ir
//! %y = take(%x, %i)    f32[9, 3], i64[n]  =>  f32[n, 3]
//! ```
//!
//! An index below zero counts from the end; one outside of the axis has no value.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_bits;

use super::places::{around, places_of, taken, where_there_is_any};
use crate::kernel::moves::wrap_axis;
use crate::onnx::fold::{self, Folded};
use crate::precision::follows_precision;
use crate::program::index::{axis_of, index_at};

/// Parts of the first argument along an axis, at the indices in the second
#[op(name = "take", args = 2, pattern = "injective")]
pub struct Take {
    /// the axis that is indexed
    #[attr(default = 0)]
    axis: i64,
}

impl Operator for Take {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let taken = taken(cx, self.axis)?;
        let Some(dims) = cx.tensor(0)?.dims else { return Ok(taken) };
        // Where nothing is known of the indices, the axis was not looked at.
        let extent = dims.get(wrap_axis(self.axis, dims.len()));
        Ok(extent.map_or(taken, |&extent| where_there_is_any(cx, &[extent], taken)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (tensor, indices) = (cx.arg(0)?, cx.arg(1)?);
        let (dtype, shape) = cx.out()?;
        let axis = wrap_axis(self.axis, tensor.shape().len());
        let (outer, extent, inner) = around(tensor.shape(), axis);
        let places = places_of(indices, axis, extent)?;
        with_bits!(dtype, T => {
            let elements = tensor.elements::<T>();
            let mut out: Vec<T> = Vec::with_capacity(shape.iter().product());
            for row in 0..outer {
                for place in &places {
                    let start = (row * extent + place) * inner;
                    out.extend_from_slice(&elements[start..start + inner]);
                }
            }
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// Each element from where it is.
#[rule(compute)]
fn program(op: &Take, program: &mut Program) -> Result<()> {
    let (data, indices) = (program.input(0), program.input(1));
    let axis = axis_of(op.axis, data.shape().len())?;
    let behind = axis + indices.shape().len();
    program.set(&program.output(0), |i| {
        let at = index_at(&indices, &i[axis..behind], data.shape()[axis]);
        data.at(&[&i[..axis], &[at], &i[behind..]].concat())
    });
    Ok(())
}

follows_precision!(Take);

/// `g` added to zeros at the indices.
#[rule(gradient)]
fn gradient(op: &Take, at: &mut Adjoint<'_>) -> Result<Grads> {
    let axis = at.axis(at.arg(0), op.axis)?;
    let zeros = at.zeros_like(at.arg(0))?;
    let args = [zeros, at.arg(1), at.grad()];
    let g = at.apply_with("index_add", &args, &[("axis", axis.into())]);
    Ok([Grad::Of(g), Grad::Zero].into())
}

/// `Gather`. Indices that are known are counted from the start where the extent is known as well.
#[rule(import.onnx, key = "Gather", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    let (x, indices) = (node.input(0)?, node.input(1)?);
    let dims = node.dims(x)?;
    let axis = node.axis(node.int_or("axis", 0)?, dims.len())?;
    let indices = from_the_start(node, indices, dims[axis])?;
    if let Some(index) = one_index(node, indices, dims[axis])? {
        let at = |index: i64| vec![index].into();
        let part = [("begin", at(index)), ("end", at(index + 1)), ("axes", at(axis as i64))];
        let part = node.call("strided_slice", &[x], &part)?;
        return Ok(vec![node.call("squeeze", &[part], &[("axis", at(axis as i64))])?]);
    }
    Ok(vec![node.call("take", &[x, indices], &[("axis", (axis as i64).into())])?])
}

/// The index of a known extent that is known and stands alone: what is there is a part of the data.
fn one_index(node: &mut Node<'_>, indices: Value, extent: Dim) -> Result<Option<i64>, Problem> {
    if !node.dims(indices)?.is_empty() || node.terms().dim_value(extent).is_none() {
        return Ok(None);
    }
    let known = node.elements(indices);
    let numbers = known.and_then(|known| known.numbers(node.terms()));
    Ok(numbers.and_then(|numbers| numbers.first().copied()))
}

/// Known indices into a known extent, none of them negative.
fn from_the_start(node: &mut Node<'_>, indices: Value, extent: Dim) -> Result<Value, Problem> {
    let Some(extent) = node.terms().dim_value(extent) else { return Ok(indices) };
    let Some(mut known) = node.elements(indices) else { return Ok(indices) };
    let Some(numbers) = known.numbers(node.terms()) else { return Ok(indices) };
    if let Some(index) = numbers.iter().find(|&index| !(-extent..extent).contains(index)) {
        return invalid(format!("index {index} into a dimension of {extent}"));
    }
    let fixed = |index: i64| node.cx().dim(if index < 0 { index + extent } else { index });
    known.elements = numbers.into_iter().map(fixed).collect();
    node.known(&known)
}

/// `Gather` of dimensions.
#[rule(import.onnx, key = "Gather", since = 1, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::fold(node, |node, inputs| {
        let [data, indices] = inputs else { return Ok(None) };
        let &[extent] = data.shape.as_slice() else { return Ok(None) };
        node.axis(node.int_or("axis", 0)?, 1)?;
        let element = |index: i64| {
            let index = if index < 0 { index + extent as i64 } else { index };
            data.elements.get(usize::try_from(index).ok()?).copied()
        };
        let numbers = indices.numbers(node.terms());
        let elements = numbers.and_then(|numbers| numbers.into_iter().map(element).collect());
        let (dtype, shape) = (data.dtype, indices.shape.clone());
        Ok(elements.map(|elements| Known { dtype, shape, elements }))
    })
}
