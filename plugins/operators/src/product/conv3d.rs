//! Convolution over three spatial axes.
//!
//! ```ir
//! %y = nn.conv3d(%x, %w) { padding = [1, 1, 1, 1, 1, 1] }    f32[n, 3, 8, 16, 16], f32[4, 3, 3, 3, 3]  =>  f32[n, 4, 8, 16, 16]
//! ```

use tenon_plugin_api::op::number::Sum;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{self, Buffer, Extent, Reducer, compute_dtype};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use crate::kernel::convert::convert;
use crate::kernel::parallel::fill;
use crate::kernel::window::Window;
use crate::precision::gains_by_precision;

/// Convolution over three spatial axes, of data in the layout NCDHW with kernels in the layout OIDHW
#[op(name = "nn.conv3d", args = 2, pattern = "out_fusable")]
pub struct Conv3d {
    /// step of the window
    #[attr(default = [1, 1, 1])]
    strides: [i64; 3],
    /// before each axis, then behind each
    #[attr(default = [0, 0, 0, 0, 0, 0])]
    padding: [i64; 6],
    /// distance of the taps
    #[attr(default = [1, 1, 1])]
    dilation: [i64; 3],
    /// groups of channels that do not mix
    #[attr(default = 1)]
    groups: i64,
    /// element type of the result: that of the data when empty, or f32 for f16 and bf16
    #[attr(default = "")]
    out_dtype: String,
}

impl Operator for Conv3d {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let windows = Window::each(cx, &self.strides, &self.padding, &self.dilation)?;
        let groups = self.groups;
        if groups < 1 {
            return cx.bad_attr("groups", groups, "it must be positive");
        }
        cx.check_same_dtype(1)?;
        let dtype = cx.product_dtype("out_dtype", &self.out_dtype)?;
        let (data, kernel) = (cx.tensor_of_rank(0, 5)?.dims, cx.tensor_of_rank(1, 5)?.dims);
        let (Some(data), Some(kernel)) = (data, kernel) else {
            return Ok(cx.tensor_type(dtype, None));
        };
        let needed = cx.dim_mul(kernel[1], cx.dim(groups));
        if cx.is_different(data[1], needed) {
            let what = format!("the channels of data and kernel, with groups = {groups},");
            return Err(cx.mismatch(&what, &data[1..2], &[needed]));
        }
        if cx.value(kernel[0]).is_some_and(|outputs| outputs % groups != 0) {
            return cx.bad_attr("groups", groups, "the output channels are no multiple of it");
        }
        let mut dims = vec![data[0], kernel[0]];
        for (axis, window) in windows.iter().enumerate() {
            dims.push(window.out_dim(cx, data[2 + axis], kernel[2 + axis], false)?);
        }
        Ok(cx.tensor_type(dtype, Some(&dims)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        // Elements of a wider type hold what the narrow ones are.
        let (data, kernel) = (convert(cx.arg(0)?, dtype)?, convert(cx.arg(1)?, dtype)?);
        let (&[_, channels, d, h, w], &[outputs, inputs, kd, kh, kw], &[_, _, od, oh, ow]) =
            (data.shape(), kernel.shape(), shape)
        else {
            return Err(OpError::Unsupported("tensors of five dimensions are expected".into()));
        };
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
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// One element after the other.
#[rule(compute)]
fn program(op: &Conv3d, program: &mut Program) {
    let program = &*program;
    let (weight, out) = (program.input(1), program.output(0));
    let dtype = compute_dtype(weight.dtype());
    let cx = program.cx();
    let outputs = cx.dim_floor_div(weight.shape()[0], cx.dim(op.groups));
    let inputs = weight.shape()[1];
    let data = match op.padding {
        [0, 0, 0, 0, 0, 0] => program.input(0),
        _ => padded(op, program),
    };
    let sum =
        program.reduce("acc", Reducer::Sum, dtype, out.shape(), &weight.shape()[1..], |i, k| {
            let channel = match op.groups {
                1 => k[0],
                _ => i[1] / outputs.index(program) * inputs.index(program) + k[0],
            };
            let mut at = vec![i[0], channel];
            for axis in 0..3 {
                at.push(i[2 + axis] * op.strides[axis] + k[1 + axis] * op.dilation[axis]);
            }
            data.at(&at).cast(dtype) * weight.wide(&[&i[1..2], k].concat())
        });
    program.set(&out, |i| sum.at(i));
}

/// The data with zeros around it, as much of it as windows reach.
fn padded<'p>(op: &Conv3d, program: &'p Program) -> Buffer<'p> {
    let (data, weight, out) = (program.input(0), program.input(1), program.output(0));
    let cx = program.cx();
    let mut shape = data.shape().to_vec();
    for axis in 0..3 {
        let steps = |dim: Dim, step: i64| cx.dim_mul(cx.dim_add(dim, cx.dim(-1)), cx.dim(step));
        let moved = steps(out.shape()[2 + axis], op.strides[axis]);
        let reach = steps(weight.shape()[2 + axis], op.dilation[axis]);
        shape[2 + axis] = cx.dim_add(cx.dim_add(moved, reach), cx.dim(1));
    }
    program.map("padded", data.dtype(), &shape, |i| {
        let mut nearest = i.to_vec();
        let mut is_inside: Option<program::Scalar<'p>> = None;
        for axis in 0..3 {
            let (at, own) = (i[2 + axis] - op.padding[axis], data.shape()[2 + axis]);
            let own = own.index(program);
            nearest[2 + axis] = at.max(0).min(own - 1);
            let is_in = at.ge(0).and(at.lt(own));
            is_inside = Some(is_inside.map_or(is_in, |before| before.and(is_in)));
        }
        let (value, zero) = (data.at(&nearest), program.literal(data.dtype(), 0.0));
        is_inside.map_or(value, |is_inside| is_inside.select(value, zero))
    })
}

gains_by_precision!(Conv3d);
