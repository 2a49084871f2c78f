//! Programs that compute each element by itself, with broadcasting.
//!
//! ```text
//! add(a: f32[4, 1], b: f32[3])        for i in 4 { for j in 3 { block "add" (vi = i, vj = j) { out[vi, vj] = a[vi, 0] + b[vj] } } }
//! ```
//!
//! One block over the places of the result: what fusion folds into the programs around it.

use tenon_plugin_api::op::Result;
use tenon_plugin_api::program::{Program, Scalar};

use super::index::broadcast;

/// The element of the result from those of the arguments, which are read in the dtype that arithmetic is done in.
pub(crate) fn elementwise(
    program: &Program,
    apply: impl for<'p> FnOnce(&[Scalar<'p>]) -> Scalar<'p>,
) -> Result<()> {
    let (inputs, out) = (program.inputs(), program.output(0));
    program.set(&out, |indices| {
        let args: Vec<Scalar<'_>> = inputs
            .iter()
            .map(|input| input.wide(&broadcast(program, input.shape(), out.shape(), indices)))
            .collect();
        apply(&args)
    });
    Ok(())
}

/// The program of an operator on each element by itself.
macro_rules! computes {
    ($op:ty, |$x:ident| $value:expr) => {
        /// One element after the other.
        #[rule(compute)]
        fn program(_: &$op, program: &mut Program) -> tenon_plugin_api::op::Result<()> {
            crate::program::elementwise::elementwise(program, |args| {
                let $x = args[0];
                $value
            })
        }
    };
    ($op:ty, |$a:ident, $b:ident| $value:expr) => {
        /// One element after the other.
        #[rule(compute)]
        fn program(_: &$op, program: &mut Program) -> tenon_plugin_api::op::Result<()> {
            crate::program::elementwise::elementwise(program, |args| {
                let ($a, $b) = (args[0], args[1]);
                $value
            })
        }
    };
}

pub(crate) use computes;
