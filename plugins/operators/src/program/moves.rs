//! Programs each of whose elements is one element of the argument, at an index that is computed.
//!
//! ```text
//! reshape(a: f32[4, 3])      for i in 12 { block "reshape" (vi = i) { out[vi] = a[vi / 3, vi % 3] } }
//! ```

use tenon_plugin_api::program::Program;

use super::index::regroup;

/// The elements of the argument in their order, in another shape.
pub(crate) fn regrouped(program: &Program) {
    let (input, out) = (program.input(0), program.output(0));
    program.set(&out, |indices| input.at(&regroup(program, indices, out.shape(), input.shape())));
}
