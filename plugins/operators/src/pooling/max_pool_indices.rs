//! Where the largest element of each window is.
//!
//! ```ir
//! %i = nn.max_pool_indices(%x) { pool_size = [2, 2], strides = [2, 2], padding = [0, 0, 0, 0], dilation = [1, 1] }    f32[n, 8, 32, 32]  =>  i64[n, 8, 16, 16]
//! ```
//!
//! An index counts the elements of the whole tensor. Of equal elements the first is taken.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{self, Extent, Reducer};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use crate::kernel::space::row_major;
use crate::kernel::window::Window;

/// The index of the largest element of each window
#[op(name = "nn.max_pool_indices")]
pub struct MaxPoolIndices {
    /// extents of the window
    pool_size: Vec<i64>,
    /// step of the window along each axis
    strides: Vec<i64>,
    /// before each axis, then behind each
    padding: Vec<i64>,
    /// distance of the taps along each axis
    dilation: Vec<i64>,
    /// whether the last window may reach over the end
    #[attr(default = false)]
    ceil_mode: bool,
    /// whether indices go along the first spatial axis first
    #[attr(default = false)]
    column_major: bool,
}

impl Operator for MaxPoolIndices {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let (size, rank) = (&self.pool_size, self.pool_size.len());
        if size.iter().any(|&size| !(1..=i64::from(i32::MAX)).contains(&size)) {
            return cx.bad_attr("pool_size", size, "the extents must be positive");
        }
        for (name, list, count) in [
            ("strides", &self.strides, rank),
            ("dilation", &self.dilation, rank),
            ("padding", &self.padding, 2 * rank),
        ] {
            if list.len() != count {
                return cx.bad_attr(name, list, format!("{count} numbers are expected"));
            }
        }
        let windows = Window::each(cx, &self.strides, &self.padding, &self.dilation)?;
        let Some(dims) = cx.tensor_of_rank(0, rank + 2)?.dims else {
            return Ok(cx.tensor_type(DType::I64, None));
        };
        let mut out = dims[..2].to_vec();
        for (axis, window) in windows.iter().enumerate() {
            let reach = (size[axis] - 1) * window.dilation + 1;
            if window.before.max(window.after) >= reach {
                let reason =
                    format!("along axis {axis} a window of {reach} would see padding alone");
                return cx.bad_attr("padding", [window.before, window.after], reason);
            }
            let taps = cx.dim(size[axis]);
            out.push(window.out_dim(cx, dims[2 + axis], taps, self.ceil_mode)?);
        }
        Ok(cx.tensor_type(DType::I64, Some(&out)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let x = cx.arg(0)?;
        let (_, shape) = cx.out()?;
        let (extents, out) = (&x.shape()[2..], &shape[2..]);
        let size: Vec<usize> = self.pool_size.iter().map(|&size| size as usize).collect();
        let (plane, places) = (extents.iter().product::<usize>(), out.iter().product::<usize>());
        let (own, steps, in_window) = (row_major(extents), row_major(out), row_major(&size));
        let told = self.told(extents);
        let part = |number: usize, steps: &[isize], all: &[usize], axis: usize| {
            (number / steps[axis] as usize % all[axis]) as i64
        };
        with_number!(x.dtype(), T => {
            let elements = x.elements::<T>();
            let mut all = Vec::with_capacity(shape.iter().product());
            for number in 0..shape[..2].iter().product::<usize>() {
                let elements = &elements[number * plane..(number + 1) * plane];
                for place in 0..places {
                    let mut best: Option<(T, usize)> = None;
                    'taps: for tap in 0..size.iter().product::<usize>() {
                        let (mut from, mut index) = (0, number * plane);
                        for axis in 0..size.len() {
                            let at = part(place, &steps, out, axis) * self.strides[axis]
                                + part(tap, &in_window, &size, axis) * self.dilation[axis]
                                - self.padding[axis];
                            if !(0..extents[axis] as i64).contains(&at) {
                                continue 'taps;
                            }
                            from += at as usize * own[axis] as usize;
                            index += at as usize * told[axis];
                        }
                        let value = elements[from];
                        if best.is_none_or(|(best, _)| value.to_f64() > best.to_f64()) {
                            best = Some((value, index));
                        }
                    }
                    all.push(best.map_or(0, |(_, index)| index as i64));
                }
            }
            Ok(vec![Tensor::from_vec(shape.to_vec(), all)])
        })
    }
}

impl MaxPoolIndices {
    /// How far one step along each spatial axis leads in an index.
    fn told(&self, extents: &[usize]) -> Vec<usize> {
        if !self.column_major {
            return row_major(extents).into_iter().map(|step| step as usize).collect();
        }
        let along = |axis: usize| extents[..axis].iter().product();
        (0..extents.len()).map(along).collect()
    }
}

/// The largest element so far and its index, tap by tap.
#[rule(compute)]
fn program(op: &MaxPoolIndices, program: &mut Program) {
    let program = &*program;
    let (x, out) = (program.input(0), program.output(0));
    let extents = &x.shape()[2..];
    let dtype = x.compute_dtype();
    let extent = |axis: usize| extents[axis].index(program);
    let none = Reducer::Max.identity(program, dtype);
    let [_, place] = program.fold(
        ["best", "place"],
        out.shape(),
        &op.pool_size,
        |_| [none, program.index(-1)],
        |i, k, [best, place]| {
            let mut at = i[..2].to_vec();
            let mut is_there: Option<program::Scalar<'_>> = None;
            let mut own = Vec::new();
            for axis in 0..extents.len() {
                let from = i[2 + axis] * op.strides[axis] + k[axis] * op.dilation[axis];
                let from = from - op.padding[axis];
                let is_in = from.ge(0).and(from.lt(extent(axis)));
                is_there = Some(is_there.map_or(is_in, |before| before.and(is_in)));
                own.push(from.max(0).min(extent(axis) - 1));
            }
            at.extend(&own);
            let value = x.wide(&at);
            let mut index = i[0] * x.shape()[1].index(program) + i[1];
            for (axis, &own) in own.iter().enumerate() {
                index = index * extent(axis);
                if !op.column_major {
                    index = index + own;
                }
            }
            if op.column_major {
                let mut within = program.index(0);
                for axis in (0..extents.len()).rev() {
                    within = within * extent(axis) + own[axis];
                }
                index = index + within;
            }
            let is_first = place.lt(0);
            let is_better = is_first.select(program.int(DType::BOOL, 1), value.gt(best));
            let is_taken = is_there.map_or(is_better, |is_there| is_there.and(is_better));
            [is_taken.select(value, best), is_taken.select(index, place)]
        },
    );
    program.set(&out, |i| place.at(i).max(0));
}
