//! Convolution over three spatial axes, in any layout.
//!
//! ```ir
//! %y = nn.conv3d(%x, %w) { padding = [1, 1, 1, 1, 1, 1] }    f32[n, 3, 8, 16, 16], f32[4, 3, 3, 3, 3]  =>  f32[n, 4, 8, 16, 16]
//! ```

use tenon_plugin_api::op::number::Sum;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::compute_dtype;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::convolution::{Convolution, dead_taps, program};
use crate::kernel::convert::convert;
use crate::kernel::moves::{parse, relayout};
use crate::kernel::parallel::fill;
use crate::precision::gains_by_precision;

/// Convolution over three spatial axes
#[op(name = "nn.conv3d", args = 2, pattern = "out_fusable")]
pub struct Conv3d {
    /// step of the window
    #[attr(default = [1, 1, 1])]
    pub(super) strides: [i64; 3],
    /// before each axis, then behind each
    #[attr(default = [0, 0, 0, 0, 0, 0])]
    pub(super) padding: [i64; 6],
    /// distance of the taps
    #[attr(default = [1, 1, 1])]
    pub(super) dilation: [i64; 3],
    /// groups of channels that do not mix
    #[attr(default = 1)]
    pub(super) groups: i64,
    /// output channels, where the blocks of the kernel hold more
    pub(super) channels: Option<i64>,
    /// lines of zeros around the data, along all axes but the last, are left out, not multiplied
    #[attr(default = false)]
    pub(super) skip_lines: bool,
    /// NCDHW, NCDHW16c, …
    #[attr(default = "NCDHW")]
    pub(super) data_layout: Layout,
    /// OIDHW, OIDHW16i16o, …
    #[attr(default = "OIDHW")]
    pub(super) kernel_layout: Layout,
    /// data_layout when empty
    #[attr(default = "")]
    pub(super) out_layout: String,
    /// element type of the result: that of the data when empty, or f32 for f16 and bf16
    #[attr(default = "")]
    pub(super) out_dtype: String,
}

impl Operator for Conv3d {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_same_dtype(1)?;
        let dtype = cx.product_dtype("out_dtype", &self.out_dtype)?;
        self.convolution().result(cx, dtype, [b"NCDHW", b"OIDHW"])
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, _) = cx.out()?;
        let (plain, plain_kernel) = (parse("NCDHW")?, parse("OIDHW")?);
        // Elements of a wider type hold what the narrow ones are.
        let data = relayout(&convert(cx.arg(0)?, dtype)?, &self.data_layout, &plain)?;
        let kernel = relayout(&convert(cx.arg(1)?, dtype)?, &self.kernel_layout, &plain_kernel)?;
        let layout = self.convolution().result_layout()?;
        Ok(vec![relayout(&self.convolve(&data, &kernel)?, &plain, &layout)?])
    }
}

impl Conv3d {
    /// It as one of the convolutions.
    pub(super) fn convolution(&self) -> Convolution<'_> {
        Convolution {
            axes: b"DHW",
            strides: &self.strides,
            padding: &self.padding,
            dilation: &self.dilation,
            groups: self.groups,
            channels: self.channels,
            skips_lines: self.skip_lines,
            data_layout: &self.data_layout,
            kernel_layout: &self.kernel_layout,
            out_layout: &self.out_layout,
        }
    }

    /// The result in the plain layouts.
    pub(super) fn convolve(&self, data: &Tensor, kernel: &Tensor) -> Result<Tensor> {
        let (&[batch, channels, d, h, w], &[held, inputs, kd, kh, kw]) =
            (data.shape(), kernel.shape())
        else {
            return Err(OpError::Unsupported("tensors of five dimensions are expected".into()));
        };
        let outputs = self.channels.map_or(held, |channels| channels as usize);
        let places = |axis: usize, extent: usize, taps: usize| {
            let around = (self.padding[axis] + self.padding[axis + 3]) as usize;
            let reach = (taps - 1) * self.dilation[axis] as usize + 1;
            (extent + around - reach) / self.strides[axis] as usize + 1
        };
        let (od, oh, ow) = (places(0, d, kd), places(1, h, kh), places(2, w, kw));
        let (dtype, shape) = (data.dtype(), vec![batch, outputs, od, oh, ow]);
        let per_group = (outputs / self.groups as usize).max(1);
        let index = |axis: usize, at: usize, tap: usize, extent: usize| {
            let at = at as i64 * self.strides[axis] + tap as i64 * self.dilation[axis];
            let index = at - self.padding[axis];
            (0..extent as i64).contains(&index).then_some(index as usize)
        };
        with_number!(dtype, T => {
            let (x, weight) = (data.elements::<T>(), kernel.elements::<T>());
            let mut out = vec![T::default(); shape.iter().product()];
            fill(&mut out, od * oh * ow, &|number, out| {
                let (image, output) = (number / outputs, number % outputs);
                let first = output / per_group * inputs;
                for (place, out) in out.iter_mut().enumerate() {
                    let (z, y, column) = (place / (oh * ow), place / ow % oh, place % ow);
                    let mut sum = <T as Number>::Sum::default();
                    for tap in 0..inputs * kd * kh * kw {
                        let (input, rest) = (tap / (kd * kh * kw), tap % (kd * kh * kw));
                        let (tz, ty, tx) = (rest / (kh * kw), rest / kw % kh, rest % kw);
                        let place =
                            (index(0, z, tz, d), index(1, y, ty, h), index(2, column, tx, w));
                        if self.skip_lines && (place.0.is_none() || place.1.is_none()) {
                            continue;
                        }
                        let value = match place {
                            (Some(z), Some(y), Some(column)) => {
                                let from = ((image * channels + first + input) * d + z) * h + y;
                                x[from * w + column]
                            }
                            // Zeros beyond the data are multiplied too.
                            _ => T::default(),
                        };
                        let weight = weight[output * inputs * kd * kh * kw + tap];
                        let term = Sum::mul(value.widen(), weight.widen());
                        sum = Sum::add(sum, term);
                    }
                    *out = T::narrow(sum);
                }
            });
            Ok(Tensor::from_vec_as(dtype, shape, out))
        })
    }
}

/// Without the taps that meet padding alone.
#[rule(simplify)]
fn simplify(op: &Conv3d, at: &mut Site<'_>) -> Option<Expr> {
    dead_taps::without(&op.convolution(), "nn.conv3d", at)
}

/// One element after the other.
#[rule(compute)]
fn program(op: &Conv3d, program: &mut Program) -> Option<()> {
    let dtype = compute_dtype(program.input(1).dtype());
    let beyond = program.literal(program.input(0).dtype(), 0.0);
    program::plain(&op.convolution(), program, dtype, beyond)
}

/// For each element of the result a multiplication and an addition for each element of a kernel.
#[rule(cost)]
fn cost(op: &Conv3d, at: &mut Site<'_>) -> Option<Cost> {
    op.convolution().cost(at)
}

gains_by_precision!(Conv3d);
