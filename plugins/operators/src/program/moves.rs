//! Programs each of whose elements is one element of the argument, at an index that is computed.
//!
//! ```text
//! transpose(a: f32[4, 3])              for i in 3 { for j in 4 { out[i, j] = a[j, i] } }
//! ```

use tenon_plugin_api::op::Result;
use tenon_plugin_api::program::{Program, Scalar, Stmt};

use super::index::regroup;

/// One store at each place of the result, of what `element` says for its indices.
pub(crate) fn moved<'p>(
    program: &'p Program,
    element: impl FnOnce(&[Scalar<'p>]) -> Result<Scalar<'p>>,
) -> Result<Stmt> {
    let out = program.output(0);
    let indices = program.axes(out.shape().len());
    let value = element(&indices)?;
    Ok(program.over(&indices, out.shape(), out.set(&indices, value)))
}

/// The elements of the argument in their order, in another shape.
pub(crate) fn regrouped(program: &Program) -> Result<Stmt> {
    let (input, out) = (program.input(0), program.output(0));
    moved(program, |indices| Ok(input.at(&regroup(program, indices, out.shape(), input.shape()))))
}
