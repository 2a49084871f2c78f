//! Has bytes on a scale stay bytes where they are only moved.
//!
//! ```ir
//! %a = multiply(cast(subtract(cast(%x) { dtype = "i32" }, 3)) { dtype = "f32" }, 0.1)        %x: u8[2, 8, 4]
//! %b = transpose(%a) { axes = [0, 2, 1] }
//! %y = cast(clip(add(round(divide(%b, 0.1)), 3)) { max = 255.0, min = 0.0 }) { dtype = "u8" }
//!                        =>
//! %y = transpose(%x) { axes = [0, 2, 1] }
//! ```
//!
//! Tools that quantize a model put a scale behind every result, and the same one where numbers only change places. A number of steps,
//! times a step, divided by it, is off by less than half a step: rounded on the same scale, numbers become the bytes that they were, so
//! what moves them or takes the largest of them gives the same bytes from these.

use tenon_plugin_api::prelude::*;

use crate::scaled::{Rounded, Scaled, is_byte};

/// What gives elements of its first argument, chosen by their places or as the largest.
const MOVES: [&str; 8] = [
    "reshape",
    "transpose",
    "expand_dims",
    "squeeze",
    "strided_slice",
    "broadcast_to",
    "take",
    "nn.max_pool2d",
];
/// Moves between two scales, at most.
const MOST: usize = 16;

/// Has bytes on a scale stay bytes where they are only moved.
#[pass(
    name = "relax.KeepQuantizedMoves",
    opt_level = 1,
    phase = "optimize",
    before = ["relax.FoldConstant", "relax.KeepQuantizedConvolutions"]
)]
fn keep_quantized_moves(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        if body.op_name(callee) == Some("cast")
            && let Some(made) = of_bytes(&mut rw, expr)
            && rw.body().ty(made) == body.ty(expr)
        {
            rw.replace(expr, made);
        }
    }
    rw.finish()
}

/// The bytes of numbers that are moved and rounded, where they were bytes on the same scale before.
fn of_bytes(rw: &mut Rewriter, expr: Expr) -> Option<Expr> {
    let rounded = Rounded::of(rw, expr)?;
    let (mut moves, mut x) = (Vec::new(), rounded.x);
    while moves.len() < MOST
        && let Some((op, call)) = MOVES.iter().find_map(|&op| Some((op, rw.call_of(x, op)?)))
    {
        x = *call.args.first()?;
        moves.push((op, call));
    }
    let (bytes, scale, zero) = stored(rw, x)?;
    let is_one_scale = scale == rounded.scale && (1e-30..1e30).contains(&scale);
    if !is_one_scale || zero != rounded.zero || rw.tensor(bytes)?.0 != rw.tensor(expr)?.0 {
        return None;
    }
    let moved = moves.into_iter().rev().fold(bytes, |bytes, (op, mut call)| {
        call.args[0] = bytes;
        rw.call_op(op, &call.args, call.attrs)
    });
    Some(moved)
}

/// The bytes that numbers were made of, their scale and their zero.
fn stored(rw: &mut Rewriter, x: Expr) -> Option<(Expr, f64, f64)> {
    if let Some(call) = rw.call_of(x, "dequantize") {
        let &[bytes, scale, zero] = call.args.as_slice() else { return None };
        let numbers = (rw.splat(scale)?, rw.splat(zero)?);
        return is_byte(rw.body(), bytes).then_some((bytes, numbers.0, numbers.1));
    }
    let scaled = Scaled::of(rw, x)?;
    let zero = scaled.zero.map_or(Some(0.0), |zero| rw.splat(zero))?;
    Some((scaled.bytes, rw.splat(scaled.scale)?, zero))
}
