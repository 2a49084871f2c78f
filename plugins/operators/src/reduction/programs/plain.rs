//! Reductions along axes, of any extents: one result after the other.

use tenon_plugin_api::ir::Dim;
use tenon_plugin_api::op::Result;
use tenon_plugin_api::program::{Extent, Program, Reducer, Scalar, Stmt};

use crate::program::index::axis_of;

/// What becomes of the elements along some axes.
#[derive(Clone, Copy)]
pub(crate) struct Reduction<'a> {
    pub(crate) reducer: Reducer,
    /// Whether the result is divided by how many they are.
    pub(crate) is_mean: bool,
    /// The axes; all when not given.
    pub(crate) axes: Option<&'a [i64]>,
}

impl Reduction<'_> {
    /// The axes of data of a rank.
    pub(super) fn axes(&self, rank: usize) -> Result<Vec<usize>> {
        match self.axes {
            Some(axes) => axes.iter().map(|&axis| axis_of(axis, rank)).collect(),
            None => Ok((0..rank).collect()),
        }
    }
}

/// One result after the other.
pub(crate) fn reduce<'p>(program: &'p Program, reduction: Reduction<'_>) -> Result<Stmt> {
    let (data, out) = (program.input(0), program.output(0));
    let rank = data.shape().len();
    let axes = reduction.axes(rank)?;
    let extents: Vec<Dim> = axes.iter().map(|&axis| data.shape()[axis]).collect();
    let keeps_axes = out.shape().len() == rank;
    Ok(program.each(out.shape(), |i| {
        let mut body = program.block();
        let at = |reduced: &[Scalar<'p>]| {
            let mut own = i.iter();
            let place = |axis| match axes.iter().position(|&other| other == axis) {
                Some(position) => {
                    if keeps_axes {
                        own.next();
                    }
                    Some(reduced[position])
                }
                None => own.next().copied(),
            };
            let indices: Vec<Scalar<'p>> = (0..rank).filter_map(place).collect();
            data.wide(&indices)
        };
        let value = body.reduce("acc", reduction.reducer, data.compute_dtype(), &extents, at);
        let value = match reduction.is_mean {
            true => {
                let count = extents.iter().map(|extent| extent.index(program));
                let count = count.reduce(|a, b| a * b).unwrap_or(program.index(1));
                value / count.cast(data.compute_dtype())
            }
            false => value,
        };
        body.push(out.set(i, value));
        body.finish()
    }))
}

/// The rules of a reduction.
macro_rules! reduces {
    ($op:ty, $reducer:expr, is_mean = $is_mean:expr) => {
        /// One result after the other.
        #[rule(compute)]
        fn program(op: &$op, program: &mut Program) -> Result<Stmt> {
            let axes = op.axis.as_deref();
            programs::reduce(program, Reduction { reducer: $reducer, is_mean: $is_mean, axes })
        }

        /// In vectors of the last axis.
        #[rule(compute, benefit = 2)]
        fn fixed(op: &$op, program: &mut Program) -> Result<Option<Stmt>> {
            let axes = op.axis.as_deref();
            programs::fixed(program, Reduction { reducer: $reducer, is_mean: $is_mean, axes })
        }
    };
}

pub(crate) use reduces;
