//! The work itself, written over the IR's own views: a plugin and the host do the very same.

use tenon_plugin_api::ir::{BodyView, Build, Expr, Kind, View};

/// Reads the kind, the type and the operands of every node.
pub(crate) fn read(body: BodyView<'_>) -> u64 {
    body.post_order().fold(0, |sum, expr| {
        let ty = body.ty(expr).map_or(0, |ty| ty.0);
        let operands: u64 = body.operands(expr).iter().map(|operand| operand.0 as u64).sum();
        sum.wrapping_add(body.kind(expr).0 as u64 + ty as u64).wrapping_add(operands)
    })
}

/// Builds a copy of every `step`-th call; gives each call with its copy.
pub(crate) fn copy_calls(edit: &mut impl Build, step: usize) -> Vec<(Expr, Expr)> {
    let body = edit.body();
    let calls = body.post_order().filter(|&expr| body.kind(expr) == Kind::CALL).step_by(step);
    let calls: Vec<Expr> = calls.collect();
    calls.into_iter().map(|call| (call, copy_call(edit, call))).collect()
}

fn copy_call(edit: &mut impl Build, call: Expr) -> Expr {
    let body = edit.body();
    let View::Call { callee, args, attrs } = body.view(call) else { return call };
    let (args, ty) = (args.to_vec(), body.ty(call));
    edit.call(callee, &args, attrs, ty)
}
