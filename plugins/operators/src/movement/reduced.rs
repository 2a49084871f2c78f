//! What becomes of an element that is there and one that is put at its place.

use tenon_plugin_api::ir::AttrValue;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Buffer, Reducer, Scalar, Stmt};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::{with_bits, with_number};

/// A tensor with parts of `inner` elements put one after the other, each from one of `starts` on.
pub(crate) fn put(
    tensor: &Tensor,
    starts: &[usize],
    updates: &Tensor,
    inner: usize,
    reduction: &str,
) -> Result<Tensor> {
    let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
    if reduction == "update" {
        return with_bits!(dtype, T => {
            let mut out = tensor.elements::<T>().to_vec();
            let updates = updates.elements::<T>();
            for (number, &start) in starts.iter().enumerate() {
                out[start..start + inner].copy_from_slice(&updates[number * inner..][..inner]);
            }
            Ok(Tensor::from_vec_as(dtype, shape, out))
        });
    }
    with_number!(dtype, T => {
        let combine: fn(T, T) -> T = match reduction {
            "add" => T::add,
            "mul" => T::mul,
            "max" => T::larger,
            _ => T::smaller,
        };
        let mut out = tensor.elements::<T>().to_vec();
        let updates = updates.elements::<T>();
        for (number, &start) in starts.iter().enumerate() {
            let updates = &updates[number * inner..][..inner];
            let out = &mut out[start..start + inner];
            out.iter_mut().zip(updates).for_each(|(out, &update)| *out = combine(*out, update));
        }
        Ok(Tensor::from_vec_as(dtype, shape, out))
    })
}

/// How a program puts an element.
pub(crate) struct Reduction(Option<Reducer>);

impl Reduction {
    pub(crate) fn of(name: &str) -> Self {
        Self(match name {
            "add" => Some(Reducer::Sum),
            "mul" => Some(Reducer::Product),
            "max" => Some(Reducer::Max),
            "min" => Some(Reducer::Min),
            _ => None,
        })
    }

    /// Puts the element of `updates` at `from` where `target` says.
    pub(crate) fn store<'p>(
        &self,
        out: &Buffer<'p>,
        target: &[Scalar<'p>],
        updates: &Buffer<'p>,
        from: &[Scalar<'p>],
    ) -> Stmt {
        let value = match self.0 {
            None => updates.at(from),
            Some(reducer) => reducer.combine(out.wide(target), updates.wide(from)),
        };
        out.set(target, value)
    }
}

/// Whether it is computed in a narrow element type when its arguments are narrow: not where many elements may be summed.
pub(crate) fn follows(reduction: &str) -> Option<Precision> {
    matches!(reduction, "update" | "max" | "min").then_some(Precision::Follow)
}

/// What data and updates get of the adjoint of the result, where updates replace elements or are added.
pub(crate) fn scatter_gradient(
    at: &mut Adjoint<'_>,
    reduction: &str,
    [scatter, gather]: [&str; 2],
    attrs: &[(&str, AttrValue)],
) -> Result<Grads, PassError> {
    let (indices, updates, g) = (at.arg(1), at.arg(2), at.grad());
    let data = match reduction {
        "add" => g,
        "update" => {
            let zeros = at.zeros_like(updates)?;
            at.apply_with(scatter, &[g, indices, zeros], attrs)
        }
        other => {
            let text = format!("there is no gradient of the reduction `{other}`");
            return Err(PassError::new(text));
        }
    };
    let updates = at.apply_with(gather, &[g, indices], attrs);
    Ok([Grad::Of(data), Grad::Zero, Grad::Of(updates)].into())
}
