//! The simplifications of a function.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::ir::{
    Args, Attrs, BodyView, Build, Context, Expr, Function, Kind, LetView, NodeSpec, Transaction,
    Type, View,
};

/// A simplification. Nodes are those of the function before any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// A `let` and the number of a binding in it: the binding goes, and a parameter stands for its variable.
    DropBinding(Expr, usize),
    /// A `let` and the number of a binding: the variable becomes the result, and what is behind it goes.
    ReturnBinding(Expr, usize),
    /// A `let`, the number of a binding whose value is a choice, and the operand that is taken: its bindings
    /// come before that one.
    TakeBranch(Expr, usize, usize),
    /// A node becomes one of its operands.
    BecomeOperand(Expr, usize),
    /// A statement goes.
    DropStatement(Expr),
    /// A loop or block runs once, with its variables at their first values.
    RunOnce(Expr),
    /// A scalar becomes the literal 1.
    BecomeOne(Expr),
    /// A parameter that nothing uses goes.
    DropParam(usize),
    /// The function's attributes go.
    DropAttrs,
}

/// What can be simplified in a function, the largest simplifications first.
pub(super) fn edits_of(function: &Function) -> Vec<Edit> {
    let body = function.view();
    let mut edits = Vec::new();
    let mut is_used = vec![false; body.len()];
    for expr in body.post_order() {
        for (position, operand) in body.operands(expr).iter().enumerate() {
            is_used[operand.index()] |= !body.is_binder(expr, position);
        }
    }
    let root = body.root();
    if body.attrs(root) != Attrs::NONE {
        edits.push(Edit::DropAttrs);
    }
    for expr in body.post_order().rev() {
        match body.view(expr) {
            View::Let(view) => {
                let is_outermost = body.operands(root).iter().next_back() == Some(expr);
                if is_outermost {
                    edits.extend(cuts(view.len()).map(|index| Edit::ReturnBinding(expr, index)));
                }
                edits.extend((0..view.len()).rev().map(|index| Edit::DropBinding(expr, index)));
                let choices = view
                    .bindings()
                    .enumerate()
                    .filter(|(_, (_, value))| body.kind(*value) == Kind::IF);
                edits.extend(choices.flat_map(|(index, _)| {
                    [1, 2].map(|branch| Edit::TakeBranch(expr, index, branch))
                }));
            }
            View::Function { params, .. } | View::PrimFunc { params, .. } if expr == root => {
                let unused = params.iter().enumerate().filter(|(_, param)| !is_used[param.index()]);
                edits.extend(unused.map(|(index, _)| Edit::DropParam(index)));
            }
            View::For { .. } | View::Block(_) => {
                edits.extend([Edit::DropStatement(expr), Edit::RunOnce(expr)]);
            }
            View::IfStmt { .. } => {
                edits.extend([Edit::DropStatement(expr), Edit::BecomeOperand(expr, 1)]);
            }
            View::Store { .. }
            | View::Alloc { .. }
            | View::LetStmt { .. }
            | View::Evaluate { .. } => {
                edits.push(Edit::DropStatement(expr));
            }
            View::Load { .. } | View::Intrinsic { .. } => edits.push(Edit::BecomeOne(expr)),
            View::Seq(stmts) => {
                edits.extend((0..stmts.len()).map(|index| Edit::BecomeOperand(expr, index)));
            }
            View::Region { .. } => {}
            _ => edits.extend(same_typed_operands(body, expr)),
        }
    }
    edits
}

/// Where a list of bindings may end: in the middle, or closer and closer to its end.
fn cuts(len: usize) -> impl Iterator<Item = usize> {
    let last = len.saturating_sub(1);
    std::iter::successors(Some(last), |&left| Some(left / 2).filter(|_| left > 1))
        .skip(1)
        .map(move |left| last - left)
}

/// The operands of its own type that an expression can become.
fn same_typed_operands(body: BodyView<'_>, expr: Expr) -> impl Iterator<Item = Edit> {
    let ty = body.ty(expr);
    let operands = body.operands(expr).to_vec();
    let is_value = move |operand: Expr| ty.is_some() && body.ty(operand) == ty;
    operands
        .into_iter()
        .enumerate()
        .filter(move |&(_, operand)| is_value(operand) && body.kind(operand) != Kind::FUNCTION)
        .map(move |(position, _)| Edit::BecomeOperand(expr, position))
}

/// The function after some simplifications; `None` when they do not go together.
pub(super) fn apply(function: &Arc<Function>, edits: &[Edit]) -> Option<Arc<Function>> {
    let body = function.view();
    let mut plan = Plan::of(body, edits);
    let mut tx = Transaction::edit(function);
    for &edit in edits {
        plan.replace(&mut tx, body, edit);
    }
    // Inner lists of bindings first: ids ascend from operands to users.
    let mut lets: Vec<Expr> = plan.lets.keys().copied().collect();
    lets.sort_unstable();
    for expr in lets {
        if let View::Let(view) = body.view(expr) {
            rebuild_let(&mut tx, body, expr, view, &plan.lets[&expr]);
        }
    }
    if plan.has_new_root {
        plan.rebuild_root(&mut tx, body);
    }
    tx.publish().ok()
}

/// What happens to the bindings of a `let`.
#[derive(Default)]
struct LetPlan {
    dropped: FxHashSet<usize>,
    /// The binding whose variable is the result.
    result: Option<usize>,
    /// For a binding of a choice, the branch that is taken.
    branches: HashMap<usize, usize, FxBuildHasher>,
}

#[derive(Default)]
struct Plan {
    lets: HashMap<Expr, LetPlan, FxBuildHasher>,
    has_new_root: bool,
    has_new_result: bool,
    drops_attrs: bool,
    dropped_params: FxHashSet<usize>,
    /// Parameters by type, which stand for variables that go.
    stand_ins: HashMap<Type, Expr, FxBuildHasher>,
    fresh_params: Vec<Expr>,
}

impl Plan {
    fn of(body: BodyView<'_>, edits: &[Edit]) -> Self {
        let mut plan = Self::default();
        for &edit in edits {
            match edit {
                Edit::DropBinding(expr, index) => {
                    plan.lets.entry(expr).or_default().dropped.insert(index);
                }
                Edit::ReturnBinding(expr, index) => {
                    let result = &mut plan.lets.entry(expr).or_default().result;
                    *result = Some(result.map_or(index, |other| other.min(index)));
                    plan.has_new_result = true;
                }
                Edit::TakeBranch(expr, index, branch) => {
                    plan.lets.entry(expr).or_default().branches.insert(index, branch);
                }
                Edit::DropParam(index) => {
                    plan.dropped_params.insert(index);
                }
                Edit::DropAttrs => plan.drops_attrs = true,
                _ => {}
            }
        }
        plan.has_new_root =
            plan.has_new_result || plan.drops_attrs || !plan.dropped_params.is_empty();
        for (index, param) in params(body).iter().enumerate() {
            let is_kept = !plan.dropped_params.contains(&index);
            if let Some(ty) = body.ty(param).filter(|_| is_kept) {
                plan.stand_ins.entry(ty).or_insert(param);
            }
        }
        plan
    }

    fn replace(&mut self, tx: &mut Transaction, body: BodyView<'_>, edit: Edit) {
        match edit {
            Edit::DropBinding(expr, index) => {
                let View::Let(view) = body.view(expr) else { return };
                let var = view.binding(index).0;
                let Some(ty) = body.ty(var) else { return };
                let stand_in = *self.stand_ins.entry(ty).or_insert_with(|| {
                    let fresh = tx.var("p", Some(ty));
                    self.fresh_params.push(fresh);
                    fresh
                });
                self.has_new_root |= !self.fresh_params.is_empty();
                tx.replace(var, stand_in);
            }
            Edit::BecomeOperand(expr, position) => {
                tx.replace(expr, body.operands(expr).at(position));
            }
            Edit::DropStatement(expr) => {
                let nothing = tx.push(NodeSpec::new(Kind::SEQ), &[]);
                tx.replace(expr, nothing);
            }
            Edit::RunOnce(expr) => run_once(tx, body, expr),
            Edit::BecomeOne(expr) => become_one(tx, body, expr),
            Edit::ReturnBinding(..)
            | Edit::TakeBranch(..)
            | Edit::DropParam(_)
            | Edit::DropAttrs => {}
        }
    }

    fn rebuild_root(&self, tx: &mut Transaction, body: BodyView<'_>) {
        let root = body.root();
        let spec = body.spec(root);
        let is_prim = spec.kind == Kind::PRIM_FUNC;
        let kept = params(body)
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.dropped_params.contains(index))
            .map(|(_, param)| param);
        let value = body.operands(root).iter().next_back().map(|value| tx.body().resolve(value));
        let operands: Vec<Expr> =
            self.fresh_params.iter().copied().chain(kept).chain(value).collect();
        let outputs = spec.data as usize;
        let first_output = params(body).len().saturating_sub(outputs);
        let lost = self.dropped_params.iter().filter(|&&index| index >= first_output).count();
        let data = match is_prim {
            true => spec.data - lost as u32,
            false if self.has_new_result => 0,
            false => spec.data,
        };
        let attrs = if self.drops_attrs { Attrs::NONE } else { spec.attrs };
        let root = tx.push(NodeSpec { ty: None, data, attrs, ..spec }, &operands);
        tx.set_root(root);
    }
}

fn params(body: BodyView<'_>) -> Args<'_> {
    let operands = body.operands(body.root());
    operands.take(operands.len().saturating_sub(1))
}

fn rebuild_let(
    tx: &mut Transaction,
    body: BodyView<'_>,
    expr: Expr,
    view: LetView<'_>,
    plan: &LetPlan,
) {
    let end = plan.result.map_or(view.len(), |index| index + 1);
    let mut operands = Vec::with_capacity(2 * view.len() + 1);
    let mut counts = Vec::new();
    for block in view.blocks() {
        let before = operands.len();
        for index in block.first..(block.first + block.len).min(end) {
            if plan.dropped.contains(&index) {
                continue;
            }
            let (var, value) = view.binding(index);
            let mut value = tx.body().resolve(value);
            if let Some(&branch) = plan.branches.get(&index) {
                value = tx.body().operands(value).get(branch).unwrap_or(value);
            }
            // What was in the branch comes first; it was rebuilt already.
            if let View::Let(inner) = tx.body().view(value) {
                for (var, value) in inner.bindings() {
                    operands.extend([var, value]);
                }
                value = inner.result();
            }
            operands.extend([var, value]);
        }
        let count = (operands.len() - before) as i64;
        if count > 0 {
            counts.push(count + block.is_dataflow as i64);
        }
    }
    let result = plan.result.map_or(view.result(), |index| view.binding(index).0);
    let result = tx.body().resolve(result);
    if operands.is_empty() {
        tx.replace(expr, result);
        return;
    }
    operands.push(result);
    let data = tx.cx().int_list(&counts).0;
    let ty = if plan.result.is_some() { None } else { body.ty(expr) };
    let rebuilt = tx.push(NodeSpec { ty, data, ..NodeSpec::new(Kind::LET) }, &operands);
    tx.replace(expr, rebuilt);
}

fn run_once(tx: &mut Transaction, body: BodyView<'_>, expr: Expr) {
    match body.view(expr) {
        View::For { var, min, body: inner, .. } => {
            tx.replace(var, min);
            tx.replace(expr, inner);
        }
        View::Block(block) => {
            for pair in block.iters.to_vec().chunks_exact(2) {
                tx.replace(pair[0], pair[1]);
            }
            tx.replace(expr, block.body);
        }
        _ => {}
    }
}

fn become_one(tx: &mut Transaction, body: BodyView<'_>, expr: Expr) {
    let Some((dtype, lanes)) = body.scalar_ty(expr) else { return };
    let cx = tx.cx();
    let scalar = Some(cx.scalar_type(dtype));
    let spec = match dtype.is_float() {
        true => NodeSpec { data: cx.float(1.0).0, ..NodeSpec::new(Kind::FLOAT) },
        false => NodeSpec { data: cx.int(1).0, ..NodeSpec::new(Kind::INT) },
    };
    let one = tx.push(NodeSpec { ty: scalar, ..spec }, &[]);
    let one = match lanes {
        1 => one,
        _ => tx.push(NodeSpec { ty: body.ty(expr), ..NodeSpec::new(Kind::BROADCAST) }, &[one]),
    };
    tx.replace(expr, one);
}
