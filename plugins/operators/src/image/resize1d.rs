//! An axis with another extent.
//!
//! ```ir
//! %y = image.resize1d(%x, %s) { axis = 2 }    f32[n, 3, 32, 32], shape[64]  =>  f32[n, 3, 64, 32]
//! ```
//!
//! Each place of the result lies somewhere between elements of the data, and is made of those around it. Images are resized axis by axis.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Extent, Reducer, Scalar};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::{with_bits, with_float};

use super::kernels::Kernel;
use super::resize_onnx;
use crate::kernel::moves::wrap_axis;
use crate::precision::follows_precision;
use crate::program::guarded;

/// An axis with as many elements as the second argument, a shape of one dimension, says
#[op(name = "image.resize1d", args = 2)]
pub struct Resize1d {
    /// the axis
    axis: i64,
    /// nearest_neighbor, linear or cubic
    #[attr(default = "linear", one_of = ["nearest_neighbor", "linear", "cubic"])]
    method: String,
    /// how places of the result lie on the data: half_pixel, half_pixel_symmetric, pytorch_half_pixel, tf_half_pixel_for_nn,
    /// align_corners, asymmetric or tf_crop_and_resize
    #[attr(default = "half_pixel", one_of = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "align_corners", "asymmetric", "tf_crop_and_resize"])]
    coordinate_transformation_mode: String,
    /// which neighbour is the nearest: round_prefer_floor, round_prefer_ceil, floor or ceil
    #[attr(default = "round_prefer_floor", one_of = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])]
    rounding_method: String,
    /// the parameter of cubic polynomials
    #[attr(default = -0.75)]
    cubic_alpha: f64,
    /// whether neighbours outside of the data count for nothing; the nearest element stands for them otherwise
    #[attr(default = false)]
    exclude_outside: bool,
    /// whether a smaller result is made of as many neighbours as it is smaller
    #[attr(default = false)]
    antialias: bool,
    /// what lies outside of the data with tf_crop_and_resize
    #[attr(default = 0.0)]
    extrapolation_value: f64,
    /// where tf_crop_and_resize begins, as a part of the axis
    #[attr(default = 0.0)]
    roi_start: f64,
    /// where it ends
    #[attr(default = 1.0)]
    roi_end: f64,
    /// places of the result for one of the data, where that is not the quotient of the extents
    scale: Option<f64>,
}

impl Operator for Resize1d {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let tensor = cx.tensor(0)?;
        if self.method != "nearest_neighbor" {
            cx.check_float(0)?;
        }
        if self.scale.is_some_and(|scale| !(scale.is_finite() && scale > 0.0)) {
            return cx.bad_attr("scale", self.scale, "it must be positive");
        }
        let size = match cx.shape(1)? {
            Some(&[size]) => size,
            Some(_) => return Err(cx.wrong_arg(1, "a shape of one dimension")),
            None => return Ok(cx.tensor_type(tensor.dtype, None)),
        };
        let Some(dims) = tensor.dims else { return Ok(cx.tensor_type(tensor.dtype, None)) };
        let axis = cx.axis("axis", self.axis, dims.len())?;
        if cx.value(dims[axis]) == Some(0) && cx.value(size) != Some(0) {
            return cx.unsupported("an axis without elements has no other size");
        }
        if self.kernel().is_some() && self.antialias && self.scale.is_none() {
            let [Some(_), Some(_)] = [dims[axis], size].map(|dim| cx.value(dim)) else {
                return cx.unsupported("antialias of a symbolic dimension needs a `scale`");
            };
        }
        let mut resized = dims.to_vec();
        resized[axis] = size;
        Ok(cx.tensor_type(tensor.dtype, Some(&resized)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let x = cx.arg(0)?;
        let (dtype, shape) = cx.out()?;
        let axis = wrap_axis(self.axis, shape.len());
        let (extent, out) = (x.shape()[axis], shape[axis]);
        let inner: usize = shape[axis + 1..].iter().product();
        let outer: usize = shape[..axis].iter().product();
        if extent == 0 && out != 0 {
            return Err(OpError::Value("an axis without elements has no other size".into()));
        }
        let places: Vec<f64> = (0..out).map(|at| self.place(at, [extent, out])).collect();
        let last = extent as f64 - 1.0;
        let is_cropped = self.coordinate_transformation_mode == "tf_crop_and_resize";
        let is_outside = |place: f64| is_cropped && !(0.0..=last).contains(&place);
        let clamped = |index: f64| index.clamp(0.0, last.max(0.0)) as usize;
        let Some(kernel) = self.kernel() else {
            return with_bits!(dtype, T => {
                let elements = x.elements::<T>();
                let beyond = self.beyond(dtype)?.elements::<T>()[0];
                let mut all = Vec::with_capacity(outer * out * inner);
                for part in 0..outer {
                    for &place in &places {
                        let from = (part * extent + clamped(self.rounded(place))) * inner;
                        match is_outside(place) {
                            true => all.resize(all.len() + inner, beyond),
                            false => all.extend_from_slice(&elements[from..from + inner]),
                        }
                    }
                }
                Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), all)])
            });
        };
        let (squeeze, first, taps) = self.taps(kernel, [extent, out]);
        with_float!(dtype, T => {
            let elements = x.elements::<T>();
            let mut all = Vec::with_capacity(outer * out * inner);
            for part in 0..outer {
                for &place in &places {
                    let start = place.floor() + first as f64;
                    let index = |tap: usize| start + tap as f64;
                    let is_left_out = |tap: usize| {
                        self.exclude_outside && !(0.0..=last).contains(&index(tap))
                    };
                    let mut weights: Vec<f64> = (0..taps).map(|tap| match is_left_out(tap) {
                        true => 0.0,
                        false => kernel.weight((index(tap) - place) * squeeze),
                    }).collect();
                    if self.is_normalized() {
                        let sum: f64 = weights.iter().sum();
                        weights.iter_mut().for_each(|weight| *weight /= sum);
                    }
                    for column in 0..inner {
                        let value = |tap: usize| {
                            elements[(part * extent + clamped(index(tap))) * inner + column].to_f64()
                        };
                        all.push(T::from_f64(match is_outside(place) {
                            true => self.extrapolation_value,
                            false => (0..taps).map(|tap| weights[tap] * value(tap)).sum(),
                        }));
                    }
                }
            }
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), all)])
        })
    }
}

impl Resize1d {
    /// What reads between elements; none for the nearest one.
    fn kernel(&self) -> Option<Kernel> {
        match self.method.as_str() {
            "linear" => Some(Kernel::Linear),
            "cubic" => Some(Kernel::Cubic(self.cubic_alpha)),
            _ => None,
        }
    }

    fn is_normalized(&self) -> bool {
        self.exclude_outside || self.antialias
    }

    /// How much nearer neighbours count as they are, the first of them as seen from the one before a place, and how many there are.
    fn taps(&self, kernel: Kernel, [extent, out]: [usize; 2]) -> (f64, i64, usize) {
        let scale = self.scale.unwrap_or(out as f64 / extent.max(1) as f64);
        let squeeze = if self.antialias { scale.min(1.0) } else { 1.0 };
        let first = (-kernel.reach() / squeeze).floor() + 1.0;
        (squeeze, first as i64, (2.0 - 2.0 * first) as usize)
    }

    /// Where a place of the result lies on the data.
    fn place(&self, at: usize, [extent, out]: [usize; 2]) -> f64 {
        let (at, length, count) = (at as f64, extent as f64, out as f64);
        let scale = self.scale.unwrap_or(count / length);
        let width = self.scale.map_or(count, |scale| scale * length);
        match self.coordinate_transformation_mode.as_str() {
            "half_pixel_symmetric" => {
                let offset = length / 2.0 * (1.0 - count / width);
                offset + ((at + 0.5) / scale - 0.5)
            }
            "pytorch_half_pixel" if count <= 1.0 => 0.0,
            "align_corners" if width == 1.0 => 0.0,
            "align_corners" => at * (length - 1.0) / (width - 1.0),
            "asymmetric" => at / scale,
            "tf_half_pixel_for_nn" => (at + 0.5) / scale,
            "tf_crop_and_resize" => {
                let span = (self.roi_end - self.roi_start) * (length - 1.0);
                let own = if width == 1.0 { span / 2.0 } else { at * span / (width - 1.0) };
                self.roi_start * (length - 1.0) + own
            }
            _ => (at + 0.5) / scale - 0.5,
        }
    }

    fn rounded(&self, place: f64) -> f64 {
        match self.rounding_method.as_str() {
            "round_prefer_ceil" => (place + 0.5).floor(),
            "floor" => place.floor(),
            "ceil" => place.ceil(),
            _ => (place - 0.5).ceil(),
        }
    }

    /// What lies outside of the data, as a tensor without dimensions.
    fn beyond(&self, dtype: DType) -> Result<Tensor> {
        tenon_plugin_api::with_number!(dtype, T => {
            Ok(Tensor::from_vec_as(dtype, Vec::new(), vec![T::from_f64(self.extrapolation_value)]))
        })
    }
}

/// Indices and weights for each place of the axis, then each element.
#[rule(compute)]
fn program(op: &Resize1d, program: &mut Program) -> Result<()> {
    let (x, out) = (program.input(0), program.output(0));
    let axis = wrap_axis(op.axis, out.shape().len());
    let on = Axis::of(op, program, [x.shape()[axis], out.shape()[axis]]);
    // The axis may turn out to have no elements that could be read.
    let is_guarded = program.dim_value(on.extent).is_none() && program.dim_value(on.out).is_some();
    let is_cropped = op.coordinate_transformation_mode == "tf_crop_and_resize";
    let is_inside = match is_cropped {
        true => program.map("inside", DType::BOOL, &[on.out], |i| {
            let place = on.place(i[0]);
            place.ge(0.0).and(on.length.ge(place + 1.0))
        }),
        false => x.clone(),
    };
    let beyond = program.literal(out.dtype(), op.extrapolation_value);
    let Some(kernel) = op.kernel() else {
        let index = program.map("index", DType::I64, &[on.out], |i| on.clamped(on.rounded(i[0])));
        program.each(out.shape(), |i| {
            let value = x.at(&with_index(i, axis, index.at(&[i[axis]])));
            let set = out.set(
                i,
                match is_cropped {
                    true => is_inside.at(&[i[axis]]).select(value, beyond),
                    false => value,
                },
            );
            match is_guarded {
                true => program.when(on.extent.index(program).gt(0), set),
                false => set,
            }
        });
        return Ok(());
    };
    let extents = [on.extent, on.out].map(|dim| program.dim_value(dim).unwrap_or(1) as usize);
    let (squeeze, first, taps) = op.taps(kernel, extents);
    let taps = taps as i64;
    let first = program.map("first", DType::I64, &[on.out], |i| {
        on.place(i[0]).call("floor").cast(DType::I64) + first
    });
    let two = |cx: &dyn Context| [on.out, cx.dim(taps)];
    let shape = two(&program.cx());
    let raw = program.map("raw", DType::F64, &shape, |i| {
        let index = first.at(&i[..1]) + i[1];
        let distance = (index.cast(DType::F64) - on.place(i[0])) * squeeze;
        let weight = kernel.weight_of(distance);
        let is_there = index.ge(0).and(index.lt(on.extent.index(program)));
        match op.exclude_outside {
            true => is_there.select(weight, program.literal(DType::F64, 0.0)),
            false => weight,
        }
    });
    let dtype = x.compute_dtype();
    let weights = match op.is_normalized() {
        false => raw,
        true => {
            let term = |i: &[_], k: &[_]| raw.at(&[i[0], k[0]]);
            let sum = program.reduce("sum", Reducer::Sum, DType::F64, &[on.out], &[taps], term);
            program.map("weights", DType::F64, &shape, |i| raw.at(i) / sum.at(&i[..1]))
        }
    };
    // A symbolic axis that becomes one of a known extent may have no elements that could be read.
    let read = if is_guarded { vec![on.extent] } else { Vec::new() };
    guarded::sums(
        program,
        &read,
        dtype,
        &[taps],
        |i, k| {
            let index = (first.at(&[i[axis]]) + k[0]).min(on.extent.index(program) - 1).max(0);
            x.wide(&with_index(i, axis, index)) * weights.at(&[i[axis], k[0]]).cast(dtype)
        },
        |i, sum| match is_cropped {
            true => is_inside.at(&[i[axis]]).select(sum.cast(out.dtype()), beyond),
            false => sum,
        },
    );
    Ok(())
}

/// A place with another index along an axis.
fn with_index<'p>(place: &[Scalar<'p>], axis: usize, index: Scalar<'p>) -> Vec<Scalar<'p>> {
    [&place[..axis], &[index], &place[axis + 1..]].concat()
}

/// The axis in a program.
struct Axis<'a, 'p> {
    op: &'a Resize1d,
    extent: Dim,
    out: Dim,
    length: Scalar<'p>,
    count: Scalar<'p>,
}

impl<'a, 'p> Axis<'a, 'p> {
    fn of(op: &'a Resize1d, program: &'p Program, [extent, out]: [Dim; 2]) -> Self {
        let float = |dim: Dim| dim.index(program).cast(DType::F64);
        Self { op, extent, out, length: float(extent), count: float(out) }
    }

    /// Where a place of the result lies on the data.
    fn place(&self, at: Scalar<'p>) -> Scalar<'p> {
        let (op, length, count) = (self.op, self.length, self.count);
        let program = length.program();
        let number = |value| program.literal(DType::F64, value);
        let at = at.cast(DType::F64);
        let scale = op.scale.map_or(count / length, number);
        let width = op.scale.map_or(count, |scale| length * scale);
        let is_one = |extent: Scalar<'p>| extent.ge(1.0).and(number(1.0).ge(extent));
        let half_pixel = (at + 0.5) / scale - 0.5;
        match op.coordinate_transformation_mode.as_str() {
            "half_pixel_symmetric" => length / 2.0 * (number(1.0) - count / width) + half_pixel,
            "pytorch_half_pixel" => count.gt(1.0).select(half_pixel, number(0.0)),
            "align_corners" => {
                is_one(width).select(number(0.0), at * (length - 1.0) / (width - 1.0))
            }
            "asymmetric" => at / scale,
            "tf_half_pixel_for_nn" => (at + 0.5) / scale,
            "tf_crop_and_resize" => {
                let span = (length - 1.0) * (op.roi_end - op.roi_start);
                let own = is_one(width).select(span / 2.0, at * span / (width - 1.0));
                (length - 1.0) * op.roi_start + own
            }
            _ => half_pixel,
        }
    }

    /// The place of the nearest element.
    fn rounded(&self, at: Scalar<'p>) -> Scalar<'p> {
        let place = self.place(at);
        match self.op.rounding_method.as_str() {
            "round_prefer_ceil" => (place + 0.5).call("floor"),
            "floor" => place.call("floor"),
            "ceil" => place.call("ceil"),
            _ => (place - 0.5).call("ceil"),
        }
    }

    /// A place as an index of the axis.
    fn clamped(&self, place: Scalar<'p>) -> Scalar<'p> {
        let last = self.extent.index(place.program()) - 1;
        place.cast(DType::I64).min(last).max(0)
    }
}

follows_precision!(Resize1d);

/// `Resize`.
#[rule(import.onnx, key = "Resize", since = 10)]
fn import(node: &mut Node<'_>) -> Outputs {
    resize_onnx::resize(node)
}

/// `Upsample`, which later became `Resize`.
#[rule(import.onnx, key = "Upsample", since = 7, until = 9)]
fn import_upsample(node: &mut Node<'_>) -> Outputs {
    resize_onnx::upsample(node)
}
