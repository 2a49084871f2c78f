//! The largest elements in cells of regions.
//!
//! ```ir
//! %y = vision.roi_pool(%x, %rois) { pooled_size = [7, 7] }    f32[n, 3, 32, 32], f32[k, 5]  =>  f32[k, 3, 7, 7]
//! ```
//!
//! Ends of regions and of cells are whole elements; a cell without elements is zero.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Extent, Reducer};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_float;

use crate::program::guarded::{is_there, may_be_empty};

/// The largest elements in cells of regions, `image, x1, y1, x2, y2` in the second argument
#[op(name = "vision.roi_pool", args = 2)]
pub struct RoiPool {
    /// cells of a region: rows, columns
    pooled_size: [i64; 2],
    /// by what places of a region are multiplied
    #[attr(default = 1.0)]
    spatial_scale: f64,
}

impl Operator for RoiPool {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        if self.pooled_size.iter().any(|&size| !(1..=i64::from(i32::MAX)).contains(&size)) {
            return cx.bad_attr("pooled_size", self.pooled_size, "the extents must be positive");
        }
        cx.check_float(0)?;
        cx.check_same_dtype(1)?;
        let tensor = cx.tensor_of_rank(0, 4)?;
        let (Some(dims), Some(rois)) = (tensor.dims, cx.tensor_of_rank(1, 2)?.dims) else {
            return Ok(cx.tensor_type(tensor.dtype, None));
        };
        let five = cx.dim(5);
        if cx.is_different(rois[1], five) {
            return Err(cx.mismatch("the numbers of a region", &rois[1..], &[five]));
        }
        let [rows, columns] = self.pooled_size.map(|size| cx.dim(size));
        Ok(cx.tensor_type(tensor.dtype, Some(&[rois[0], dims[1], rows, columns])))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (x, rois) = (cx.arg(0)?, cx.arg(1)?);
        let (dtype, shape) = cx.out()?;
        let &[batch, channels, height, width] = x.shape() else {
            return Err(OpError::Unsupported("four dimensions are expected".into()));
        };
        let [rows, columns] = self.pooled_size.map(|size| size as usize);
        with_float!(dtype, T => {
            let (x, rois) = (x.elements::<T>(), rois.elements::<T>());
            let mut out = Vec::with_capacity(shape.iter().product());
            for roi in rois.chunks(5) {
                let image = roi[0].to_f64();
                if !(0.0..batch as f64).contains(&image) {
                    return Err(OpError::Value(format!("a region of an image that is none of {batch}")));
                }
                let side = |at: usize| (roi[at].to_f64() * self.spatial_scale).round();
                let down = cells(side(2), side(4), rows, height);
                let across = cells(side(1), side(3), columns, width);
                for channel in 0..channels {
                    let plane = (image as usize * channels + channel) * height * width;
                    for rows in &down {
                        for columns in &across {
                            let all = rows.clone().flat_map(|row| {
                                let line = plane + row * width;
                                columns.clone().map(move |column| line + column)
                            });
                            out.push(all.map(|at| x[at]).reduce(T::larger).unwrap_or_default());
                        }
                    }
                }
            }
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// The elements of each cell along an axis.
fn cells(begin: f64, end: f64, count: usize, extent: usize) -> Vec<std::ops::Range<usize>> {
    let cell = (end - begin + 1.0).max(1.0) / count as f64;
    let clamped = |place: f64| (place + begin).max(0.0).min(extent as f64) as usize;
    let cell =
        |at: usize| clamped((at as f64 * cell).floor())..clamped(((at + 1) as f64 * cell).ceil());
    (0..count).map(cell).collect()
}

/// Cell by cell, one element after the other.
#[rule(compute)]
fn program(op: &RoiPool, program: &mut Program) {
    let program = &*program;
    let (x, rois, out) = (program.input(0), program.input(1), program.output(0));
    let dtype = x.compute_dtype();
    let extent = |axis: usize| x.shape()[axis].index(program);
    let shape = [rois.shape()[0], program.cx().dim(2)];
    let sides = [("begin", 2), ("end", 4)].map(|(name, at)| {
        program.map(name, dtype, &shape, |i| {
            let side = rois.wide(&[i[0], program.index(at) - i[1]]) * op.spatial_scale;
            let half = side.lt(0.0).select(side - 0.5, side + 0.5);
            half.call("trunc")
        })
    });
    let [begin, end] = &sides;
    let cell = program.map("cell", dtype, &shape, |i| {
        let [rows, columns] = op.pooled_size.map(|size| program.literal(dtype, size as f64));
        (end.at(i) - begin.at(i) + 1.0).max(1.0) / i[1].lt(1).select(rows, columns)
    });
    let least = Reducer::Max.identity(program, dtype);
    let held = program.map("held", dtype, out.shape(), |_| least);
    program.each(out.shape(), |i| {
        let mut body = program.block();
        let mut ends = Vec::new();
        for axis in 0..2 {
            let own = [i[0], program.index(axis as i64)];
            let (cell, begin) = (cell.at(&own), begin.at(&own));
            let length = extent(2 + axis).cast(dtype);
            let first = (i[2 + axis].cast(dtype) * cell).call("floor") + begin;
            let last = ((i[2 + axis] + 1).cast(dtype) * cell).call("ceil") + begin;
            let first = first.max(0.0).min(length).cast(DType::I64);
            let last = last.max(0.0).min(length).cast(DType::I64);
            let first = body.bind("first", first);
            let count = body.bind("count", (last - first).max(0));
            ends.push((first, count));
        }
        let image = rois.wide(&[i[0], program.index(0)]).cast(DType::I64);
        let image = body.bind("image", image.max(0).min(extent(0) - 1));
        let (down, across) = (ends[0], ends[1]);
        let all = program.in_turn(down.1, |row| {
            program.in_turn(across.1, |column| {
                let at = [image, i[1], down.0 + row, across.0 + column];
                held.set(i, held.at(i).max(x.wide(&at)))
            })
        });
        // Images without elements are not read.
        body.push(match may_be_empty(program, x.shape()) {
            true => program.when(is_there(program, x.shape()), all),
            false => all,
        });
        let zero = program.literal(dtype, 0.0);
        let is_empty = (down.1 * across.1).lt(1);
        body.push(out.set(i, is_empty.select(zero, held.at(i))));
        body.finish()
    });
}

/// `MaxRoiPool`.
#[rule(import.onnx, key = "MaxRoiPool", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    let args = node.all_inputs()?;
    let Some(size) = node.ints("pooled_shape")? else {
        return invalid("its attribute `pooled_shape` is missing");
    };
    let attrs = [
        ("pooled_size", size.into()),
        ("spatial_scale", node.float_or("spatial_scale", 1.0)?.into()),
    ];
    Ok(vec![node.call("vision.roi_pool", &args, &attrs)?])
}
