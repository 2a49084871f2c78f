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
    // The nodes that were entered and not left, each with its operands that were not looked at.
    let mut open = vec![(root, body.operands_keeping_binders(root))];
    while let Some((expr, operands)) = open.last_mut() {
        let expr = *expr;
        if let Some(operand) = operands.next() {
            match number.get(operand.index()) {
                None => return Err(TransactionError::MissingOperand(expr.0)),
                Some(&OPEN) => return Err(TransactionError::Cycle(operand.0)),
                Some(&UNSEEN) => {
                    number[operand.index()] = OPEN;
                    open.push((operand, body.operands_keeping_binders(operand)));
                }
                Some(_) => {}
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
