//! An axis with another extent.
//!
//! ```ir
//! %y = image.resize1d(%x, %s) { axis = 2 }    f32[n, 3, 32, 32], shape[64]  =>  f32[n, 3, 64, 32]
//! ```
//!
//! Each place of the result lies somewhere between elements of the data, and is made of those around it. Images are resized axis by axis.
//! A third argument has numbers that only a call knows, as an f64 each: the scale, the two ends of what is cropped, or all three.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Extent, Reducer, Scalar};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::{with_bits, with_float};

use super::kernels::Kernel;
use super::resize_onnx::{self, Scales};
use crate::kernel::moves::wrap_axis;
use crate::precision::follows_precision;

/// An axis with as many elements as the second argument, a shape of one dimension, says
#[op(name = "image.resize1d", args = 2..=3)]
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
        if cx.args.len() > 2 {
            self.check_numbers(cx)?;
        }
        let size = match cx.shape(1)? {
            Some(&[size]) => size,
            Some(_) => return Err(cx.wrong_arg(1, "a shape of one dimension")),
            None => return Ok(cx.tensor_type(tensor.dtype, None)),
        };
        let Some(dims) = tensor.dims else { return Ok(cx.tensor_type(tensor.dtype, None)) };
        let axis = cx.axis("axis", self.axis, dims.len())?;
        // Of nothing only nothing can be made; where a symbol says which it is, the call is checked.
        let [there, wanted] = [dims[axis], size].map(|extent| cx.dim_min(extent, cx.dim(1)));
        let is_empty = cx.value(dims[axis]) == Some(0) && cx.value(size) != Some(0);
        if is_empty || cx.is_no_repeat(there, wanted) {
            return cx.unsupported("an axis without elements has no other size");
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
        let numbers = self.numbers(cx.args.get(2))?;
        let places: Vec<f64> = (0..out).map(|at| self.place(at, [extent, out], &numbers)).collect();
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
        let (squeeze, side) = self.reach(kernel, [extent, out], &numbers);
        let (first, taps) = (1 - side, 2 * side as usize);
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

/// What says how places lie on the data: as numbers, or in a program.
struct Numbers<S> {
    /// Places of the result for one of the data, where that is not the quotient of the extents.
    scale: Option<S>,
    /// Where tf_crop_and_resize begins and ends.
    roi: [S; 2],
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

    /// That the third argument is of numbers which no attribute gives.
    fn check_numbers(&self, cx: &InferCx<'_>) -> Result<()> {
        let of = |count: i64| {
            cx.arg(2).is_ok_and(|ty| ty == cx.static_tensor_type(DType::F64, &[count]))
        };
        let Some(count) = (1..=3).find(|&count| of(count)) else {
            return Err(cx.wrong_arg(2, "an f64[1], f64[2] or f64[3]"));
        };
        if count != 2 && self.scale.is_some() {
            return cx.bad_attr("scale", self.scale, "the third argument has another one");
        }
        Ok(())
    }

    /// The numbers that attributes give, or the third argument.
    fn numbers(&self, given: Option<&Tensor>) -> Result<Numbers<f64>> {
        let given = given.map_or(Vec::new(), |tensor| tensor.elements::<f64>().to_vec());
        let numbers = self.with_given(&given, |number| number);
        match numbers.scale {
            Some(scale) if !(scale.is_finite() && scale > 0.0) => {
                Err(OpError::Value(format!("the scale {scale} is not positive")))
            }
            _ => Ok(numbers),
        }
    }

    fn with_given<S: Copy>(&self, given: &[S], literal: impl Fn(f64) -> S) -> Numbers<S> {
        let (scale, roi) = (self.scale.map(&literal), [self.roi_start, self.roi_end].map(literal));
        match *given {
            [scale] => Numbers { scale: Some(scale), roi },
            [start, end] => Numbers { scale, roi: [start, end] },
            [scale, start, end] => Numbers { scale: Some(scale), roi: [start, end] },
            _ => Numbers { scale, roi },
        }
    }

    /// How much nearer neighbours count as they are, and how many there are on each side of a place.
    fn reach(&self, kernel: Kernel, [extent, out]: [usize; 2], by: &Numbers<f64>) -> (f64, i64) {
        let scale = by.scale.unwrap_or(out as f64 / extent.max(1) as f64);
        let squeeze = if self.antialias { scale.min(1.0) } else { 1.0 };
        let most = kernel.reach() * (extent as f64 + 1.0);
        (squeeze, (kernel.reach() / squeeze).ceil().min(most) as i64)
    }

    /// Where a place of the result lies on the data.
    fn place(&self, at: usize, [extent, out]: [usize; 2], by: &Numbers<f64>) -> f64 {
        let (at, length, count) = (at as f64, extent as f64, out as f64);
        let scale = by.scale.unwrap_or(count / length);
        let width = by.scale.map_or(count, |scale| scale * length);
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
                let [start, end] = by.roi;
                let span = (end - start) * (length - 1.0);
                let own = if width == 1.0 { span / 2.0 } else { at * span / (width - 1.0) };
                start * (length - 1.0) + own
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
    write(op, program);
    Ok(())
}

fn write<'p>(op: &Resize1d, program: &'p Program) {
    let (x, out) = (program.input(0), program.output(0));
    let axis = wrap_axis(op.axis, out.shape().len());
    let on = Axis::of(op, program, [x.shape()[axis], out.shape()[axis]]);
    let is_cropped = op.coordinate_transformation_mode == "tf_crop_and_resize";
    let is_inside = match is_cropped {
        true => program.map("inside", DType::BOOL, &[on.out], |i| {
            let place = on.place(i[0]);
            place.ge(0.0).and(on.length.ge(place + 1.0))
        }),
        false => x.clone(),
    };
    let beyond = program.literal(out.dtype(), op.extrapolation_value);
    let finish = |i: &[Scalar<'p>], value: Scalar<'p>| match is_cropped {
        true => is_inside.at(&[i[axis]]).select(value.cast(out.dtype()), beyond),
        false => value,
    };
    let Some(kernel) = op.kernel() else {
        let index = program.map("index", DType::I64, &[on.out], |i| on.clamped(on.rounded(i[0])));
        program.each(out.shape(), |i| {
            out.set(i, finish(i, x.at(&with_index(i, axis, index.at(&[i[axis]])))))
        });
        return;
    };
    if op.antialias && program.inputs().len() > 1 && on.numbers.scale.is_some() {
        return on.sum_each(kernel, axis, &finish);
    }
    let cx = program.cx();
    let side = on.side(&cx, kernel);
    let [first, taps] = [cx.dim_sub(cx.dim(1), side), cx.dim_mul(side, cx.dim(2))];
    let first = program.map("first", DType::I64, &[on.out], |i| {
        on.place(i[0]).call("floor").cast(DType::I64) + first.index(program)
    });
    let squeeze = on.squeeze();
    let raw = program.map("raw", DType::F64, &[on.out, taps], |i| {
        on.weight(kernel, first.at(&i[..1]) + i[1], on.place(i[0]), squeeze)
    });
    let dtype = x.compute_dtype();
    let weights = match op.is_normalized() {
        false => raw,
        true => {
            let term = |i: &[_], k: &[_]| raw.at(&[i[0], k[0]]);
            let sum = program.reduce("sum", Reducer::Sum, DType::F64, &[on.out], &[taps], term);
            program.map("weights", DType::F64, &[on.out, taps], |i| raw.at(i) / sum.at(&i[..1]))
        }
    };
    let term = |i: &[Scalar<'p>], k: &[Scalar<'p>]| {
        let index = on.within(first.at(&[i[axis]]) + k[0]);
        x.wide(&with_index(i, axis, index)) * weights.at(&[i[axis], k[0]]).cast(dtype)
    };
    let sum = program.reduce("acc", Reducer::Sum, dtype, out.shape(), &[taps], term);
    program.set(&out, |i| finish(i, sum.at(i)));
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
    numbers: Numbers<Scalar<'p>>,
}

impl<'a, 'p> Axis<'a, 'p> {
    fn of(op: &'a Resize1d, program: &'p Program, [extent, out]: [Dim; 2]) -> Self {
        let float = |dim: Dim| dim.index(program).cast(DType::F64);
        let given = program.inputs().get(1).map_or(Vec::new(), |given| {
            let count = given.shape().first().and_then(|&count| program.dim_value(count));
            (0..count.unwrap_or(0)).map(|at| given.at(&[program.index(at)])).collect()
        });
        let numbers = op.with_given(&given, |number| program.literal(DType::F64, number));
        Self { op, extent, out, length: float(extent), count: float(out), numbers }
    }

    /// Places of the result for one of the data.
    fn scale(&self) -> Scalar<'p> {
        self.numbers.scale.unwrap_or(self.count / self.length)
    }

    /// How much nearer neighbours count as they are.
    fn squeeze(&self) -> Scalar<'p> {
        let program = self.length.program();
        let known = [self.extent, self.out].map(|dim| program.dim_value(dim));
        let ratio = match (self.op.scale, self.numbers.scale, known) {
            _ if !self.op.antialias => Some(1.0),
            (Some(scale), ..) => Some(scale),
            (None, None, [Some(extent), Some(out)]) => Some(out as f64 / extent.max(1) as f64),
            _ => None,
        };
        match ratio {
            Some(ratio) => program.literal(DType::F64, ratio.min(1.0)),
            None => self.scale().min(1.0),
        }
    }

    /// How many neighbours count on each side of a place, where no argument has the scale.
    fn side(&self, cx: &impl Context, kernel: Kernel) -> Dim {
        let reach = cx.dim(kernel.reach() as i64);
        match self.op.scale {
            _ if !self.op.antialias => reach,
            Some(scale) => cx.dim((kernel.reach() / scale.min(1.0)).ceil() as i64),
            None => {
                let out = cx.dim_max(self.out, cx.dim(1));
                let above =
                    cx.dim_sum(&[(cx.dim_mul(reach, self.extent), 1), (out, 1), (cx.dim(1), -1)]);
                cx.dim_max(reach, cx.dim_floor_div(above, out))
            }
        }
    }

    /// What the element at an index counts for a place.
    fn weight(
        &self,
        kernel: Kernel,
        index: Scalar<'p>,
        place: Scalar<'p>,
        squeeze: Scalar<'p>,
    ) -> Scalar<'p> {
        let program = self.length.program();
        let weight = kernel.weight_of((index.cast(DType::F64) - place) * squeeze);
        let is_there = index.ge(0).and(index.lt(self.extent.index(program)));
        match self.op.exclude_outside {
            true => is_there.select(weight, program.literal(DType::F64, 0.0)),
            false => weight,
        }
    }

    /// Writes each element as a sum of its own, of as many neighbours as the scale says in a call.
    fn sum_each(
        &self,
        kernel: Kernel,
        axis: usize,
        finish: &dyn Fn(&[Scalar<'p>], Scalar<'p>) -> Scalar<'p>,
    ) {
        let program = self.length.program();
        let (x, out) = (program.input(0), program.output(0));
        let (dtype, at) = (x.compute_dtype(), [program.index(0)]);
        program.each(out.shape(), |i| {
            let mut body = program.block();
            let squeeze = body.bind("squeeze", self.squeeze());
            let most = (self.length + 1.0) * kernel.reach();
            let reach = program.literal(DType::F64, kernel.reach());
            let side = (reach / squeeze).call("ceil").min(most).cast(DType::I64);
            let side = body.bind("side", side);
            let place = body.bind("place", self.place(i[axis]));
            let first = body.bind("first", place.call("floor").cast(DType::I64) + 1 - side);
            let sum = body.local("sum", dtype, &[1]);
            let total = body.local("total", DType::F64, &[1]);
            body.push(sum.set(&at, program.literal(dtype, 0.0)));
            body.push(total.set(&at, program.literal(DType::F64, 0.0)));
            body.push(program.in_turn(side * 2, |k| {
                let mut step = program.block();
                let index = step.bind("index", first + k);
                let weight = step.bind("weight", self.weight(kernel, index, place, squeeze));
                let element = x.wide(&with_index(i, axis, self.within(index)));
                step.push(total.set(&at, total.at(&at) + weight));
                step.push(sum.set(&at, sum.at(&at) + element * weight.cast(dtype)));
                step.finish()
            }));
            let mean = sum.at(&at) / total.at(&at).cast(dtype);
            body.push(out.set(i, finish(i, mean)));
            body.finish()
        });
    }

    /// Where a place of the result lies on the data.
    fn place(&self, at: Scalar<'p>) -> Scalar<'p> {
        let (op, length, count) = (self.op, self.length, self.count);
        let program = length.program();
        let number = |value| program.literal(DType::F64, value);
        let at = at.cast(DType::F64);
        let scale = self.scale();
        let width = self.numbers.scale.map_or(count, |scale| length * scale);
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
                let [start, end] = self.numbers.roi;
                let span = (length - 1.0) * (end - start);
                let own = is_one(width).select(span / 2.0, at * span / (width - 1.0));
                (length - 1.0) * start + own
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
        self.within(place.cast(DType::I64))
    }

    /// The nearest index that there is.
    fn within(&self, index: Scalar<'p>) -> Scalar<'p> {
        index.min(self.extent.index(index.program()) - 1).max(0)
    }
}

follows_precision!(Resize1d);

/// `Resize`.
#[rule(import.onnx, key = "Resize", since = 10)]
fn import(node: &mut Node<'_>) -> Outputs {
    resize_onnx::resize(node, Scales::Known)
}

/// `Resize` by scales that are computed: the sizes are found.
#[rule(import.onnx, domain = "tenon.found", key = "Resize", since = 10)]
fn import_computed(node: &mut Node<'_>) -> Outputs {
    resize_onnx::resize(node, Scales::Computed)
}

/// `Upsample`, which later became `Resize`.
#[rule(import.onnx, key = "Upsample", since = 7, until = 9)]
fn import_upsample(node: &mut Node<'_>) -> Outputs {
    resize_onnx::upsample(node, Scales::Known)
}

/// `Upsample` by scales that are computed.
#[rule(import.onnx, domain = "tenon.found", key = "Upsample", since = 9, until = 9)]
fn import_computed_upsample(node: &mut Node<'_>) -> Outputs {
    resize_onnx::upsample(node, Scales::Computed)
}
