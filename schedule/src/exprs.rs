//! Scalars with other parts in the place of theirs.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use smallvec::SmallVec;

use tenon_plugin_api::ir::{BinaryOp, Build, BuildPrim, Expr, Kind, View};
use tenon_plugin_api::pass::{Calls, Rewriter};

/// Rebuilds expressions, each once. What comes out as it was is shared.
#[derive(Default)]
pub(crate) struct Replacing {
    done: HashMap<Expr, Expr>,
}

impl Replacing {
    /// One that puts the second of each pair in the place of the first.
    pub(crate) fn of(pairs: impl IntoIterator<Item = (Expr, Expr)>) -> Self {
        Self { done: pairs.into_iter().collect() }
    }

    /// `root` with the replacements in it. `remake` may say what becomes of a node whose operands are given as they are then.
    pub(crate) fn apply(
        &mut self,
        rw: &mut Rewriter,
        root: Expr,
        mut remake: impl FnMut(&mut Rewriter, Expr, &[Expr]) -> Option<Expr>,
    ) -> Expr {
        let mut stack = vec![(root, false)];
        while let Some((expr, is_ready)) = stack.pop() {
            if self.done.contains_key(&expr) {
                continue;
            }
            let operands = rw.body().operands(expr).to_vec();
            if !is_ready {
                stack.push((expr, true));
                stack.extend(operands.into_iter().map(|operand| (operand, false)));
                continue;
            }
            let made: Vec<Expr> = operands.iter().map(|operand| self.done[operand]).collect();
            let new = match remake(rw, expr, &made) {
                Some(new) => new,
                None if made == operands => expr,
                None => rebuild(rw, expr, &made),
            };
            self.done.insert(expr, new);
        }
        self.done[&root]
    }

    /// `root` with the replacements in it.
    pub(crate) fn of_expr(&mut self, rw: &mut Rewriter, root: Expr) -> Expr {
        self.apply(rw, root, |_, _, _| None)
    }
}

/// A node with other operands; integer arithmetic is folded.
fn rebuild(rw: &mut Rewriter, expr: Expr, operands: &[Expr]) -> Expr {
    match (rw.view(expr), operands) {
        (View::Binary { op, .. }, &[a, b]) => rw.binary(op, a, b),
        _ => rw.rebuild(expr, operands),
    }
}

/// Nodes that were met. Most expressions have few, which are found faster one by one than by a hash.
#[derive(Default)]
struct Seen {
    few: SmallVec<[Expr; 16]>,
    many: HashSet<Expr>,
}

impl Seen {
    /// Whether a node is met the first time.
    fn insert(&mut self, node: Expr) -> bool {
        if self.few.len() < self.few.inline_size() {
            let is_new = !self.few.contains(&node);
            if is_new {
                self.few.push(node);
            }
            return is_new;
        }
        !self.few.contains(&node) && self.many.insert(node)
    }
}

/// All loads of an expression, each once.
pub(crate) fn loads(rw: &Rewriter, root: Expr) -> Vec<Expr> {
    let body = rw.body();
    let (mut loads, mut stack) = (Vec::new(), vec![root]);
    let mut seen = Seen::default();
    while let Some(expr) = stack.pop() {
        let operands = body.operands(expr);
        // A variable or a number is met as often as it stands there.
        if operands.is_empty() || !seen.insert(expr) {
            continue;
        }
        if body.kind(expr) == Kind::LOAD {
            loads.push(expr);
        }
        stack.extend(operands.iter().rev());
    }
    loads
}

/// Whether an expression reads any of these nodes.
pub(crate) fn mentions(rw: &Rewriter, root: Expr, nodes: &[Expr]) -> bool {
    let body = rw.body();
    let mut stack = vec![root];
    let mut seen = Seen::default();
    while let Some(expr) = stack.pop() {
        if nodes.contains(&expr) {
            return true;
        }
        let operands = body.operands(expr);
        if !operands.is_empty() && seen.insert(expr) {
            stack.extend(operands.iter());
        }
    }
    false
}

/// Whether an expression divides integers by anything but a number that is not zero.
pub(crate) fn divides(rw: &Rewriter, root: Expr) -> bool {
    let body = rw.body();
    let mut stack = vec![root];
    let mut seen = HashSet::default();
    while let Some(expr) = stack.pop() {
        if let View::Binary { op: BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::FloorMod, a, b } =
            body.view(expr)
        {
            let is_float = body.scalar_ty(a).is_some_and(|(dtype, _)| dtype.is_float());
            let is_safe = matches!(body.view(b), View::Int(value) if value != 0);
            if !(is_float || is_safe) {
                return true;
            }
        }
        if seen.insert(expr) {
            stack.extend(body.operands(expr).iter());
        }
    }
    false
}
