//! Parts added to a tensor at indices.
//!
//! ```ir
//! %y = index_add(%x, %i, %p)    f32[9, 3], i64[n], f32[n, 3]  =>  f32[9, 3]
//! ```
//!
//! What is added has the shape of `take` with the same indices. Parts at the same index are added one after the other.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::places::{around, places_of, taken};
use crate::kernel::moves::wrap_axis;
use crate::program::index::{axis_of, index_at, unless_empty};

/// The first argument with parts added along an axis: the third argument, at the indices in the second
#[op(name = "index_add", args = 3)]
pub struct IndexAdd {
    /// the axis that is indexed
    #[attr(default = 0)]
    axis: i64,
}

impl Operator for IndexAdd {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_same_dtype(2)?;
        let found = cx.tensor(0)?.dtype;
        if found.is_bool() {
            return Err(OpError::WrongDType { index: 0, expected: "a number".into(), found });
        }
        let parts = cx.terms().ty(taken(cx, self.axis)?);
        if let (TypeView::Tensor { dims: Some(parts), .. }, Some(added)) =
            (parts, cx.tensor(2)?.dims)
        {
            let is_different = |(&a, &b): (&Dim, &Dim)| cx.is_different(a, b);
            if parts.len() != added.len() || parts.iter().zip(added).any(is_different) {
                return Err(cx.mismatch(
                    "the shapes of the parts and of what is added",
                    parts,
                    added,
                ));
            }
        }
        cx.arg(0)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (tensor, added) = (cx.arg(0)?, cx.arg(2)?);
        let axis = wrap_axis(self.axis, tensor.shape().len());
        let (outer, extent, inner) = around(tensor.shape(), axis);
        let places = places_of(cx.arg(1)?, axis, extent)?;
        with_number!(tensor.dtype(), T => {
            let added = added.elements::<T>();
            let mut out = tensor.elements::<T>().to_vec();
            for row in 0..outer {
                for (number, place) in places.iter().enumerate() {
                    let out = &mut out[(row * extent + place) * inner..][..inner];
                    let added = &added[(row * places.len() + number) * inner..][..inner];
                    out.iter_mut().zip(added).for_each(|(out, &added)| *out = out.add(added));
                }
            }
            Ok(vec![Tensor::from_vec_as(tensor.dtype(), tensor.shape().to_vec(), out)])
        })
    }
}

/// A copy, then one part after the other: two indices may be equal.
#[rule(compute)]
fn program(op: &IndexAdd, program: &mut Program) -> Result<()> {
    let [data, indices, parts] = [0, 1, 2].map(|index| program.input(index));
    let out = program.output(0);
    let axis = axis_of(op.axis, data.shape().len())?;
    let behind = axis + indices.shape().len();
    program.set(&out, |i| data.at(i));
    let rank = parts.shape().len();
    program.in_order(&unless_empty(&data, parts.shape()), |i| {
        let i = &i[..rank];
        let at = index_at(&indices, &i[axis..behind], data.shape()[axis]);
        let target = [&i[..axis], &[at], &i[behind..]].concat();
        out.set(&target, out.wide(&target) + parts.wide(i))
    });
    Ok(())
}

/// `g`, and its parts at the indices.
#[rule(gradient)]
fn gradient(op: &IndexAdd, at: &mut Adjoint<'_>) -> Result<Grads> {
    let g = at.grad();
    let axis = at.axis(g, op.axis)?;
    let parts = at.apply_with("take", &[g, at.arg(1)], &[("axis", axis.into())]);
    Ok([Grad::Of(g), Grad::Zero, Grad::Of(parts)].into())
}
