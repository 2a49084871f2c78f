//! Publishing a body: replacements applied, unreachable nodes dropped, the rest in post-order.

use std::sync::Arc;

use tenon_plugin_api::abi::records::RawNode;
use tenon_plugin_api::ir::{BodyView, Expr, Kind};

use super::function::KnownParts;
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
        parts: KnownParts::default(),
    };
    let mut number = vec![UNSEEN; body.len()];
    let mut constant_number = vec![UNSEEN; constants.len()];
    let mut sources = Sources::default();
    // The operands of nodes that were entered and not left, those of one node behind those of the one that reads it.
    let mut waiting: Vec<u32> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut entered = Some((root, body.raw_node(root)));
    loop {
        if let Some((expr, node)) = entered.take() {
            open.push(Open::new(expr, node, waiting.len()));
            // Most nodes have no operands, and of those that have most bind nothing.
            match Kind(node.kind) {
                _ if node.len == 0 => {}
                Kind::CALL => waiting.extend(body.operands(expr).iter().map(|operand| operand.0)),
                _ => waiting.extend(body.operands_keeping_binders(expr).map(|operand| operand.0)),
            }
        }
        let Some(top) = open.last_mut() else { break };
        if let Some(&operand) = waiting.get(top.next) {
            top.next += 1;
            match number.get(operand as usize) {
                None => return Err(TransactionError::MissingOperand(top.expr.0)),
                Some(&OPEN) => return Err(TransactionError::Cycle(operand)),
                Some(&UNSEEN) => {
                    number[operand as usize] = OPEN;
                    let operand = Expr(operand);
                    entered = Some((operand, top.hand(body.raw_node(operand))));
                }
                Some(_) => top.pass_over(),
            }
            continue;
        }
        let Some(Open { expr, mut node, first, .. }) = open.pop() else { break };
        number[expr.index()] = out.nodes.len() as u32;
        let start = out.operands.len() as u32;
        out.operands.extend(waiting[first..].iter().map(|&operand| number[operand as usize]));
        waiting.truncate(first);
        if node.kind == Kind::CONSTANT.0 {
            let slot = &mut constant_number[node.data as usize];
            node.data = add_constant(&mut out, &constants[node.data as usize], slot);
        }
        sources.leave(&mut node, &mut out.nodes, &out.operands[start as usize..]);
        out.nodes.push(RawNode { start, ..node });
    }
    out.nodes.shrink_to_fit();
    Ok(out)
}

/// The number of a constant in a function, which `slot` remembers.
fn add_constant(out: &mut Function, constant: &Arc<Constant>, slot: &mut u32) -> u32 {
    if *slot == UNSEEN {
        *slot = out.constants.len() as u32;
        out.raw_constants.push(constant.raw());
        out.constants.push(constant.clone());
    }
    *slot
}

/// A node that was entered and not left.
struct Open {
    expr: Expr,
    /// As it will be published, but for its operands.
    node: RawNode,
    /// Where its operands begin among those that wait.
    first: usize,
    /// The next one to look at.
    next: usize,
    /// The source that the next operand gets that has none: of a value that is bound that of its variable, of others that of
    /// the node that reads them.
    handed: u32,
}

impl Open {
    fn new(expr: Expr, node: RawNode, first: usize) -> Self {
        let handed = if Kind(node.kind).has_source() { node.span } else { 0 };
        Self { expr, node, first, next: first, handed }
    }

    /// An operand that is entered.
    fn hand(&mut self, operand: RawNode) -> RawNode {
        let kind = Kind(operand.kind);
        let span = match operand.span {
            0 if kind.has_source() => self.handed,
            own => own,
        };
        if self.node.kind == Kind::LET.0 {
            self.handed = if kind == Kind::VAR { span } else { 0 };
        }
        RawNode { span, ..operand }
    }

    /// Goes on behind an operand that is left already.
    fn pass_over(&mut self) {
        if self.node.kind == Kind::LET.0 {
            self.handed = 0;
        }
    }
}

/// What was seen of sources, so that functions without any pay nothing for them.
#[derive(Default)]
struct Sources {
    has_any: bool,
    has_bare_vars: bool,
}

impl Sources {
    /// A node is left: where nobody has a source for it, it gets that of an operand; and a variable that of its value.
    fn leave(&mut self, node: &mut RawNode, nodes: &mut [RawNode], operands: &[u32]) {
        self.has_any |= node.span != 0;
        match Kind(node.kind) {
            Kind::VAR => self.has_bare_vars |= node.span == 0,
            Kind::LET if self.has_any && self.has_bare_vars => {
                for &[var, value] in operands.as_chunks::<2>().0 {
                    if nodes[var as usize].span == 0 {
                        nodes[var as usize].span = nodes[value as usize].span;
                    }
                }
            }
            kind if node.span == 0 && self.has_any && kind.has_source() => {
                let own = |&operand: &u32| {
                    let operand = &nodes[operand as usize];
                    let kind = Kind(operand.kind);
                    (kind == Kind::VAR || kind.has_source()).then_some(operand.span)
                };
                node.span = operands.iter().filter_map(own).find(|&span| span != 0).unwrap_or(0);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
