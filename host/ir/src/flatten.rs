//! Bindings whose value is a `let`: its bindings come to stand before them.
//!
//! ```ir
//! %r = {                      %a = exp(%x)
//!   %a = exp(%x)        =>    %r = %a
//!   ret %a
//! }
//! ```
//!
//! Such a value arises where a pass puts a branch, or the body of a function, in the place of an expression. It is
//! evaluated where its binding stands, so nothing moves, and its variables are seen further than before, by nobody.

use std::sync::Arc;

use tenon_plugin_api::ir::{BodyView, Context, Expr, Kind, Term, View};

use super::Function;
use super::compact::compact;
use super::function::KnownParts;

/// The function without a `let` as the value of a binding, or as the result of another one; the function itself
/// where there is none. Linear, however deep they stand in each other.
pub fn flatten(function: &Arc<Function>) -> Arc<Function> {
    let body = function.view();
    let mut is_inner = vec![false; body.len()];
    for expr in body.post_order().filter(|&expr| body.kind(expr) == Kind::LET) {
        let View::Let(bindings) = body.view(expr) else { continue };
        if bindings.blocks().iter().map(|block| block.len).sum::<usize>() != bindings.len() {
            // A broken one, which the caller will find.
            return function.clone();
        }
        let values = bindings.bindings().map(|(_, value)| value).chain([bindings.result()]);
        for value in values.filter(|&value| body.kind(value) == Kind::LET) {
            is_inner[value.index()] = true;
        }
    }
    if !is_inner.contains(&true) {
        return function.clone();
    }
    let mut flat = Function {
        cx: function.cx.clone(),
        nodes: function.nodes.clone(),
        operands: function.operands.clone(),
        constants: function.constants.clone(),
        raw_constants: function.raw_constants.clone(),
        parts: KnownParts::default(),
    };
    let mut is_placed = vec![false; body.len()];
    for expr in body.post_order() {
        let is_outer = body.kind(expr) == Kind::LET && !is_inner[expr.index()];
        if !is_outer {
            continue;
        }
        let (bindings, result) = spliced(body, expr, &mut is_placed);
        let mut counts: Vec<(bool, i64)> = Vec::new();
        let start = flat.operands.len() as u32;
        for (is_dataflow, var, value) in bindings {
            match counts.last_mut().filter(|(kind, _)| *kind == is_dataflow) {
                Some((_, count)) => *count += 1,
                None => counts.push((is_dataflow, 1)),
            }
            flat.operands.extend([var.0, value.0]);
        }
        flat.operands.push(result.0);
        let cx = &function.cx;
        let counts: Vec<Term> =
            counts.iter().map(|&(kind, count)| cx.int(2 * count + kind as i64)).collect();
        let node = &mut flat.nodes[expr.index()];
        (node.start, node.len) = (start, flat.operands.len() as u32 - start);
        node.data = cx.list(&counts).0;
    }
    let (view, constants) = (flat.view(), &flat.constants);
    match compact(&function.cx, view, view.root(), constants) {
        Ok(ordered) => Arc::new(ordered),
        Err(_) => unreachable!("bindings were only moved in front of their uses"),
    }
}

/// The bindings of a `let` and of those in it, each as whether its block is a dataflow block, variable, value; and
/// the result.
fn spliced(
    body: BodyView<'_>,
    outer: Expr,
    is_placed: &mut [bool],
) -> (Vec<(bool, Expr, Expr)>, Expr) {
    let mut done = Vec::new();
    let mut result = outer;
    while let View::Let(last) = body.view(result) {
        let mut waiting = Vec::new();
        if !std::mem::replace(&mut is_placed[result.index()], true) {
            push(body, result, &mut waiting);
        }
        while let Some((is_dataflow, var, value)) = waiting.pop() {
            let View::Let(inner) = body.view(value) else {
                done.push((is_dataflow, var, value));
                continue;
            };
            waiting.push((is_dataflow, var, inner.result()));
            if !std::mem::replace(&mut is_placed[value.index()], true) {
                push(body, value, &mut waiting);
            }
        }
        result = last.result();
    }
    (done, result)
}

/// Adds the bindings of a `let`, the first one on top.
fn push(body: BodyView<'_>, expr: Expr, waiting: &mut Vec<(bool, Expr, Expr)>) {
    let View::Let(bindings) = body.view(expr) else { return };
    for block in bindings.blocks().into_iter().rev() {
        for at in (block.first..block.first + block.len).rev() {
            let (var, value) = bindings.binding(at);
            waiting.push((block.is_dataflow, var, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use tenon_plugin_api::ir::{Attrs, Build, DType};

    use super::super::{Cx, Transaction};
    use super::*;

    /// `depth` blocks, each the value of a binding in the next one.
    fn nested(cx: &Cx, depth: usize) -> Arc<Function> {
        let ty = cx.static_tensor_type(DType::F32, &[2]);
        let mut tx = Transaction::new(cx.clone());
        let x = tx.var("x", Some(ty));
        let mut value = x;
        for level in 0..depth {
            let (a, b) = (tx.var("a", Some(ty)), tx.var("b", Some(ty)));
            let exp = tx.call_op("exp", &[a], Attrs::NONE);
            value = tx.let_blocks(&[(level % 2 == 0, vec![(a, value), (b, exp)])], b);
        }
        let root = tx.function(&[x], value, Some(ty), Attrs::NONE);
        tx.set_root(root);
        tx.publish().expect("a function")
    }

    #[test]
    fn blocks_in_bindings_come_before_them() {
        let cx = Cx::new();
        let flat = flatten(&nested(&cx, 3));
        let body = flat.view();
        let View::Function { body: block, .. } = body.view(body.root()) else {
            panic!("a function")
        };
        let View::Let(bindings) = body.view(block) else { panic!("a let") };
        let blocks: Vec<(bool, usize)> =
            bindings.blocks().iter().map(|block| (block.is_dataflow, block.len)).collect();
        assert_eq!(blocks, [(true, 2), (false, 2), (true, 2)]);
        assert_eq!(bindings.result(), bindings.binding(5).0);
        assert!(Arc::ptr_eq(&flatten(&flat), &flat));
    }

    #[test]
    fn deep_ones_take_no_more_stack_or_time() {
        let flat = flatten(&nested(&Cx::new(), if cfg!(miri) { 50 } else { 100_000 }));
        let lets = flat.view().post_order().filter(|&expr| flat.view().kind(expr) == Kind::LET);
        assert_eq!(lets.count(), 1);
    }
}
