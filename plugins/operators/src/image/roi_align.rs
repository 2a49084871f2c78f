//! Regions of images as images of one size.
//!
//! ```ir
//! %y = vision.roi_align(%x, %rois, %images) { pooled_size = [7, 7] }    f32[n, 3, 32, 32], f32[k, 4], i64[k]  =>  f32[k, 3, 7, 7]
//! ```
//!
//! A region is cut into cells, each of which is read at places that are spread evenly, between elements.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Buffer, Extent, Scalar};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::{with_float, with_number};

use crate::program::guarded::{is_there, may_be_empty};

/// What cells of regions, `x1, y1, x2, y2` in the second argument, hold of the images that the third one says
#[op(name = "vision.roi_align", args = 3)]
pub struct RoiAlign {
    /// cells of a region: rows, columns
    pooled_size: [i64; 2],
    /// by what places of a region are multiplied
    #[attr(default = 1.0)]
    spatial_scale: f64,
    /// places in a cell along each axis; 0 for as many as it covers elements
    #[attr(default = 0, min = 0, max = 65536)]
    sample_ratio: i64,
    /// whether places are those of the middle of elements, and regions may be smaller than an element
    #[attr(default = false)]
    aligned: bool,
    /// what is made of the values in a cell: avg or max
    #[attr(default = "avg", one_of = ["avg", "max"])]
    mode: String,
}

impl Operator for RoiAlign {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        if self.pooled_size.iter().any(|&size| !(1..=i64::from(i32::MAX)).contains(&size)) {
            return cx.bad_attr("pooled_size", self.pooled_size, "the extents must be positive");
        }
        cx.check_float(0)?;
        cx.check_same_dtype(1)?;
        let images = cx.tensor_of_rank(2, 1)?;
        if !images.dtype.is_int() {
            let (expected, found) = ("integers".to_owned(), images.dtype);
            return Err(OpError::WrongDType { index: 2, expected, found });
        }
        let tensor = cx.tensor_of_rank(0, 4)?;
        let (Some(dims), Some(rois)) = (tensor.dims, cx.tensor_of_rank(1, 2)?.dims) else {
            return Ok(cx.tensor_type(tensor.dtype, None));
        };
        let four = cx.dim(4);
        if cx.is_different(rois[1], four) {
            return Err(cx.mismatch("the numbers of a region", &rois[1..], &[four]));
        }
        if let Some(images) = images.dims
            && cx.is_different(images[0], rois[0])
        {
            return Err(cx.mismatch("the regions and their images", &rois[..1], images));
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
        let images: Vec<i64> = with_number!(cx.arg(2)?.dtype(), I => {
            Ok(cx.arg(2)?.elements::<I>().iter().map(|index| index.to_i64()).collect())
        })?;
        if images.iter().any(|image| !(0..batch as i64).contains(image)) {
            return Err(OpError::Value(format!("a region of an image that is none of {batch}")));
        }
        let [rows, columns] = self.pooled_size.map(|size| size as usize);
        with_float!(dtype, T => {
            let (x, rois) = (x.elements::<T>(), rois.elements::<T>());
            let mut out = Vec::with_capacity(shape.iter().product());
            for (number, &image) in images.iter().enumerate() {
                let side = |at: usize| rois[number * 4 + at].to_f64() * self.spatial_scale - self.shift();
                let down = self.along(side(1), side(3), rows);
                let across = self.along(side(0), side(2), columns);
                for channel in 0..channels {
                    let plane = (image as usize * channels + channel) * height * width;
                    let plane = &x[plane..plane + height * width];
                    for y in &down {
                        for x in &across {
                            let count = (y.len() * x.len()).max(1) as f64;
                            let mut values = y.iter().flat_map(|&y| x.iter().map(move |&x| (y, x)))
                                .map(|(y, x)| self.parts(y, x, height, width, |at| plane[at].to_f64()));
                            out.push(T::from_f64(match self.mode.as_str() {
                                "max" => {
                                    let largest = |all: [f64; 4]| all.into_iter().fold(f64::NEG_INFINITY, f64::larger);
                                    values.next().map_or(0.0, |first| values.map(largest).fold(largest(first), f64::larger))
                                }
                                _ => values.flatten().sum::<f64>() / count,
                            }));
                        }
                    }
                }
            }
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

impl RoiAlign {
    fn shift(&self) -> f64 {
        if self.aligned { 0.5 } else { 0.0 }
    }

    /// For each cell along an axis the places where it is read.
    fn along(&self, begin: f64, end: f64, cells: usize) -> Vec<Vec<f64>> {
        let length = if self.aligned { end - begin } else { (end - begin).max(1.0) };
        let cell = length / cells as f64;
        let count = match self.sample_ratio {
            0 => cell.ceil().max(0.0),
            count => count as f64,
        };
        let place = |at: usize, number: usize| {
            begin + at as f64 * cell + (number as f64 + 0.5) * cell / count
        };
        (0..cells).map(|at| (0..count as usize).map(|number| place(at, number)).collect()).collect()
    }

    /// What the four neighbours of a place give it.
    fn parts(
        &self,
        y: f64,
        x: f64,
        height: usize,
        width: usize,
        element: impl Fn(usize) -> f64,
    ) -> [f64; 4] {
        let is_in = |at: f64, extent: usize| (-1.0..=extent as f64).contains(&at);
        if !is_in(y, height) || !is_in(x, width) {
            return [0.0; 4];
        }
        let around = |at: f64, extent: usize| {
            let at = at.max(0.0).min(extent as f64 - 1.0);
            let low = at.floor() as usize;
            (low, (low + 1).min(extent - 1), at - at.floor())
        };
        let ((top, bottom, down), (left, right, across)) = (around(y, height), around(x, width));
        [
            element(top * width + left) * (1.0 - down) * (1.0 - across),
            element(top * width + right) * (1.0 - down) * across,
            element(bottom * width + left) * down * (1.0 - across),
            element(bottom * width + right) * down * across,
        ]
    }
}

/// Where the cells of regions are read, along rows and columns.
struct Regions<'p> {
    x: Buffer<'p>,
    /// For each region and axis: where it begins, how long a cell is, how many places that has.
    begin: Buffer<'p>,
    cell: Buffer<'p>,
    count: Buffer<'p>,
    dtype: DType,
    program: &'p Program,
}

impl<'p> Regions<'p> {
    /// A place of a cell along an axis; `i` says which region and axis.
    fn place(&self, i: &[Scalar<'p>], at: Scalar<'p>, number: Scalar<'p>) -> Scalar<'p> {
        let (cell, count) = (self.cell.at(i), self.count.at(i).cast(self.dtype));
        let part = (number.cast(self.dtype) + 0.5) * cell / count;
        self.begin.at(i) + at.cast(self.dtype) * cell + part
    }

    fn length(&self, axis: Scalar<'p>) -> Scalar<'p> {
        let extents = [2, 3].map(|axis| self.x.shape()[axis].index(self.program).cast(self.dtype));
        axis.lt(1).select(extents[0], extents[1])
    }

    /// Whether a place is in the image, or no more than an element beside it.
    fn is_near(&self, place: Scalar<'p>, axis: Scalar<'p>) -> Scalar<'p> {
        place.ge(-1.0).and(self.length(axis).ge(place))
    }

    /// The nearest place between elements.
    fn bounded(&self, place: Scalar<'p>, axis: Scalar<'p>) -> Scalar<'p> {
        place.max(0.0).min(self.length(axis) - 1.0)
    }
}

/// Cell by cell, one place after the other.
#[rule(compute)]
fn program(op: &RoiAlign, program: &mut Program) {
    let program = &*program;
    let [x, rois, images] = [0, 1, 2].map(|index| program.input(index));
    let out = program.output(0);
    let dtype = x.compute_dtype();
    let extent = |axis: usize| x.shape()[axis].index(program);
    // For each region, along rows and columns: where it begins, how long a cell is, how many places that has.
    let shape = [rois.shape()[0], program.cx().dim(2)];
    let begin = program.map("begin", dtype, &shape, |i| {
        rois.wide(&[i[0], program.index(1) - i[1]]) * op.spatial_scale - op.shift()
    });
    let cell = program.map("cell", dtype, &shape, |i| {
        let end = rois.wide(&[i[0], program.index(3) - i[1]]) * op.spatial_scale - op.shift();
        let length = end - begin.at(i);
        let length = if op.aligned { length } else { length.max(1.0) };
        let [rows, columns] = op.pooled_size.map(|size| program.literal(dtype, size as f64));
        length / i[1].lt(1).select(rows, columns)
    });
    let count = program.map("count", DType::I64, &shape, |i| match op.sample_ratio {
        0 => cell.at(i).call("ceil").max(0.0).cast(DType::I64),
        count => program.index(count),
    });
    let regions = Regions { x: x.clone(), begin, cell, count, dtype, program };
    // Where the number of places is known, all channels share what they are between.
    let shared = (op.sample_ratio > 0).then(|| {
        let [rows, columns] = op.pooled_size;
        let [cells, count] = [rows.max(columns), op.sample_ratio].map(|it| program.cx().dim(it));
        let shape = [&shape[..], &[cells, count]].concat();
        let places = program.map("places", dtype, &shape, |i| regions.place(&i[..2], i[2], i[3]));
        let is_in =
            program.map("is_in", DType::BOOL, &shape, |i| regions.is_near(places.at(i), i[1]));
        let at = program.map("at", dtype, &shape, |i| regions.bounded(places.at(i), i[1]));
        let low = program.map("low", dtype, &shape, |i| at.at(i).call("floor"));
        let part = program.map("part", dtype, &shape, |i| at.at(i) - low.at(i));
        let index = program.map("index", DType::I64, &shape, |i| low.at(i).cast(DType::I64));
        (is_in, index, part)
    });
    let held = program.map("held", dtype, out.shape(), |_| program.literal(dtype, 0.0));
    let is_max = op.mode == "max";
    program.each(out.shape(), |i| {
        let along = |axis: i64| [i[0], program.index(axis)];
        let [down, across] = [0, 1].map(|axis| regions.count.at(&along(axis)));
        let all = program.in_turn(down, |row| {
            program.in_turn(across, |column| {
                let mut body = program.block();
                let mut is_in: Option<Scalar<'_>> = None;
                let mut around = Vec::new();
                for (axis, number) in [row, column].into_iter().enumerate() {
                    let own = along(axis as i64);
                    let (is_near, index, part) = match &shared {
                        Some((is_in, index, part)) => {
                            let at = [own[0], own[1], i[2 + axis], number];
                            (is_in.at(&at), index.at(&at), part.at(&at))
                        }
                        None => {
                            let place =
                                body.bind("place", regions.place(&own, i[2 + axis], number));
                            let at = body.bind("at", regions.bounded(place, own[1]));
                            let low = body.bind("low", at.call("floor"));
                            (regions.is_near(place, own[1]), low.cast(DType::I64), at - low)
                        }
                    };
                    is_in = Some(is_in.map_or(is_near, |before| before.and(is_near)));
                    let (index, part) = (body.bind("index", index), body.bind("part", part));
                    let next = (index + 1).min(extent(2 + axis) - 1);
                    around.push([(index, part * -1.0 + 1.0), (next, part)]);
                }
                let image = images.at(&i[..1]).cast(DType::I64);
                let image = image.max(0).min(extent(0) - 1);
                let mut parts = Vec::new();
                for &(row, down) in &around[0] {
                    for &(column, across) in &around[1] {
                        parts.push(x.wide(&[image, i[1], row, column]) * down * across);
                    }
                }
                let mut value = parts[0];
                for &next in &parts[1..] {
                    value = if is_max { value.max(next) } else { value + next };
                }
                let zero = program.literal(dtype, 0.0);
                let value = is_in.map_or(value, |is_in| is_in.select(value, zero));
                let held_now = held.at(i);
                let next = match is_max {
                    true => {
                        let is_first = (row + column).lt(1);
                        is_first.select(value, held_now.max(value))
                    }
                    false => held_now + value,
                };
                body.push(held.set(i, next));
                body.finish()
            })
        });
        let places = (down * across).max(1).cast(dtype);
        let result = if is_max { held.at(i) } else { held.at(i) / places };
        // Images without elements are not read.
        let all = match may_be_empty(program, x.shape()) {
            true => program.when(is_there(program, x.shape()), all),
            false => all,
        };
        program.seq(&[all, out.set(i, result)])
    });
}

/// `RoiAlign`.
#[rule(import.onnx, key = "RoiAlign", since = 10)]
fn import(node: &mut Node<'_>) -> Outputs {
    let args = node.all_inputs()?;
    let default = if node.version() < 16 { "output_half_pixel" } else { "half_pixel" };
    let is_aligned = match node.text("coordinate_transformation_mode", default)?.as_str() {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => {
            return invalid(format!("its attribute `coordinate_transformation_mode` is {other:?}"));
        }
    };
    let size = [node.int_or("output_height", 1)?, node.int_or("output_width", 1)?];
    let attrs = [
        ("pooled_size", size.to_vec().into()),
        ("spatial_scale", node.float_or("spatial_scale", 1.0)?.into()),
        ("sample_ratio", node.int_or("sampling_ratio", 0)?.into()),
        ("aligned", is_aligned.into()),
        ("mode", node.text("mode", "avg")?.to_lowercase().into()),
    ];
    Ok(vec![node.call("vision.roi_align", &args, &attrs)?])
}
