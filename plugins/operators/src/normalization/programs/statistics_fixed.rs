//! Normalizations by the statistics of the tensor itself, where the extents are known.
//!
//! ```text
//! mean = sum of x[i] / n
//! inverse = 1 / sqrt(sum of (x[i] - mean)^2 / n + epsilon)
//! out[i] = (x[i] - mean) * inverse * gamma[i] + beta[i]
//! ```
//!
//! In vectors of the last axis. Where it lies within the groups, each lane has a sum of its own until the end; where
//! it counts them, each lane is a group. The mean is taken away before squaring, so that nothing cancels.

use super::GroupAxes;
use crate::program::fixed::fold_lanes::fold_lanes;
use crate::program::fixed::{Block, Buffer, Fixed, Kernel, Loops, Scalar, Stmt, vector_width};
use crate::program::index::regroup;

/// By mean and variance, with scale and shift.
pub(crate) fn standardize(args: &Fixed<'_>, groups: &GroupAxes<i64>, epsilon: f64) -> Stmt {
    by_group(args, groups, |group, body, inputs, out| {
        let count = group.count() as f64;
        let mean = group.sum(body, "mean", &|x, _| x);
        group.finish(body, &mean, &|sum| sum / count);
        let inverse = group.sum(body, "inverse", &|x, l| {
            let mean = mean.at(&[l]);
            (x - mean) * (x - mean)
        });
        group.finish(body, &inverse, &|sum| one_over((sum / count + epsilon).call("sqrt")));
        body.push(group.each(|element| {
            let [gamma, beta] = [1, 2].map(|index: usize| {
                let shape = &inputs[index].shape;
                inputs[index].wide(&regroup(group.kernel, &element.params, &group.params, shape))
            });
            let normal = (element.value - mean.at(&[element.group])) * inverse.at(&[element.group]);
            out.set(&element.at, normal * gamma + beta)
        }));
    })
}

/// By the root of the sum of squares.
pub(crate) fn l2_normalize(args: &Fixed<'_>, groups: &GroupAxes<i64>, epsilon: f64) -> Stmt {
    by_group(args, groups, |group, body, _, out| {
        let inverse = group.sum(body, "inverse", &|x, _| x * x);
        group.finish(body, &inverse, &|sum| one_over(sum.max(epsilon).call("sqrt")));
        body.push(
            group
                .each(|element| out.set(&element.at, element.value * inverse.at(&[element.group]))),
        );
    })
}

fn one_over(value: Scalar<'_>) -> Scalar<'_> {
    value.program().literal(value.dtype(), 1.0) / value
}

/// The program that does the same to each group.
fn by_group<'k>(
    args: &Fixed<'k>,
    groups: &GroupAxes<i64>,
    write: impl FnOnce(&Group<'_, 'k>, &mut Block<'k>, &[Buffer<'k>], &Buffer<'k>),
) -> Stmt {
    let (kernel, data, out) = (args.kernel, &args.inputs[0], &args.outputs[0]);
    let lanes = args.lanes_of(out.dtype);
    let outer: Vec<i64> = (groups.shape.iter().zip(&groups.is_inner))
        .map(|(&extent, &is_inner)| if is_inner { 1 } else { extent })
        .collect();
    let params: Vec<i64> = groups.params.iter().map(|&axis| groups.shape[axis]).collect();
    // An axis of extent 1 has no neighbours.
    let lane_axis = groups.shape.iter().rposition(|&extent| extent != 1).unwrap_or(0);
    let width = groups.shape.get(lane_axis).map_or(1, |&extent| vector_width(extent, lanes));
    let at_once = if outer.get(lane_axis) == Some(&1) { 1 } else { width };
    let count = outer.iter().product::<i64>() / at_once;
    kernel.parallel("p", count, |p| {
        let group =
            Group { kernel, data, groups, outer, params, p, count, lane_axis, width, at_once };
        let mut body = Block::new(kernel);
        write(&group, &mut body, &args.inputs, out);
        body.finish()
    })
}

/// The groups that are worked on at once: one, or as many as there are lanes.
struct Group<'a, 'k> {
    kernel: &'k Kernel,
    data: &'a Buffer<'k>,
    groups: &'a GroupAxes<i64>,
    /// The shape of the groups with 1 for the axes within them.
    outer: Vec<i64>,
    /// The shape that scale and shift run over.
    params: Vec<i64>,
    /// Their number, of `count`.
    p: Scalar<'k>,
    count: i64,
    /// The axis of the lanes, and how many these are.
    lane_axis: usize,
    width: i64,
    /// How many groups they are.
    at_once: i64,
}

/// An element of a group.
struct Element<'k> {
    value: Scalar<'k>,
    /// Its indices in the data.
    at: Vec<Scalar<'k>>,
    /// Its indices in scale and shift.
    params: Vec<Scalar<'k>>,
    /// Which of the groups it is in.
    group: Scalar<'k>,
}

impl<'k> Group<'_, 'k> {
    /// How many elements a group has.
    fn count(&self) -> i64 {
        self.groups.axes(true).iter().map(|&axis| self.groups.shape[axis]).product()
    }

    /// A buffer of the sums over what the elements become, one for each group; they are given which it is.
    fn sum(
        &self,
        body: &mut Block<'k>,
        name: &str,
        of: &dyn Fn(Scalar<'k>, Scalar<'k>) -> Scalar<'k>,
    ) -> Buffer<'k> {
        let dtype = self.data.compute_dtype();
        let sum = body.local(name, dtype, &[self.width]);
        let zero = self.kernel.literal(dtype, 0.0);
        body.push(self.kernel.vectorized("l", self.width, |l| sum.set(&[l], zero)));
        body.push(
            self.loops(|l, element| sum.set(&[l], sum.at(&[l]) + of(element.value, element.group))),
        );
        if self.at_once == 1 {
            fold_lanes(body, &sum, self.width, &|a, b| a + b);
        }
        sum
    }

    /// Makes of each group's sum what it is needed for.
    fn finish(
        &self,
        body: &mut Block<'k>,
        sum: &Buffer<'k>,
        of: &dyn Fn(Scalar<'k>) -> Scalar<'k>,
    ) {
        let stmt = |l: Scalar<'k>| sum.set(&[l], of(sum.at(&[l])));
        body.push(self.kernel.vectorized("l", self.at_once, stmt));
    }

    /// A statement for each element.
    fn each(&self, write: impl FnOnce(Element<'k>) -> Stmt) -> Stmt {
        self.loops(|_, element| write(element))
    }

    /// Loops over the elements, the innermost one in vectors: of a lane and its element.
    fn loops(&self, body: impl FnOnce(Scalar<'k>, Element<'k>) -> Stmt) -> Stmt {
        let Self { kernel, groups, width, lane_axis, at_once, .. } = *self;
        let axes = groups.axes(true);
        let vars = kernel.vars(axes.len());
        let is_of_lanes = |axis: usize| axis == lane_axis && at_once == 1;
        let steps: Vec<i64> = axes
            .iter()
            .map(|&axis| groups.shape[axis] / if is_of_lanes(axis) { width } else { 1 })
            .collect();
        let step = kernel.vectorized("l", width, |l| {
            let group = if at_once == 1 { kernel.index(0) } else { l };
            let number = self.p * at_once + group;
            let mut indices = regroup(kernel, &[number], &[self.count * at_once], &self.outer);
            for (&axis, &var) in axes.iter().zip(&vars) {
                indices[axis] = if is_of_lanes(axis) { var * width + l } else { var };
            }
            let at = regroup(kernel, &indices, &groups.shape, &self.data.shape);
            let params = groups.params.iter().map(|&axis| indices[axis]).collect();
            body(l, Element { value: self.data.wide(&at), at, params, group })
        });
        kernel.over(&vars, &steps, step)
    }
}
