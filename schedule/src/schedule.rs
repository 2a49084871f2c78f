//! A program while it is scheduled.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use std::cell::RefCell;
use std::sync::Arc;

use tenon_plugin_api::ir::{
    BinaryOp, BodyView, Build, BuildPrim, Context, DType, Expr, Kind, Symbol, Term, Type, View,
    Walk,
};
use tenon_plugin_api::pass::{Calls, PassError, PrimFunc, Rewriter};
use tenon_plugin_api::rule::{INTRINSIC, TensorIntrinsic};

use crate::exprs::Replacing;
use crate::index::{Range, Space, Sum};
use crate::primitives::is_finder;
use crate::query::Stride;
use crate::random::Random;
use crate::refusal::{Refusal, Result};
use crate::trace::{Args, Handle, Instruction, Primitive, Trace, Value};
use crate::tree::{Id, Node, Tree, is_reduce, is_spatial};

/// A loop of a [`Schedule`]. It stays good until the loop is taken away.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Loop(pub(crate) Id);

/// A block of a [`Schedule`]. It stays good until the block is taken away.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Block(pub(crate) Id);

/// A tensor program, and the primitives that were applied to it.
///
/// A primitive that is refused leaves the program as it was. [`Schedule::finish`] gives the program, [`Schedule::trace`] what
/// was done to it.
pub struct Schedule {
    pub(crate) rw: Rewriter,
    pub(crate) tree: Tree,
    pub(crate) params: Vec<Expr>,
    pub(crate) trace: Trace,
    pub(crate) keeps_order: bool,
    /// Where decisions come from that a trace leaves open, and how many were made.
    pub(crate) random: Random,
    pub(crate) draws: u32,
    /// What the primitive that is applied has drawn, for the trace.
    pub(crate) drawn: Option<Value>,
    /// Whether instructions compute some of its loops, and those that were looked up, by their names.
    pub(crate) has_tiles: bool,
    pub(crate) intrinsics: HashMap<String, Arc<TensorIntrinsic>>,
    /// What was asked of the program as it is, which rules do several times.
    pub(crate) strides: RefCell<HashMap<Id, Vec<Stride>>>,
}

/// A state of a [`Schedule`] to which it can go back.
#[derive(Clone)]
pub struct Snapshot {
    tree: Tree,
    trace: Trace,
}

impl Schedule {
    /// Starts to schedule a program.
    pub fn of(program: &PrimFunc) -> std::result::Result<Self, PassError> {
        let mut rw = program.edit();
        let root = rw.body().root();
        let View::PrimFunc { params, body, .. } = rw.view(root) else {
            return Err(PassError::new("only tensor programs are scheduled"));
        };
        let params = params.to_vec();
        let mut space = ranges_of(&rw, body);
        let mut ranges: HashMap<Expr, [Expr; 2]> = HashMap::default();
        let mut has_tiles = false;
        for expr in rw.post_order() {
            if let View::For { attrs, .. } = rw.view(expr) {
                has_tiles |= rw.body().terms().attrs(attrs).str(INTRINSIC).is_some();
            }
            let View::Block(block) = rw.view(expr) else { continue };
            let bindings: Vec<Expr> = match block.domains.is_empty() {
                true => block.iterators().map(|iter| iter.binding).collect(),
                false => Vec::new(),
            };
            for binding in bindings {
                let sum = space.read(rw.body(), binding);
                if let Some([low, high]) = space.extremes(&sum, &|_| false) {
                    let extent = high.sub(&low).add_int(1);
                    ranges.insert(binding, [&low, &extent].map(|sum| space.build(&mut rw, sum)));
                }
            }
        }
        let tree = Tree::read(rw.body(), body, |binding| ranges.get(&binding).copied())
            .map_err(|(stmt, reason)| PassError::new(reason).at(stmt))?;
        let (trace, intrinsics) = (Trace::default(), HashMap::default());
        Ok(Self {
            rw,
            tree,
            params,
            trace,
            keeps_order: false,
            random: Random::default(),
            draws: 0,
            drawn: None,
            has_tiles,
            intrinsics,
            strides: RefCell::default(),
        })
    }

    /// Refuses from now on what changes the order in which a sum or a product of floats is made, and thereby how it is rounded.
    pub fn keep_order(&mut self) {
        self.keeps_order = true;
    }

    /// Says by which numbers decisions are drawn that a trace leaves open; equal seeds give equal ones.
    pub fn seed(&mut self, seed: u64) {
        self.random = Random(seed);
    }

    /// What was done so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Whether anything was changed.
    pub fn has_changed(&self) -> bool {
        self.trace.has_changed()
    }

    /// The number of steps of a loop, when it is a constant.
    pub fn extent(&self, each: Loop) -> Option<i64> {
        let node = self.tree.as_for(each.0)?;
        let mut space = Space::default();
        space.read(self.body(), node.extent).value()
    }

    /// The state as it is.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { tree: self.tree.clone(), trace: self.trace.clone() }
    }

    /// Goes back to a state of this schedule.
    pub fn restore(&mut self, snapshot: Snapshot) {
        (self.tree, self.trace) = (snapshot.tree, snapshot.trace);
        self.strides.take();
    }

    /// Applies a primitive and writes it down.
    pub(crate) fn apply(
        &mut self,
        primitive: &'static Primitive,
        args: Args,
        names: Option<Vec<String>>,
    ) -> Result<Vec<Handle>> {
        let before = (!is_finder(primitive)).then(|| (self.tree.clone(), self.strides.take()));
        let mut result = args.check_alive(self).and_then(|()| (primitive.apply)(self, &args));
        if before.is_some() {
            result = result.and_then(|results| self.check_tiles().map(|()| results));
        }
        match result {
            Ok(results) => {
                let mut args = args;
                if let (Some(drawn), Some(decision)) = (self.drawn.take(), args.0.last_mut()) {
                    *decision = drawn;
                }
                let instruction = Instruction { primitive, args, results: results.clone() };
                let names = names.unwrap_or_else(|| self.names_of(&results));
                self.trace.push(instruction, names);
                Ok(results)
            }
            Err(refusal) => {
                if let Some((tree, strides)) = before {
                    (self.tree, self.strides) = (tree, strides.into());
                }
                Err(Refusal { primitive: primitive.name, ..refusal })
            }
        }
    }

    fn names_of(&self, results: &[Handle]) -> Vec<String> {
        results
            .iter()
            .map(|result| match result {
                Handle::Loop(each) => self.loop_name(each.0),
                Handle::Block(block) => self.block_name(block.0),
                Handle::Number(_) => String::from("number"),
                Handle::Place(_) => String::from("place"),
            })
            .collect()
    }

    /// The nodes as they stand.
    pub(crate) fn body(&self) -> BodyView<'_> {
        self.rw.body()
    }

    pub(crate) fn view(&self, expr: Expr) -> View<'_> {
        self.rw.body().view(expr)
    }

    /// The name of a loop's variable.
    pub(crate) fn loop_name(&self, id: Id) -> String {
        match self.tree.as_for(id) {
            Some(each) => self.var_name(each.var),
            None => String::from("loop"),
        }
    }

    pub(crate) fn var_name(&self, var: Expr) -> String {
        match self.view(var) {
            View::Var { name } | View::Buffer { name, .. } => self.rw.name_of(name),
            _ => String::from("v"),
        }
    }

    pub(crate) fn block_name(&self, id: Id) -> String {
        self.tree.as_block(id).map_or(String::from("block"), |block| self.rw.name_of(block.name))
    }

    pub(crate) fn symbol(&self, text: &str) -> Symbol {
        self.rw.with_cx(|cx| cx.symbol(text))
    }

    pub(crate) fn kind_term(&self, is_reduce: bool) -> Term {
        self.symbol(if is_reduce { "reduce" } else { "spatial" }).into()
    }

    pub(crate) fn is_spatial(&self, kind: Term) -> bool {
        is_spatial(self.body(), kind)
    }

    pub(crate) fn is_reduce(&self, kind: Term) -> bool {
        is_reduce(self.body(), kind)
    }

    /// A variable of type i64.
    pub(crate) fn index_var(&mut self, name: &str) -> Expr {
        self.rw.scalar_var(name, DType::I64)
    }

    /// The ranges of all loops and iterators of the program.
    pub(crate) fn space(&self) -> Space {
        self.ranges_of(|_| true)
    }

    /// The ranges of all loops, and of the iterators of the blocks around a statement.
    pub(crate) fn space_around(&self, id: Id) -> Space {
        let above = |id: &Id| self.tree.parent(*id);
        let around: HashSet<Id> = std::iter::successors(above(&id), above).collect();
        self.ranges_of(|block| around.contains(&block))
    }

    fn ranges_of(&self, has_iterators: impl Fn(Id) -> bool) -> Space {
        let mut space = Space::default();
        let body = self.body();
        let mut set = |var, [min, extent]: [Expr; 2]| {
            let range = Range { min: space.read(body, min), extent: space.read(body, extent) };
            space.set_range(var, range);
        };
        for id in self.tree.all() {
            match self.tree.get(id) {
                Node::For(each) => set(each.var, [each.min, each.extent]),
                Node::Block(block) if has_iterators(id) => {
                    block.iters.iter().for_each(|iter| set(iter.var, [iter.min, iter.extent]));
                }
                _ => {}
            }
        }
        space
    }

    /// Conditions that are joined by `&&`.
    pub(crate) fn conjuncts(&self, condition: Expr) -> Vec<Expr> {
        let (mut parts, mut stack) = (Vec::new(), vec![condition]);
        while let Some(part) = stack.pop() {
            match self.view(part) {
                View::Binary { op: BinaryOp::And, a, b } => stack.extend([b, a]),
                _ => parts.push(part),
            }
        }
        parts
    }

    /// The number that is at least zero where a comparison holds.
    pub(crate) fn slack(&self, space: &mut Space, condition: Expr) -> Option<Sum> {
        let View::Binary { op, a, b } = self.view(condition) else { return None };
        if self.body().scalar_ty(a) != Some((DType::I64, 1)) {
            return None;
        }
        let (a, b) = (space.read(self.body(), a), space.read(self.body(), b));
        match op {
            BinaryOp::Lt => Some(b.sub(&a).add_int(-1)),
            BinaryOp::Le => Some(b.sub(&a)),
            BinaryOp::Gt => Some(a.sub(&b).add_int(-1)),
            BinaryOp::Ge => Some(a.sub(&b)),
            _ => None,
        }
    }

    /// Conditions joined by `&&`, without those that always hold; none when all do.
    pub(crate) fn join(&mut self, space: &mut Space, conditions: &[Expr]) -> Option<Expr> {
        let mut joined: Option<Expr> = None;
        for &condition in conditions {
            let always = self.slack(space, condition).is_some_and(|slack| space.is_natural(&slack));
            if always || matches!(self.view(condition), View::Int(1)) {
                continue;
            }
            joined = Some(match joined {
                None => condition,
                Some(others) => self.rw.binary(BinaryOp::And, others, condition),
            });
        }
        joined
    }

    /// `a < b` of sums.
    pub(crate) fn less(&mut self, space: &Space, a: &Sum, b: &Sum) -> Expr {
        let (a, b) = (space.build(&mut self.rw, a), space.build(&mut self.rw, b));
        self.rw.binary(BinaryOp::Lt, a, b)
    }

    /// `a >= b` of sums.
    pub(crate) fn at_least(&mut self, space: &Space, a: &Sum, b: &Sum) -> Expr {
        let (a, b) = (space.build(&mut self.rw, a), space.build(&mut self.rw, b));
        self.rw.binary(BinaryOp::Ge, a, b)
    }

    /// Adds conditions to the predicate of a block.
    pub(crate) fn add_predicate(&mut self, space: &mut Space, block: Id, conditions: &[Expr]) {
        let old = self.tree.as_block(block).and_then(|block| block.predicate);
        let all: Vec<Expr> = old
            .into_iter()
            .flat_map(|old| self.conjuncts(old))
            .chain(conditions.iter().copied())
            .collect();
        let predicate = self.join(space, &all);
        self.tree.block_mut(block).predicate = predicate;
    }

    /// Puts the second of each pair in the place of the first, in a statement and all inside it.
    pub(crate) fn substitute(&mut self, root: Id, pairs: impl IntoIterator<Item = (Expr, Expr)>) {
        let mut replacing = Replacing::of(pairs);
        let mut space = self.space();
        self.rewrite(root, &mut replacing, &mut space, |_, _, _| None);
    }

    /// Rewrites all scalars of a statement and of those inside it. Index arithmetic that changes is brought into normal form.
    pub(crate) fn rewrite(
        &mut self,
        root: Id,
        replacing: &mut Replacing,
        space: &mut Space,
        mut remake: impl FnMut(&mut Rewriter, Expr, &[Expr]) -> Option<Expr>,
    ) {
        for id in self.tree.walk(root) {
            let mut node = self.tree.get(id).clone();
            let rw = &mut self.rw;
            let mut of = |expr: &mut Expr| {
                let new = replacing.apply(rw, *expr, |rw, old, operands| {
                    remake(rw, old, operands).or_else(|| normal_node(rw, space, old, operands))
                });
                if new != *expr {
                    *expr = normal(rw, space, new);
                }
            };
            match &mut node {
                Node::For(each) => {
                    of(&mut each.min);
                    of(&mut each.extent);
                }
                Node::Block(block) => {
                    for iter in &mut block.iters {
                        of(&mut iter.binding);
                        of(&mut iter.min);
                        of(&mut iter.extent);
                    }
                    if let Some(predicate) = &mut block.predicate {
                        of(predicate);
                    }
                }
                Node::If { cond, .. } => of(cond),
                Node::Let { value, .. } => of(value),
                Node::Store { buffer, value, indices } => {
                    of(buffer);
                    of(value);
                    indices.iter_mut().for_each(of);
                }
                Node::Evaluate(value) => of(value),
                Node::Alloc(_) | Node::Seq(_) | Node::Gone => {}
            }
            *self.tree.get_mut(id) = node;
        }
    }

    /// A copy of a statement, with variables and buffers of its own.
    pub(crate) fn copy(&mut self, root: Id) -> Id {
        let mut made: HashMap<Id, Id> = HashMap::default();
        let mut fresh = Vec::new();
        for id in self.tree.walk(root).into_iter().rev() {
            let mut node = self.tree.get(id).clone();
            let mut renew = |var: &mut Expr| {
                let new = self.rw.rebuild(*var, &[]);
                fresh.push((*var, new));
                *var = new;
            };
            match &mut node {
                Node::For(each) => {
                    renew(&mut each.var);
                    each.body = made[&each.body];
                }
                Node::Block(block) => {
                    block.iters.iter_mut().for_each(|iter| renew(&mut iter.var));
                    block.init = block.init.map(|init| made[&init]);
                    block.body = made[&block.body];
                }
                Node::Seq(stmts) => stmts.iter_mut().for_each(|stmt| *stmt = made[stmt]),
                Node::If { then, otherwise, .. } => {
                    *then = made[then];
                    *otherwise = otherwise.map(|otherwise| made[&otherwise]);
                }
                Node::Alloc(buffer) => renew(buffer),
                Node::Let { var, .. } => renew(var),
                _ => {}
            }
            let copy = self.tree.make(node);
            made.insert(id, copy);
        }
        self.substitute(made[&root], fresh);
        made[&root]
    }

    /// A buffer of the program's own: `like` with another name and scope.
    pub(crate) fn new_buffer(&mut self, name: &str, ty: Type, scope: &str) -> Expr {
        self.rw.buffer(name, ty, scope)
    }

    /// Makes a buffer at the start of a scope.
    pub(crate) fn allocate(&mut self, scope: Option<Id>, buffer: Expr) {
        let alloc = self.tree.add(Node::Alloc(buffer));
        let body = match scope.and_then(|scope| self.tree.as_block(scope)) {
            Some(block) => block.body,
            None => self.tree.root,
        };
        let first = match self.tree.get(body) {
            Node::Seq(stmts) => stmts.first().copied().unwrap_or(body),
            _ => body,
        };
        self.tree.insert(first, false, vec![alloc]);
    }
}

/// Index arithmetic in normal form; anything else as it is.
pub(crate) fn normal(rw: &mut Rewriter, space: &mut Space, expr: Expr) -> Expr {
    if rw.body().scalar_ty(expr) != Some((DType::I64, 1)) || rw.body().kind(expr) == Kind::LOAD {
        return expr;
    }
    let sum = space.read(rw.body(), expr);
    space.build(rw, &sum)
}

/// A load or a comparison whose operands changed, with these in normal form.
fn normal_node(rw: &mut Rewriter, space: &mut Space, old: Expr, operands: &[Expr]) -> Option<Expr> {
    let is_compared = matches!(rw.view(old), View::Binary { op, .. } if op.is_comparison());
    let is_load = rw.body().kind(old) == Kind::LOAD;
    if !(is_compared || is_load) || rw.body().operands(old).iter().eq(operands.iter().copied()) {
        return None;
    }
    let operands: Vec<Expr> = operands.iter().map(|&operand| normal(rw, space, operand)).collect();
    match rw.view(old) {
        View::Binary { op, .. } => Some(rw.binary(op, operands[0], operands[1])),
        _ => Some(rw.rebuild(old, &operands)),
    }
}

/// The ranges of the loops and iterators of a program that was not read yet. An iterator without a domain goes through what its
/// binding does.
fn ranges_of(rw: &Rewriter, root: Expr) -> Space {
    let mut space = Space::default();
    let body = rw.body();
    for step in body.walk(root) {
        let Walk::Enter(stmt) = step else { continue };
        match body.view(stmt) {
            View::For { var, min, extent, .. } => {
                let range = Range { min: space.read(body, min), extent: space.read(body, extent) };
                space.set_range(var, range);
            }
            View::Block(block) => {
                for iter in block.iterators() {
                    let range = match iter.domain {
                        Some([min, extent]) => {
                            let [min, extent] = [min, extent].map(|expr| space.read(body, expr));
                            Some(Range { min, extent })
                        }
                        None => {
                            let binding = space.read(body, iter.binding);
                            let ends = space.extremes(&binding, &|_| false);
                            ends.map(|[low, high]| Range {
                                extent: high.sub(&low).add_int(1),
                                min: low,
                            })
                        }
                    };
                    range.into_iter().for_each(|range| space.set_range(iter.var, range));
                }
            }
            _ => {}
        }
    }
    space
}
