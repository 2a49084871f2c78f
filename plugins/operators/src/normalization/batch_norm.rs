//! Normalization by statistics that are known (Ioffe and Szegedy 2015).
//!
//! ```ir
//! %y = nn.batch_norm(%x, %gamma, %beta, %mean, %var)    f32[n, 8, 32, 32], f32[8], f32[8], f32[8], f32[8]  =>  f32[n, 8, 32, 32]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_float;

use super::per_channel::per_channel;
use crate::kernel::moves::wrap_axis;
use crate::kernel::parallel::fill;

/// (x - mean) / sqrt(var + epsilon) * gamma + beta, for each channel; arguments x, gamma, beta, mean, var
#[op(name = "nn.batch_norm", args = 5, pattern = "broadcast")]
pub struct BatchNorm {
    /// keeps the root from zero
    #[attr(default = 1e-5)]
    epsilon: f64,
    /// the axis of the channels
    #[attr(default = 1)]
    axis: i64,
}

impl Operator for BatchNorm {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        per_channel(cx, self.axis, 1..5)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let axis = wrap_axis(self.axis, shape.len());
        let inner: usize = shape[axis + 1..].iter().product();
        with_float!(dtype, T => {
            let param = |index| -> Result<Vec<f64>> {
                Ok(cx.arg(index)?.elements::<T>().iter().map(|x| x.to_f64()).collect())
            };
            let (gamma, beta) = (param(1)?, param(2)?);
            let (mean, var) = (param(3)?, param(4)?);
            let x = cx.arg(0)?.elements::<T>();
            let mut out = vec![T::default(); x.len()];
            fill(&mut out, inner, &|row, out| {
                let channel = row % gamma.len();
                let scale = gamma[channel] / (var[channel] + self.epsilon).sqrt();
                for (out, x) in out.iter_mut().zip(&x[row * inner..]) {
                    *out = T::from_f64((x.to_f64() - mean[channel]) * scale + beta[channel]);
                }
            });
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// Along the place of its channels.
#[rule(layout)]
fn layout(op: &BatchNorm, at: &mut Following<'_>) -> Option<Carried> {
    at.along_axis("axis", op.axis)
}
