//! Reductions along axes, of any extents.
//!
//! ```text
//! acc[i] = acc[i] + x[i, r]
//! out[i] = acc[i]                       or acc[i] / n
//! ```

use tenon_plugin_api::ir::Dim;
use tenon_plugin_api::op::Result;
use tenon_plugin_api::program::{Extent, Program, Reducer};

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
    fn axes(&self, rank: usize) -> Result<Vec<usize>> {
        match self.axes {
            Some(axes) => axes.iter().map(|&axis| axis_of(axis, rank)).collect(),
            None => Ok((0..rank).collect()),
        }
    }
}

/// Each result as what its elements are reduced to.
pub(crate) fn reduce(program: &Program, reduction: Reduction<'_>) -> Result<()> {
    let (data, out) = (program.input(0), program.output(0));
    let (rank, dtype) = (data.shape().len(), data.compute_dtype());
    let axes = reduction.axes(rank)?;
    let extents: Vec<Dim> = axes.iter().map(|&axis| data.shape()[axis]).collect();
    let keeps_axes = out.shape().len() == rank;
    let reduced = program.reduce("acc", reduction.reducer, dtype, out.shape(), &extents, |i, r| {
        let mut own = i.iter();
        let place = |axis| match axes.iter().position(|&other| other == axis) {
            Some(position) => {
                if keeps_axes {
                    own.next();
                }
                Some(r[position])
            }
            None => own.next().copied(),
        };
        data.wide(&(0..rank).filter_map(place).collect::<Vec<_>>())
    });
    let count = extents.iter().map(|extent| extent.index(program));
    let count = count.reduce(|a, b| a * b).unwrap_or(program.index(1)).cast(dtype);
    program.set(&out, |i| if reduction.is_mean { reduced.at(i) / count } else { reduced.at(i) });
    Ok(())
}

/// The rules of a reduction.
macro_rules! reduces {
    ($op:ty, $reducer:expr, is_mean = $is_mean:expr) => {
        /// Each result as what its elements are reduced to.
        #[rule(compute)]
        fn program(op: &$op, program: &mut Program) -> Result<()> {
            let axes = op.axis.as_deref();
            programs::reduce(program, Reduction { reducer: $reducer, is_mean: $is_mean, axes })
        }
    };
}

pub(crate) use reduces;
