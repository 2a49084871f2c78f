//! Block form: every call of a function with bindings is itself bound.
//!
//! ```ir
//! fn @f(%x: f32[4]) {             fn @f(%x: f32[4]) {
//!   %a = two(one(%x, %x))    =>     %t = one(%x, %x)
//!   ret %a                          %a = exp(%t)
//! }                                 ret %a
//!                                 }
//! ```
//!
//! A value that is used in several scopes is bound in the innermost scope that encloses all its uses, just
//! before the binding it is first needed by, so sharing is kept and nothing is evaluated more often.
//! Leaves and tuples of leaves stay where they are. A function without bindings, a graph, is left alone.

use std::sync::Arc;

use tenon_plugin_api::abi::records::RawNode;
use tenon_plugin_api::ir::{BodyView, Context, Expr, Kind, Term, View};

use super::Function;
use super::ScopeTree;
use super::compact::compact;
use super::function::KnownParts;

const NONE: u32 = u32::MAX;

/// Brings a function whose body has bindings into block form; any other comes back as it is.
pub fn normalize(function: &Arc<Function>) -> Arc<Function> {
    let body = function.view();
    let View::Function { body: result, .. } = body.view(body.root()) else {
        return function.clone();
    };
    if body.kind(result) != Kind::LET {
        return function.clone();
    }
    let scopes = Scopes::of(body);
    match scopes.binder.iter().any(|&binder| binder != NONE) {
        true => {
            let rebuilt = rebuild(function, &scopes);
            let (view, constants) = (rebuilt.view(), &rebuilt.constants);
            // Fresh bindings stand behind their values; a published body is in depth-first order.
            match compact(&function.cx, view, view.root(), constants) {
                Ok(ordered) => Arc::new(ordered),
                Err(_) => unreachable!("bindings were only moved in front of their uses"),
            }
        }
        false => function.clone(),
    }
}

/// Where each node is evaluated.
struct Scopes {
    /// For a node to be bound to a fresh variable, the `let` that is to hold the binding; else `NONE`.
    binder: Vec<u32>,
}

impl Scopes {
    /// One sweep from the root down: users stand behind their operands, so the scope of each node is
    /// final when it is reached. Bodies of functions and branches are scopes as well, but only a `let`
    /// has a place to bind in: what belongs to a body without one stays nested.
    fn of(body: BodyView<'_>) -> Self {
        let count = body.len();
        let mut tree = ScopeTree::new();
        // The `let` of each scope that is one.
        let mut lets = vec![NONE];
        let mut home = vec![NONE; count];
        let mut is_bound = vec![false; count];
        let mut is_needed = vec![false; count];
        home[body.root().index()] = ScopeTree::ROOT;
        for expr in body.post_order().rev() {
            let kind = body.kind(expr);
            let outer = home[expr.index()];
            let operands = body.operands(expr);
            let last = operands.len().saturating_sub(1);
            let own = (kind == Kind::LET).then(|| {
                lets.push(expr.0);
                tree.add(outer)
            });
            for (position, operand) in operands.iter().enumerate() {
                if body.kind(operand).is_leaf_value() || body.kind(operand) == Kind::VAR {
                    continue;
                }
                let is_body = (kind == Kind::IF && position > 0) || kind == Kind::FUNCTION;
                let scope = own.unwrap_or_else(|| match is_body {
                    true => {
                        lets.push(NONE);
                        tree.add(outer)
                    }
                    false => outer,
                });
                let seen = &mut home[operand.index()];
                *seen = if *seen == NONE { scope } else { tree.common(*seen, scope) };
                // The value of one binding is bound already.
                let is_value = kind == Kind::LET && position != last;
                is_needed[operand.index()] |= !is_value || is_bound[operand.index()];
                is_bound[operand.index()] |= is_value;
            }
        }
        let binder = body.post_order().map(|expr| {
            let is_plain = match body.kind(expr) {
                Kind::LET | Kind::FUNCTION => true,
                Kind::TUPLE => body.operands(expr).iter().all(|field| is_atom(body, field)),
                _ => false,
            };
            let scope = home[expr.index()];
            match is_needed[expr.index()] && !is_plain && scope != NONE {
                true => lets[scope as usize],
                false => NONE,
            }
        });
        Self { binder: binder.collect() }
    }
}

fn is_atom(body: BodyView<'_>, expr: Expr) -> bool {
    let kind = body.kind(expr);
    kind.is_leaf_value() || kind == Kind::VAR || kind == Kind::TUPLE
}

/// Copies the nodes in order. A node to be bound leaves its variable in its place, and its binding in
/// the list of its home; since operands come first, those lists are in dependency order, and a `let`
/// takes each fresh binding before the first of its own bindings that stands behind it.
fn rebuild(function: &Function, scopes: &Scopes) -> Function {
    let body = function.view();
    let cx = &function.cx;
    let mut out = Function {
        cx: cx.clone(),
        nodes: Vec::with_capacity(body.len() * 2),
        operands: Vec::with_capacity(function.operands.len() * 2),
        constants: function.constants.clone(),
        raw_constants: function.raw_constants.clone(),
        parts: KnownParts::default(),
    };
    let fresh_name = cx.symbol("t").0;
    let mut number = vec![NONE; body.len()];
    let mut fresh: std::collections::HashMap<u32, Vec<(u32, u32, u32)>, rustc_hash::FxBuildHasher> =
        Default::default();
    for expr in body.post_order() {
        let node = body.raw_node(expr);
        let start = out.operands.len() as u32;
        let mut data = node.data;
        let added = fresh.remove(&expr.0);
        // A block around what turned out to be bound outside of it is not needed.
        if Kind(node.kind) == Kind::LET && node.len == 1 && added.is_none() {
            let result = number[body.operands(expr).at(0).index()];
            let kind = Kind(out.nodes[result as usize].kind);
            if kind == Kind::VAR || kind.is_leaf_value() {
                number[expr.index()] = result;
                continue;
            }
        }
        match (Kind(node.kind), added) {
            (Kind::LET, Some(added)) => {
                data = merge_let(cx, body, expr, &number, &added, &mut out.operands);
            }
            _ => out
                .operands
                .extend(body.operands(expr).iter().map(|operand| number[operand.index()])),
        }
        let id = out.nodes.len() as u32;
        let len = out.operands.len() as u32 - start;
        out.nodes.push(RawNode { start, len, data, ..node });
        number[expr.index()] = id;
        let binder = scopes.binder[expr.index()];
        if binder != NONE {
            let (kind, data) = (Kind::VAR.0, fresh_name);
            let (ty, span) = (node.ty, node.span);
            let var = RawNode { kind, ty, data, span, ..RawNode::default() };
            out.nodes.push(RawNode { start: out.operands.len() as u32, ..var });
            number[expr.index()] = id + 1;
            fresh.entry(binder).or_default().push((expr.0, id + 1, id));
        }
    }
    out
}

/// Writes the operands of a `let` with its fresh bindings merged in; returns its new block list.
fn merge_let(
    cx: &super::Cx,
    body: BodyView<'_>,
    expr: Expr,
    number: &[u32],
    added: &[(u32, u32, u32)],
    operands: &mut Vec<u32>,
) -> u32 {
    let View::Let(view) = body.view(expr) else { return body.raw_node(expr).data };
    let mut added = added.iter().peekable();
    let mut counts = Vec::new();
    for block in view.blocks() {
        let before = operands.len();
        for index in block.first..block.first + block.len {
            let (var, value) = view.binding(index);
            // The variable of a binding stands just before its value's own nodes, so a fresh binding
            // that this value needs has a number up to the value's.
            while let Some(&(_, fresh, bound)) =
                added.next_if(|&&(origin, ..)| origin <= value.0.max(var.0))
            {
                operands.extend([fresh, bound]);
            }
            operands.extend([number[var.index()], number[value.index()]]);
        }
        let bindings = (operands.len() - before) / 2;
        counts.push(2 * bindings as i64 + block.is_dataflow as i64);
    }
    let rest: Vec<u32> = added.flat_map(|&(_, fresh, bound)| [fresh, bound]).collect();
    if !rest.is_empty() {
        // What only the result needs stands outside of a dataflow block: it may have effects.
        match counts.last_mut().filter(|last| **last % 2 == 0) {
            Some(last) => *last += rest.len() as i64,
            None => counts.push(rest.len() as i64),
        }
        operands.extend(rest);
    }
    operands.push(number[view.result().index()]);
    let list: Vec<Term> = counts.iter().map(|&count| cx.int(count)).collect();
    cx.list(&list).0
}
