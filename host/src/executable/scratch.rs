//! The memory that kernels are lent: as much, behind the tensors of the workspace, as the one that needs most.

use crate::backend::Scratch;
use crate::ir::{BinaryOp, Context, Cx, Symbol};
use crate::plan::{Bindings, Entry, Size, Sizes};

/// Boundaries that regions begin on.
const ALIGN: u64 = 64;

/// What a kernel must be lent, in the symbols of its parameters.
#[derive(Debug, Default)]
pub(super) struct Lent {
    pub(super) scratch: Scratch,
    pub(super) symbols: Vec<Symbol>,
}

/// Makes the workspace of `entry` large enough for all its calls; `lent` has an entry for each of its kernels.
pub(super) fn lend(cx: &Cx, entry: &mut Entry, sizes: &mut Sizes, lent: &[Lent]) {
    let mut most = Size::Known(0);
    for call in entry.calls() {
        let Lent { scratch, symbols } = &lent[call.kernel];
        let bindings: Bindings =
            symbols.iter().copied().zip(call.symbols.iter().copied()).collect();
        let mut bytes = Size::Known(scratch.bytes as i64);
        for &region in &scratch.regions {
            // All symbols of a program stand for something, so that each region has a size.
            let region = sizes.dim(cx.terms(), region, &bindings).unwrap_or_default();
            let region = sizes.aligned(region, ALIGN);
            bytes = sizes.binary(BinaryOp::Add, bytes, region);
        }
        most = sizes.binary(BinaryOp::Max, most, bytes);
    }
    entry.scratch = entry.workspace;
    entry.workspace = sizes.binary(BinaryOp::Add, entry.workspace, most);
}
