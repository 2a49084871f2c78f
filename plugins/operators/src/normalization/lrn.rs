//! Local response normalization (Krizhevsky, Sutskever and Hinton 2012).
//!
//! ```ir
//! %y = nn.lrn(%x) { size = 5 }    f32[n, 8, 32, 32]  =>  f32[n, 8, 32, 32]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_float;

use super::programs;
use crate::kernel::moves::{parse, relayout};
use crate::kernel::parallel::fill;

/// x / (bias + alpha / size * sum of squares of the near channels) ^ beta
#[op(name = "nn.lrn", pattern = "out_fusable")]
pub struct Lrn {
    /// how many channels are near, all counted
    pub(crate) size: i64,
    /// scale of the sum
    #[attr(default = 1e-4)]
    pub(crate) alpha: f64,
    /// exponent
    #[attr(default = 0.75)]
    pub(crate) beta: f64,
    /// what is added to the sum
    #[attr(default = 1.0)]
    pub(crate) bias: f64,
    /// the axis of the channels
    #[attr(default = 1)]
    axis: i64,
    /// NCHW, NHWC, NCHW16c, …
    #[attr(default = "NCHW")]
    pub(crate) layout: Layout,
}

impl Lrn {
    /// How many channels before and behind its own a window reaches: no more than there are, where that is known.
    pub(crate) fn reach(&self, channels: Option<i64>) -> [i64; 2] {
        let most = channels.map_or(i64::MAX, |channels| (channels - 1).max(0));
        [(self.size - 1) / 2, self.size / 2].map(|reach| reach.min(most))
    }
}

impl Operator for Lrn {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        let size = self.size;
        if !(1..=i64::from(i32::MAX)).contains(&size) {
            return cx.bad_attr("size", size, "it must be between 1 and 2147483647");
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

/// One element after the other.
#[rule(compute)]
fn program(op: &Lrn, program: &mut Program) {
    programs::lrn::program(op, program);
}

/// With `t = bias + alpha / size sum of squares of the near channels`: `g t^-beta - 2 alpha beta / size x times
/// the sum of g x t^(-beta - 1) over the channels that x is near to`.
#[rule(gradient)]
fn gradient(op: &Lrn, at: &mut Adjoint<'_>) -> Result<Grads> {
    if op.layout.text() != "NCHW" {
        return Err(OpError::Unsupported("its layout is other than NCHW".into()));
    }
    let (x, g) = (at.arg(0), at.grad());
    let [before, after] = op.reach(at.extents(x)?.get(1).copied());
    let squares = at.mul(x, x);
    let near = channel_sums(at, squares, before, after)?;
    let near = at.scale(near, op.alpha / op.size as f64);
    let t = at.plus(near, op.bias);
    let exponent = at.number_like(x, -op.beta);
    let factor = at.apply("power", &[t, exponent]);
    let direct = at.mul(g, factor);
    let slope = at.div(factor, t);
    let product = at.mul(g, x);
    let product = at.mul(product, slope);
    let sums = channel_sums(at, product, after, before)?;
    let cross = at.mul(x, sums);
    let cross = at.scale(cross, 2.0 * op.alpha * op.beta / op.size as f64);
    Ok(Grads::of([at.sub(direct, cross)]))
}

/// For each channel, the sum of those from `before` before it to `after` behind it.
fn channel_sums(at: &mut Adjoint<'_>, x: Expr, before: i64, after: i64) -> Result<Expr> {
    let channels = at.extents(x)?[1];
    let padded = at.pad(x, &[[0, 0], [before, after], [0, 0], [0, 0]]);
    let mut sum = at.slice(padded, 1, 0, channels);
    for shift in 1..=before + after {
        let part = at.slice(padded, 1, shift, shift + channels);
        sum = at.add(sum, part);
    }
    Ok(sum)
}

/// `LRN`.
#[rule(import.onnx, key = "LRN", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let Some(size) = node.int("size")? else { return invalid("its attribute `size` is missing") };
    let attrs = [
        ("size", size.into()),
        ("alpha", node.float_or("alpha", 1e-4)?.into()),
        ("beta", node.float_or("beta", 0.75)?.into()),
        ("bias", node.float_or("bias", 1.0)?.into()),
    ];
    Ok(vec![node.call("nn.lrn", &[x], &attrs)?])
}
