//! A number added to each channel.
//!
//! ```ir
//! %y = nn.bias_add(%x, %b)    f32[n, 8, 32, 32], f32[8]  =>  f32[n, 8, 32, 32]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::per_channel::{beside_channels, per_channel};
use crate::kernel::moves::wrap_axis;
use crate::kernel::parallel::fill;
use crate::precision::follows_precision;
use crate::program::index::axis_of;

/// x + b, with a number of b for each channel; arguments x, b
#[op(name = "nn.bias_add", args = 2, pattern = "broadcast")]
pub struct BiasAdd {
    /// the axis of the channels
    #[attr(default = 1)]
    axis: i64,
}

impl Operator for BiasAdd {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let found = cx.tensor(0)?.dtype;
        match found.is_bool() {
            true => Err(OpError::WrongDType { index: 0, expected: "a number".into(), found }),
            false => per_channel(cx, self.axis, 1..2),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let axis = wrap_axis(self.axis, shape.len());
        let inner: usize = shape[axis + 1..].iter().product();
        with_number!(dtype, T => {
            let (x, bias) = (cx.arg(0)?.elements::<T>(), cx.arg(1)?.elements::<T>());
            let mut out = vec![T::default(); x.len()];
            fill(&mut out, inner, &|row, out| {
                let bias = bias[row % bias.len()];
                out.iter_mut().zip(&x[row * inner..]).for_each(|(out, &x)| *out = x.add(bias));
            });
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// One element after the other.
#[rule(compute)]
fn program(op: &BiasAdd, program: &mut Program) -> Result<()> {
    let (x, bias, out) = (program.input(0), program.input(1), program.output(0));
    let axis = axis_of(op.axis, out.shape().len())?;
    program.set(&out, |i| x.wide(i) + bias.wide(&[i[axis]]));
    Ok(())
}

/// An addition, of a bias with an axis of extent 1 for each one behind the channels. Of unknown rank it stays.
#[rule(canonicalize)]
fn canonicalize(op: &BiasAdd, at: &mut Site<'_>) -> Option<Expr> {
    let [x, bias] = at.args()?;
    let rank = at.rank(x)?;
    let axis = wrap_axis(op.axis, rank);
    let behind: Vec<i64> = (1..(rank - axis) as i64).collect();
    let bias = at.expand_dims(bias, &behind);
    Some(at.apply("add", &[x, bias]))
}

follows_precision!(BiasAdd);

/// Along the place of its channels.
#[rule(layout)]
fn layout(op: &BiasAdd, at: &mut Following<'_>) -> Option<Carried> {
    at.along_axis("axis", op.axis)
}

/// `g`, and its sum over all but the channels.
#[rule(gradient)]
fn gradient(op: &BiasAdd, at: &mut Adjoint<'_>) -> Result<Grads> {
    let (others, _) = beside_channels(at.rank(at.arg(0))?, op.axis);
    let bias = at.reduce("sum", at.grad(), &others, false);
    Ok(Grads::of([at.grad(), bias]))
}
