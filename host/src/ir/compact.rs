//! Publishing a body: replacements applied, unreachable nodes dropped, the rest in post-order.

use std::sync::Arc;

use tenon_plugin_api::abi::records::RawNode;
use tenon_plugin_api::ir::{BodyView, Expr, Kind};

use super::{Constant, Cx, Function, TransactionError};

const UNSEEN: u32 = u32::MAX;
const OPEN: u32 = u32::MAX - 1;

/// Copies what `root` reaches. Linear in the nodes and operands, and without recursion.
pub(super) fn compact(
    cx: &Cx,
    body: BodyView<'_>,
    root: Expr,
    constants: &[Arc<Constant>],
) -> Result<Function, TransactionError> {
    let mut out = Function {
        cx: cx.clone(),
        nodes: Vec::with_capacity(body.len()),
        operands: Vec::with_capacity(body.records().operand_count()),
        constants: Vec::new(),
        raw_constants: Vec::new(),
    };
    let mut number = vec![UNSEEN; body.len()];
    let mut constant_number = vec![UNSEEN; constants.len()];
    // The operands of the open nodes that were not entered yet, the next one on top.
    let mut pending: Vec<Expr> = Vec::new();
    let mut open: Vec<(Expr, usize)> = Vec::new();

    let enter = |expr: Expr,
                 number: &mut Vec<u32>,
                 pending: &mut Vec<Expr>,
                 open: &mut Vec<(Expr, usize)>| {
        number[expr.index()] = OPEN;
        open.push((expr, pending.len()));
        let first = pending.len();
        pending.extend(body.operands_keeping_binders(expr));
        pending[first..].reverse();
        match pending[first..].iter().any(|operand| operand.index() >= body.len()) {
            true => Err(TransactionError::MissingOperand(expr.0)),
            false => Ok(()),
        }
    };

    enter(root, &mut number, &mut pending, &mut open)?;
    while let Some(&(expr, base)) = open.last() {
        if pending.len() > base {
            let operand = pending.pop().expect("longer than its base");
            match number[operand.index()] {
                UNSEEN => enter(operand, &mut number, &mut pending, &mut open)?,
                OPEN => return Err(TransactionError::Cycle(operand.0)),
                _ => {}
            }
            continue;
        }
        open.pop();
        number[expr.index()] = out.nodes.len() as u32;
        let node = body.raw_node(expr);
        let start = out.operands.len() as u32;
        out.operands
            .extend(body.operands_keeping_binders(expr).map(|operand| number[operand.index()]));
        let mut data = node.data;
        if node.kind == Kind::CONSTANT.0 {
            let slot = &mut constant_number[data as usize];
            if *slot == UNSEEN {
                *slot = out.constants.len() as u32;
                let constant = &constants[data as usize];
                out.raw_constants.push(constant.raw());
                out.constants.push(constant.clone());
            }
            data = *slot;
        }
        out.nodes.push(RawNode { start, data, ..node });
    }
    out.nodes.shrink_to_fit();
    Ok(out)
}
