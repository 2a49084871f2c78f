//! Images read at any places.
//!
//! ```ir
//! %y = image.grid_sample(%x, %grid)    f32[n, 3, 32, 32], f32[n, 2, 8, 8]  =>  f32[n, 3, 8, 8]
//! ```
//!
//! For each place of the result the grid says where to read, the place along the last axis first. An image goes from -1 to 1 along each of
//! its two or three axes, or from 0 on, where places are counted in elements.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Buffer, Extent, Scalar};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_float;

use super::kernels::Kernel;
use crate::kernel::space::row_major;
use crate::onnx::steps::{cast_to, not_among, product, reshape_to};
use crate::precision::follows_precision;
use crate::program::guarded;

/// Elements of images at places that the second argument says
#[op(name = "image.grid_sample", args = 2)]
pub struct GridSample {
    /// nearest, bilinear or bicubic
    #[attr(default = "bilinear", one_of = ["nearest", "bilinear", "bicubic"])]
    method: String,
    /// what is outside of an image: zeros, border or reflection
    #[attr(default = "zeros", one_of = ["zeros", "border", "reflection"])]
    padding_mode: String,
    /// whether the ends of an axis are in the middle of elements
    #[attr(default = true)]
    align_corners: bool,
    /// whether places are counted in elements
    #[attr(default = false)]
    in_elements: bool,
}

impl Operator for GridSample {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        cx.check_same_dtype(1)?;
        let tensor = cx.tensor(0)?;
        let (Some(dims), Some(grid)) = (tensor.dims, cx.tensor(1)?.dims) else {
            return Ok(cx.tensor_type(tensor.dtype, None));
        };
        let rank = dims.len().saturating_sub(2);
        if !(1..=3).contains(&rank) || grid.len() != dims.len() {
            return cx.unsupported(format!(
                "images of {} dimensions and a grid of {}; both have 3 to 5",
                dims.len(),
                grid.len()
            ));
        }
        let wanted = [dims[0], cx.dim(rank as i64)];
        if grid.iter().zip(wanted).any(|(&own, wanted)| cx.is_different(own, wanted)) {
            return Err(cx.mismatch("the first axes of the grid", &grid[..2], &wanted));
        }
        if dims[2..].iter().any(|&dim| cx.value(dim) == Some(0)) {
            return cx.unsupported("an image without elements");
        }
        Ok(cx.tensor_type(tensor.dtype, Some(&[&dims[..2], &grid[2..]].concat())))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (image, grid) = (cx.arg(0)?, cx.arg(1)?);
        let (dtype, shape) = cx.out()?;
        let (channels, extents) = (shape[1], &image.shape()[2..]);
        let (rank, plane) = (extents.len(), extents.iter().product::<usize>());
        let places: usize = shape[2..].iter().product();
        let steps = row_major(extents);
        if plane == 0 && shape.iter().product::<usize>() > 0 {
            return Err(OpError::Value("an image has no elements".into()));
        }
        with_float!(dtype, T => {
            let (x, grid) = (image.elements::<T>(), grid.elements::<T>());
            let mut out = Vec::with_capacity(shape.iter().product());
            for number in 0..shape[0] * channels {
                let batch = number / channels.max(1);
                for place in 0..places {
                    // For each axis the elements that are read, and their weights.
                    let along: Vec<Vec<(Option<usize>, f64)>> = (0..rank).map(|axis| {
                        let row = (batch * rank + rank - 1 - axis) * places;
                        self.along(grid[row + place].to_f64(), extents[axis])
                    }).collect();
                    let taps = along.first().map_or(0, Vec::len);
                    let sum = (0..taps.pow(rank as u32)).map(|tap| {
                        let (mut rest, mut at, mut weight) = (tap, Some(number * plane), 1.0);
                        for (axis, along) in along.iter().enumerate() {
                            let (index, own) = along[rest % taps];
                            rest /= taps;
                            at = at.zip(index).map(|(at, index)| at + index * steps[axis] as usize);
                            weight *= own;
                        }
                        at.map_or(0.0, |at| x[at].to_f64() * weight)
                    }).sum();
                    out.push(T::from_f64(sum));
                }
            }
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

impl GridSample {
    fn kernel(&self) -> Option<Kernel> {
        match self.method.as_str() {
            "bilinear" => Some(Kernel::Linear),
            "bicubic" => Some(Kernel::Cubic(-0.75)),
            _ => None,
        }
    }

    /// The elements that are read for a place along an axis, none where there is none, and their weights.
    fn along(&self, at: f64, extent: usize) -> Vec<(Option<usize>, f64)> {
        let length = extent as f64;
        let at = match (self.in_elements, self.align_corners) {
            (true, _) => at,
            (false, true) => (at + 1.0) / 2.0 * (length - 1.0),
            (false, false) => ((at + 1.0) * length - 1.0) / 2.0,
        };
        let index = |at: f64| match self.padding_mode.as_str() {
            "border" => Some(at.max(0.0).min(length - 1.0) as usize),
            "reflection" => Some(self.reflected(at, length).max(0.0).min(length - 1.0) as usize),
            _ => (0.0..length).contains(&at).then_some(at as usize),
        };
        let Some(kernel) = self.kernel() else {
            return vec![(index(at.round_ties_even()), 1.0)];
        };
        let at = match self.padding_mode.as_str() {
            "border" if kernel == Kernel::Linear => at.max(0.0).min(length - 1.0),
            "reflection" => self.reflected(at, length),
            _ => at,
        };
        let reach = kernel.reach();
        let first = at.floor() - reach + 1.0;
        let tap = |tap: usize| {
            let place = first + tap as f64;
            (index(place), kernel.weight(at - place))
        };
        (0..2 * reach as usize).map(tap).collect()
    }

    /// A place put between the ends of an axis by reflecting it there.
    fn reflected(&self, at: f64, length: f64) -> f64 {
        let (low, high) =
            if self.align_corners { (0.0, length - 1.0) } else { (-0.5, length - 0.5) };
        let span = high - low;
        if span <= 0.0 {
            return 0.0;
        }
        let far = (at - low).abs();
        let (times, rest) = ((far / span).floor(), far - (far / span).floor() * span);
        if times % 2.0 == 0.0 { low + rest } else { high - rest }
    }
}

/// For each element what its neighbours give it.
#[rule(compute)]
fn program(op: &GridSample, program: &mut Program) {
    let read = program.input(0).shape()[2..].to_vec();
    let program = &*program;
    let (x, grid) = (program.input(0), program.input(1));
    let (rank, dtype) = (read.len(), x.compute_dtype());
    let kernel = op.kernel();
    let taps = vec![kernel.map_or(1, |kernel| 2 * kernel.reach() as i64); rank];
    let places = program.map("place", dtype, grid.shape(), |i| {
        let value = grid.wide(i);
        (1..rank).fold(op.place(value, axis_length(&x, rank - 1, dtype)), |place, number| {
            let own = op.place(value, axis_length(&x, rank - 1 - number, dtype));
            i[1].ge(number as i64).select(own, place)
        })
    });
    guarded::sums(
        program,
        &read,
        dtype,
        &taps,
        |i, k| {
            let mut at = i[..2].to_vec();
            let mut weight: Option<Scalar<'_>> = None;
            let mut is_there: Option<Scalar<'_>> = None;
            for (axis, &tap) in k.iter().enumerate() {
                let number = program.index((rank - 1 - axis) as i64);
                let place = places.at(&[&i[..1], &[number], &i[2..]].concat());
                let length = axis_length(&x, axis, dtype);
                let (index, own) = match kernel {
                    None => (place, None),
                    Some(kernel) => {
                        let first = place.call("floor") - (kernel.reach() - 1.0);
                        let index = first + tap.cast(dtype);
                        (index, Some(kernel.weight_of(place - index)))
                    }
                };
                if let Some(own) = own {
                    weight = Some(weight.map_or(own, |weight| weight * own));
                }
                let index = match op.padding_mode.as_str() {
                    "reflection" => op.reflected_scalar(index, length),
                    _ => index,
                };
                if op.padding_mode == "zeros" {
                    let is_in = index.ge(0.0).and(index.lt(length));
                    is_there = Some(is_there.map_or(is_in, |before| before.and(is_in)));
                }
                at.push(index.max(0.0).min(length - 1.0).cast(DType::I64));
            }
            let value = x.wide(&at);
            let value = weight.map_or(value, |weight| value * weight);
            let zero = program.literal(dtype, 0.0);
            is_there.map_or(value, |is_there| is_there.select(value, zero))
        },
        |_, sum| sum,
    );
}

/// The extent of a spatial axis of images.
fn axis_length<'p>(image: &Buffer<'p>, axis: usize, dtype: DType) -> Scalar<'p> {
    image.shape()[2 + axis].index(image.program()).cast(dtype)
}

impl GridSample {
    /// Where a place of the grid is, in elements; what no number is, is outside.
    fn place<'p>(&self, at: Scalar<'p>, length: Scalar<'p>) -> Scalar<'p> {
        let program = at.program();
        let at = match (self.in_elements, self.align_corners) {
            (true, _) => at,
            (false, true) => (at + 1.0) / 2.0 * (length - 1.0),
            (false, false) => ((at + 1.0) * length - 1.0) / 2.0,
        };
        let at = at.ge(at).select(at, program.literal(at.dtype(), -1e6));
        let at = if self.kernel().is_none() { at.call("round") } else { at };
        match self.padding_mode.as_str() {
            "border" if self.method != "bicubic" => at.max(0.0).min(length - 1.0),
            "reflection" if self.kernel().is_some() => self.reflected_scalar(at, length),
            _ => at,
        }
    }

    fn reflected_scalar<'p>(&self, at: Scalar<'p>, length: Scalar<'p>) -> Scalar<'p> {
        let low = if self.align_corners { 0.0 } else { -0.5 };
        let span = if self.align_corners { length - 1.0 } else { length };
        let zero = at.program().literal(at.dtype(), 0.0);
        let far = (at - low).call("abs");
        let times = (far / span.max(1.0)).call("floor");
        let rest = far - times * span;
        let is_even = times - (times / 2.0).call("floor") * 2.0;
        let back = is_even.gt(0.5).select(span - rest, rest) + low;
        span.gt(0.0).select(back, zero)
    }
}

follows_precision!(GridSample);

/// `GridSample`, whose grid has the axis of the places last.
#[rule(import.onnx, key = "GridSample", since = 16)]
fn import(node: &mut Node<'_>) -> Outputs {
    node.check_arity(2, 2)?;
    let (x, mut grid) = (node.input(0)?, node.input(1)?);
    let dims = node.dims(grid)?;
    let rank = dims.len() as i64;
    // Places are a single row, however they lie in the grid: rows of it may be short.
    let places = dims.get(1..dims.len().max(2) - 1).unwrap_or_default().to_vec();
    if places.len() > 1 {
        let mut row = vec![node.cx().dim(1); places.len()];
        *row.last_mut().expect("places have axes") = product(node, &places);
        grid = reshape_to(node, grid, &[&dims[..1], &row, &dims[dims.len() - 1..]].concat())?;
    }
    let method = match node.text("mode", "linear")?.as_str() {
        "nearest" => "nearest",
        "linear" | "bilinear" => "bilinear",
        "cubic" | "bicubic" => "bicubic",
        other => return not_among("mode", other, &["linear", "nearest", "cubic"]),
    };
    let order: Vec<i64> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    let grid = node.call("transpose", &[grid], &[("axes", order.into())])?;
    let (dtype, own) = (node.dtype(x)?, node.dtype(grid)?);
    let common = if own == DType::F64 || dtype == DType::F64 { DType::F64 } else { own };
    let common = if common.is_float() { common } else { DType::F32 };
    let (wide, grid) = (cast_to(node, x, common)?, cast_to(node, grid, common)?);
    let attrs = [
        ("method", method.into()),
        ("padding_mode", node.text("padding_mode", "zeros")?.into()),
        ("align_corners", node.flag("align_corners", false)?.into()),
    ];
    let mut y = node.call("image.grid_sample", &[wide, grid], &attrs)?;
    if places.len() > 1 {
        let outer = node.dims(y)?[..2].to_vec();
        y = reshape_to(node, y, &[outer, places].concat())?;
    }
    Ok(vec![cast_to(node, y, dtype)?])
}
