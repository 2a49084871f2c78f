//! Removes statements that change nothing that is read.
//!
//! ```ir
//! alloc t: f32[8]
//! for i in 0..8 {                     for i in 0..8 {
//!   let a = x[i]                        y[i] = x[i]
//!   t[i] = a                   =>     }
//!   y[i] = x[i]
//! }
//! ```
//!
//! A call and a store to a parameter are needed. So is what a needed statement reads: the `let` of a name,
//! the `alloc` of a buffer and every store to it; and the loops and conditions around a needed
//! statement. The rest goes. One pass over what is needed finds it all, stores that only feed a
//! buffer that nobody reads included.

use tenon_plugin_api::prelude::*;

use crate::loops::bound_variable;

/// Removes statements that change nothing that is read.
#[pass(
    name = "tir.RemoveNoOp",
    aliases = ["tir.transform.RemoveNoOp"],
    opt_level = 1,
    phase = "target",
    until = "builtin",
    requires = ["tir.LowerBlocks"],
    idempotent = true
)]
fn remove_no_op(func: PrimFunc, _: &Module, _: &PassContext) -> Result<PrimFunc> {
    let body = func.view();
    let needed = Needed::of(body);
    let mut rw = func.edit();
    let is_nothing = |rw: &Rewriter, stmt: Expr| match rw.view(stmt) {
        View::Seq(stmts) => stmts.is_empty(),
        _ => false,
    };
    for stmt in rw.post_order().filter(|&stmt| body.kind(stmt).is_stmt()) {
        let replacement = match rw.view(stmt) {
            View::Seq(stmts) => {
                let all = stmts.to_vec();
                let kept: Vec<Expr> =
                    all.iter().copied().filter(|&inner| !is_nothing(&rw, inner)).collect();
                (kept.len() < all.len()).then(|| rw.seq(&kept))
            }
            _ if !needed.nodes[stmt] => Some(rw.seq(&[])),
            View::IfStmt { cond, then, otherwise: Some(otherwise) }
                if is_nothing(&rw, otherwise) =>
            {
                Some(rw.if_stmt(cond, then, None))
            }
            _ => None,
        };
        if let Some(replacement) = replacement {
            rw.replace(stmt, replacement);
        }
    }
    Ok(rw.finish()?.into())
}

/// What is needed.
struct Needed {
    nodes: SideTable<bool>,
}

impl Needed {
    fn of(body: BodyView<'_>) -> Self {
        let links = Links::of(body);
        let mut needed = Self { nodes: SideTable::new(body, false) };
        let mut work = links.roots.clone();
        while let Some(node) = work.pop() {
            if std::mem::replace(&mut needed.nodes[node], true) {
                continue;
            }
            work.extend(&links.needs[node]);
            // What is around a statement or inside of an expression is needed with it; the statements
            // inside of a statement are not.
            let operands = body.operands(node).iter();
            work.extend(operands.filter(|&operand| !body.kind(operand).is_stmt()));
        }
        needed
    }
}

/// What needs what beyond its operands.
struct Links {
    /// Of a statement those around it, of a name its `let`, of a buffer its `alloc` and its stores.
    needs: SideTable<Vec<Expr>>,
    roots: Vec<Expr>,
}

impl Links {
    fn of(body: BodyView<'_>) -> Self {
        let mut links = Self { needs: SideTable::new(body, Vec::new()), roots: vec![body.root()] };
        let mut is_made = SideTable::new(body, false);
        for stmt in body.post_order().filter(|&stmt| body.kind(stmt) == Kind::ALLOC) {
            is_made[bound_variable(body, stmt)] = true;
        }
        for stmt in body.post_order() {
            for inner in body.inner_stmts(stmt) {
                links.needs[inner].push(stmt);
            }
            match body.view(stmt) {
                View::LetStmt { .. } | View::Alloc { .. } => {
                    links.needs[bound_variable(body, stmt)].push(stmt);
                }
                View::Store { buffer, .. } if is_made[buffer] => {
                    links.needs[buffer].push(stmt);
                }
                View::Store { .. } | View::Evaluate { .. } => links.roots.push(stmt),
                View::Unknown { .. } => links.roots.push(stmt),
                _ => {}
            }
        }
        links
    }
}
