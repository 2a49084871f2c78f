//! Programs that compute each element by itself, with broadcasting.
//!
//! ```text
//! add(a: f32[4, 1], b: f32[3])        for i in 4 { for j in 3 { out[i, j] = a[i, 0] + b[j] } }
//! ```
//!
//! One store at each place of the result: what fusion folds into the programs around it.

use tenon_plugin_api::op::Result;
use tenon_plugin_api::program::{Program, Scalar, Stmt};

use super::index::{broadcast, check_broadcast};

/// The element of the result from those of the arguments, which are read in the dtype that arithmetic is done in.
pub(crate) fn elementwise(
    program: &Program,
    apply: impl for<'p> FnOnce(&[Scalar<'p>]) -> Scalar<'p>,
) -> Result<Stmt> {
    let (inputs, out) = (program.inputs(), program.output(0));
    for input in &inputs {
        check_broadcast(program, input.shape(), out.shape())?;
    }
    Ok(program.each(out.shape(), |indices| {
        let args: Vec<Scalar<'_>> = inputs
            .iter()
            .map(|input| input.wide(&broadcast(program, input.shape(), indices)))
            .collect();
        out.set(indices, apply(&args))
    }))
}

/// The program of an operator on each element by itself.
macro_rules! computes {
    ($op:ty, |$x:ident| $value:expr) => {
        /// One element after the other.
        #[rule(compute)]
        fn program(_: &$op, program: &mut Program) -> tenon_plugin_api::op::Result<Stmt> {
            crate::program::elementwise::elementwise(program, |args| {
                let $x = args[0];
                $value
            })
        }
    };
    ($op:ty, |$a:ident, $b:ident| $value:expr) => {
        /// One element after the other.
        #[rule(compute)]
        fn program(_: &$op, program: &mut Program) -> tenon_plugin_api::op::Result<Stmt> {
            crate::program::elementwise::elementwise(program, |args| {
                let ($a, $b) = (args[0], args[1]);
                $value
            })
        }
    };
}

pub(crate) use computes;
