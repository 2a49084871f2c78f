//! The operators of scalar expressions that stand between their operands, and how tightly they bind.

use crate::BinaryOp;

/// An operator between its operands.
#[derive(Clone, Copy)]
pub(super) struct Infix {
    /// With a space on both sides.
    pub(super) text: &'static str,
    /// The higher, the tighter.
    pub(super) tightness: u8,
}

/// Tighter than every operator.
pub(super) const ATOM: u8 = 6;

/// How an operator is written; the smaller and the larger of two are written as calls.
pub(super) fn infix(op: BinaryOp) -> Option<Infix> {
    let (text, tightness) = match op {
        BinaryOp::Or => (" || ", 1),
        BinaryOp::And => (" && ", 2),
        BinaryOp::Eq => (" == ", 3),
        BinaryOp::Ne => (" != ", 3),
        BinaryOp::Lt => (" < ", 3),
        BinaryOp::Le => (" <= ", 3),
        BinaryOp::Gt => (" > ", 3),
        BinaryOp::Ge => (" >= ", 3),
        BinaryOp::Add => (" + ", 4),
        BinaryOp::Sub => (" - ", 4),
        BinaryOp::Mul => (" * ", 5),
        BinaryOp::Div => (" / ", 5),
        BinaryOp::FloorDiv => (" floordiv ", 5),
        BinaryOp::FloorMod => (" % ", 5),
        BinaryOp::Min | BinaryOp::Max => return None,
    };
    Some(Infix { text, tightness })
}
