//! The memory that kernels are lent: as much, behind the tensors of the workspace, as the one that needs most.

use crate::backend::Scratch;
use crate::ir::{BinaryOp, Context, Cx, Symbol};
use crate::plan::{Action, Bindings, Callee, Code, Size, Sizes};

/// Boundaries that regions begin on.
const ALIGN: u64 = 64;

/// What a kernel must be lent, in the symbols of its parameters.
#[derive(Debug, Default)]
pub(super) struct Lent {
    pub(super) scratch: Scratch,
    pub(super) symbols: Vec<Symbol>,
}

/// Makes the workspace of each body large enough for all its calls; `lent` has an entry for each of the kernels, `sizes` for
/// each body. What a function needs is known before those that call it.
pub(super) fn lend(cx: &Cx, code: &mut Code, sizes: &mut [Sizes], lent: &[Lent]) {
    let mut needed: Vec<Size> = Vec::with_capacity(sizes.len());
    for (number, body) in code.bodies_mut().enumerate() {
        let (behind, rest) = sizes.split_at_mut(number);
        let sizes = &mut rest[0];
        let mut most = Size::Known(0);
        for action in &body.actions {
            let (callee, symbols) = match action {
                Action::Call(call) => (call.callee, &call.symbols),
                Action::Loop(it) => (Callee::Routine(it.routine), &it.symbols),
                _ => continue,
            };
            let bytes = match callee {
                Callee::Kernel(kernel) => scratch(cx, sizes, &lent[kernel], symbols),
                Callee::Routine(routine) => {
                    let bytes = sizes.of_call(behind[routine].steps(), needed[routine], symbols);
                    sizes.most(bytes)
                }
            };
            most = sizes.binary(BinaryOp::Max, most, bytes);
        }
        body.scratch = body.workspace;
        body.workspace = sizes.binary(BinaryOp::Add, body.workspace, most);
        needed.push(body.workspace);
    }
}

/// What a call lends to a kernel.
fn scratch(cx: &Cx, sizes: &mut Sizes, lent: &Lent, given: &[Size]) -> Size {
    let Lent { scratch, symbols } = lent;
    let bindings: Bindings = symbols.iter().copied().zip(given.iter().copied()).collect();
    let mut bytes = Size::Known(scratch.bytes as i64);
    for &region in &scratch.regions {
        // All symbols of a program stand for something, so that each region has a size.
        let region = sizes.dim(cx.terms(), region, &bindings).unwrap_or_default();
        let region = sizes.aligned(sizes.most(region), ALIGN);
        bytes = sizes.binary(BinaryOp::Add, bytes, region);
    }
    bytes
}
