//! Local response normalization (Krizhevsky, Sutskever and Hinton 2012).
//!
//! ```ir
//! %y = nn.lrn(%x) { size = 5 }    f32[n, 8, 32, 32]  =>  f32[n, 8, 32, 32]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_float;

use crate::kernel::moves::{parse, relayout};
use crate::kernel::parallel::fill;

/// x / (bias + alpha / size * sum of squares of the near channels) ^ beta
#[op(name = "nn.lrn", pattern = "out_fusable")]
pub struct Lrn {
    /// how many channels are near, all counted
    size: i64,
    /// scale of the sum
    #[attr(default = 1e-4)]
    alpha: f64,
    /// exponent
    #[attr(default = 0.75)]
    beta: f64,
    /// what is added to the sum
    #[attr(default = 1.0)]
    bias: f64,
    /// the axis of the channels
    #[attr(default = 1)]
    axis: i64,
    /// NCHW, NHWC, NCHW16c, …
    #[attr(default = "NCHW")]
    layout: Layout,
}

impl Operator for Lrn {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        let size = self.size;
        if size < 1 {
            return cx.bad_attr("size", size, "it must be positive");
        }
        let layout = cx.layout("layout", "NCHW")?;
        cx.extents(0, &layout, b"NCHW")?;
        let axis = cx.axis("axis", self.axis, layout.rank())?;
        match layout.position(b'C') == Some(axis) {
            true => cx.arg(0),
            false => cx.bad_attr(
                "axis",
                axis,
                format!("the channels of {} are elsewhere", layout.text()),
            ),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let Self { alpha, beta, bias, layout, .. } = self;
        let size = self.size as usize;
        let channels_last = parse("NHWC")?;
        let data = relayout(cx.arg(0)?, layout, &channels_last)?;
        let channels = data.shape()[3];
        with_float!(data.dtype(), T => {
            let x = data.elements::<T>();
            let mut out = vec![T::default(); x.len()];
            fill(&mut out, channels, &|row, out| {
                let x = &x[row * channels..][..channels];
                for (channel, out) in out.iter_mut().enumerate() {
                    let first = channel.saturating_sub((size - 1) / 2);
                    let end = (channel + size / 2 + 1).min(channels);
                    let squares: f64 = x[first..end].iter().map(|x| x.to_f64() * x.to_f64()).sum();
                    let norm = (bias + alpha / size as f64 * squares).powf(*beta);
                    *out = T::from_f64(x[channel].to_f64() / norm);
                }
            });
            let out = Tensor::from_vec_as(data.dtype(), data.shape().to_vec(), out);
            Ok(vec![relayout(&out, &channels_last, layout)?])
        })
    }
}
