//! Overlapping blocks put where they were taken from.
//!
//! ```ir
//! %y = col2im(%x, %s) { block_shape = [3, 3], padding = [1, 1] }    f32[n, 36, 8, 8], shape[8, 8]  =>  f32[n, 4, 8, 8]
//! ```
//!
//! The places of a block are the inner part of the axis of the channels. What meets at a place is added; what lies outside of the image is
//! left out. Without `block_shape` the extents of a block are axes of their own, `f32[n, 4, 3, 3, 8, 8]`, and may be symbols.

use tenon_plugin_api::op::number::Sum;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Extent, Scalar};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use crate::kernel::space::row_major;
use crate::program::guarded;

/// Blocks added up in an image whose spatial extents are the second argument
#[op(name = "col2im", args = 2, pattern = "out_fusable")]
pub struct Col2Im {
    /// extents of a block; the axes behind that of the channels where it is empty
    #[attr(default = [])]
    block_shape: Vec<i64>,
    /// step from one block to the next along each axis; 1 where it is empty
    #[attr(default = [])]
    strides: Vec<i64>,
    /// how far before the image the first block begins; 0 where it is empty
    #[attr(default = [])]
    padding: Vec<i64>,
    /// distance of neighbours in a block; 1 where it is empty
    #[attr(default = [])]
    dilation: Vec<i64>,
}

impl Operator for Col2Im {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let tensor = cx.tensor(0)?;
        let image = cx.shape(1)?;
        let rank = match self.block_shape.len() {
            0 => image.map(<[Dim]>::len),
            rank => Some(rank),
        };
        let limits = [
            ("block_shape", &self.block_shape, 1),
            ("strides", &self.strides, 1),
            ("dilation", &self.dilation, 1),
            ("padding", &self.padding, 0),
        ];
        for (name, list, least) in limits {
            let is_small = |value: &i64| (least..=i64::from(i32::MAX)).contains(value);
            if !list.iter().all(is_small) {
                return cx.bad_attr(name, list, format!("each is {least} to 2147483647"));
            }
            if !list.is_empty() && rank.is_some_and(|rank| list.len() != rank) || rank == Some(0) {
                return cx.bad_attr(name, list, "one number for each spatial axis is expected");
            }
        }
        let count = self.block_shape.iter().try_fold(1i64, |all, &each| all.checked_mul(each));
        let Some(count) = count else {
            return cx.bad_attr("block_shape", &self.block_shape, "a block is too large");
        };
        let (Some(dims), Some(image), Some(rank)) = (tensor.dims, image, rank) else {
            return Ok(cx.tensor_type(tensor.dtype, None));
        };
        let wanted = 2 + if self.block_shape.is_empty() { 2 * rank } else { rank };
        if dims.len() != wanted || image.len() != rank {
            return cx.unsupported(format!(
                "blocks of {rank} axes need data of {wanted} dimensions and an image of {rank}"
            ));
        }
        let channels = cx.dim_floor_div(dims[1], cx.dim(count));
        if cx.value(dims[1]).is_some_and(|dim| dim % count != 0) {
            let whole = cx.dim_mul(channels, cx.dim(count));
            return Err(cx.mismatch("the channels and the block", &dims[1..2], &[whole]));
        }
        let shape: Vec<Dim> = [dims[0], channels].iter().chain(image).copied().collect();
        Ok(cx.tensor_type(tensor.dtype, Some(&shape)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let data = cx.arg(0)?;
        let (dtype, shape) = cx.out()?;
        let rank = shape.len() - 2;
        let (before, places) = data.shape().split_at(data.shape().len() - rank);
        let block: Vec<usize> = match self.block_shape.is_empty() {
            true => before[2..].to_vec(),
            false => self.block_shape.iter().map(|&extent| extent as usize).collect(),
        };
        let count: usize = block.iter().product();
        let (plane, columns) =
            (shape[2..].iter().product::<usize>(), places.iter().product::<usize>());
        let (steps, in_block, in_image) =
            (row_major(places), row_major(&block), row_major(&shape[2..]));
        let part = |number: usize, steps: &[isize], extents: &[usize], axis: usize| {
            number / steps[axis] as usize % extents[axis]
        };
        // Where the neighbour `tap` of a block at `column` lies in the image.
        let target = |tap: usize, column: usize| -> Option<usize> {
            let mut target = 0;
            for axis in 0..rank {
                let at = part(column, &steps, places, axis) as i64 * by(&self.strides, axis, 1)
                    + part(tap, &in_block, &block, axis) as i64 * by(&self.dilation, axis, 1)
                    - by(&self.padding, axis, 0);
                if !(0..shape[2 + axis] as i64).contains(&at) {
                    return None;
                }
                target += at as usize * in_image[axis] as usize;
            }
            Some(target)
        };
        with_number!(dtype, T => {
            let elements = data.elements::<T>();
            let mut sums = vec![<T as Number>::Sum::default(); shape.iter().product()];
            for (number, part) in elements.chunks(columns.max(1)).enumerate() {
                let (image, tap) = (number / count, number % count);
                for (column, x) in part.iter().enumerate() {
                    if let Some(at) = target(tap, column) {
                        let sum = &mut sums[image * plane + at];
                        *sum = Sum::add(*sum, x.widen());
                    }
                }
            }
            let out = sums.into_iter().map(T::narrow).collect();
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// An attribute along an axis.
fn by(list: &[i64], axis: usize, default: i64) -> i64 {
    list.get(axis).copied().unwrap_or(default)
}

/// Which neighbours in a block can reach an element along an axis: those `first`, `first + step`, `first + 2 step`, …
///
/// The neighbour `k` of the block at `place` lies at `place stride + k dilation`. So `k dilation` is the element's place but for whole
/// strides, and an inverse of the dilation among the rests of the stride gives the first `k`.
struct Reach {
    /// What dilation and stride have in common: only each so manieth element is reached.
    common: i64,
    step: i64,
    inverse: i64,
}

impl Reach {
    fn of(stride: i64, dilation: i64) -> Self {
        let common = gcd(stride, dilation);
        let (step, dilation) = (stride / common, dilation / common);
        let inverse = inverse_of(dilation, step);
        Self { common, step, inverse }
    }

    /// How many neighbours of a block of this extent, the most.
    fn count(&self, program: &Program, extent: Dim) -> Dim {
        let cx = program.cx();
        cx.dim_floor_div(cx.dim_add(extent, cx.dim(self.step - 1)), cx.dim(self.step))
    }

    /// The first one, for an element this far from the first block.
    fn first<'p>(&self, from: Scalar<'p>) -> Scalar<'p> {
        match self.step {
            1 => from.program().index(0),
            step if self.inverse == 1 => from / self.common % step,
            step => from / self.common % step * self.inverse % step,
        }
    }
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The number times which `a` is 1 but for multiples of `of`, which has no factor in common with it (extended Euclidean algorithm).
fn inverse_of(a: i64, of: i64) -> i64 {
    let (mut rest, mut next) = (of, a % of);
    let (mut times, mut next_times) = (0, 1);
    while next != 0 {
        let quotient = rest / next;
        (rest, next) = (next, rest - quotient * next);
        (times, next_times) = (next_times, times - quotient * next_times);
    }
    times.rem_euclid(of)
}

/// For each element what neighbours in blocks give it, of those that can reach it.
#[rule(compute)]
fn program(op: &Col2Im, program: &mut Program) {
    let rank = program.output(0).shape().len() - 2;
    let (before, read) = {
        let dims = program.input(0).shape().to_vec();
        let (before, read) = dims.split_at(dims.len() - rank);
        (before.to_vec(), read.to_vec())
    };
    let program = &*program;
    let data = program.input(0);
    let dtype = data.compute_dtype();
    let block: Vec<Dim> = match op.block_shape.is_empty() {
        true => before[2..].to_vec(),
        false => op.block_shape.iter().map(|&extent| program.cx().dim(extent)).collect(),
    };
    let reaches: Vec<Reach> = (0..rank)
        .map(|axis| Reach::of(by(&op.strides, axis, 1), by(&op.dilation, axis, 1)))
        .collect();
    let counts: Vec<Dim> =
        reaches.iter().zip(&block).map(|(reach, &extent)| reach.count(program, extent)).collect();
    guarded::sums(
        program,
        &read,
        dtype,
        &counts,
        |i, j| {
            let mut channel = i[1];
            let mut is_there: Option<Scalar<'_>> = None;
            let (mut neighbours, mut places) = (Vec::new(), Vec::new());
            for (axis, reach) in reaches.iter().enumerate() {
                let from = i[2 + axis] + by(&op.padding, axis, 0);
                let [in_block, extent] = [block[axis], read[axis]].map(|it| it.index(program));
                let neighbour = reach.first(from) + j[axis] * reach.step;
                let place =
                    (from - neighbour * by(&op.dilation, axis, 1)) / by(&op.strides, axis, 1);
                let mut is_in = place.ge(0).and(place.lt(extent));
                let neighbour = match program.dim_value(block[axis]) {
                    _ if reach.step == 1 => neighbour,
                    Some(in_block) if in_block % reach.step == 0 => neighbour,
                    _ => {
                        is_in = is_in.and(neighbour.lt(in_block));
                        neighbour.min(in_block - 1)
                    }
                };
                if reach.common != 1 {
                    is_in = is_in.and((from / reach.common * reach.common).ge(from));
                }
                is_there = Some(is_there.map_or(is_in, |before| before.and(is_in)));
                places.push(place.max(0).min(extent - 1));
                neighbours.push(neighbour);
            }
            if !op.block_shape.is_empty() {
                for (neighbour, &extent) in neighbours.drain(..).zip(&op.block_shape) {
                    channel = channel * extent + neighbour;
                }
            }
            let mut at = vec![i[0], channel];
            at.extend(neighbours);
            at.extend(places);
            let (value, zero) = (data.wide(&at), program.literal(dtype, 0.0));
            is_there.map_or(value, |is_there| is_there.select(value, zero))
        },
        |_, sum| sum,
    );
}
