//! Loops, and which elements the statements inside them touch.

use std::ops::Range;

use rustc_hash::FxHashMap;
use tenon_plugin_api::ir::Args;
use tenon_plugin_api::prelude::*;

use crate::arith::{Forms, Interval, Linear};
use crate::loops::{constant_extent, says_settled};

/// What an expression depends on when it reads memory or is not understood: on every loop.
const ALL_LOOPS: u32 = u32::MAX;

/// Questions about loops are only asked down to this depth, so that the answers stay linear in the size of
/// the program.
const MAX_DEPTH: usize = 16;

/// The loops of a program in the order in which they open.
pub(crate) struct Nest<'a> {
    pub(crate) body: BodyView<'a>,
    pub(crate) loops: Vec<Loop>,
    pub(crate) accesses: Vec<Access>,
    forms: Forms,
    nodes: SideTable<Node>,
    /// For each statement that reads numbers its position, and the last variable they depend on.
    values: Vec<(u32, u32)>,
    /// The positions of statements with an effect that is no access.
    opaque: Vec<u32>,
}

/// What is known of a node.
#[derive(Clone, Copy, Default)]
struct Node {
    /// The last position of a variable that it depends on.
    latest: u32,
    /// The same without what decides only where loads read.
    latest_value: u32,
    /// Where the variable of a loop is bound, and where a buffer that the program makes is made; 0 of all else.
    made_at: u32,
    /// The position of the statement in whose operands it was seen last.
    seen_at: u32,
}

/// A loop.
pub(crate) struct Loop {
    pub(crate) stmt: Expr,
    pub(crate) var: Expr,
    pub(crate) kind: LoopKind,
    pub(crate) steps: Option<i64>,
    pub(crate) depth: usize,
    /// Whether an instruction computes it, or a loop around it, at once.
    is_settled: bool,
    /// The loop directly around it.
    pub(crate) parent: Option<usize>,
    /// The loops inside.
    pub(crate) inner: Range<usize>,
    /// The accesses inside.
    pub(crate) accesses: Range<usize>,
    /// The positions of the statements inside; that of the loop is the one before.
    positions: Range<u32>,
}

/// An element, or the elements of a vector, that a statement reads or writes.
pub(crate) struct Access {
    pub(crate) buffer: Expr,
    pub(crate) is_store: bool,
    /// The only index, of a vector the first; `None` when there are several or it is not understood.
    pub(crate) index: Option<Linear>,
    /// How far the lanes of a vector reach beyond the first.
    reach: Interval,
}

impl<'a> Nest<'a> {
    pub(crate) fn of(body: BodyView<'a>) -> Self {
        let mut nest = Self {
            body,
            loops: Vec::new(),
            accesses: Vec::new(),
            forms: Forms::of(body),
            nodes: SideTable::new(body, Node::default()),
            values: Vec::new(),
            opaque: Vec::new(),
        };
        nest.walk();
        nest.find_dependences();
        nest.find_values();
        nest
    }

    /// Whether a loop stays as it is: an instruction computes it, or it lies too deep for questions.
    pub(crate) fn is_settled(&self, index: usize) -> bool {
        self.loops[index].is_settled || self.loops[index].depth > MAX_DEPTH
    }

    /// Whether the steps of a loop may run in any order: no step reads or writes an element that another
    /// one writes.
    pub(crate) fn is_independent(&self, index: usize) -> bool {
        let this = &self.loops[index];
        if self.is_settled(index) || self.has_opaque(this) {
            return false;
        }
        let accesses = &self.accesses[this.accesses.clone()];
        let mut written: FxHashMap<Expr, Vec<&Access>> = accesses
            .iter()
            .filter(|access| access.is_store && !self.is_local(this, access.buffer))
            .map(|access| (access.buffer, Vec::new()))
            .collect();
        for access in accesses {
            if let Some(all) = written.get_mut(&access.buffer) {
                all.push(access);
            }
        }
        written.values().all(|accesses| self.are_apart(this, accesses))
    }

    /// Whether the elements that the accesses touch in one step of a loop are none of those of another.
    ///
    /// Accesses may be of several ranges, such as rows of a matrix, that the loop leads through side by side: where one starts, the
    /// loop is at its end in the one before.
    fn are_apart(&self, this: &Loop, accesses: &[&Access]) -> bool {
        let mut common: Option<(i64, Linear)> = None;
        let mut touched = Vec::with_capacity(accesses.len());
        for access in accesses {
            let Some(index) = &access.index else { return false };
            let stride = index.coefficient(this.var);
            let Some((outer, inner)) = self.split(this, index) else { return false };
            let (other, base) = common.get_or_insert_with(|| (stride, outer.clone()));
            if *other != stride || *base != outer {
                return false;
            }
            touched.push(self.forms.bounds(&inner).add(access.reach));
        }
        let Some((stride, _)) = common else { return false };
        let length = this.steps.and_then(|steps| stride.abs().checked_mul(steps));
        touched.sort_unstable_by_key(|range| range.min);
        let mut hulls: Vec<Interval> = Vec::new();
        for range in touched {
            match hulls.last_mut() {
                Some(hull)
                    if length.is_none_or(|length| range.min.saturating_sub(hull.min) < length) =>
                {
                    *hull = hull.union(range);
                }
                _ => hulls.push(range),
            }
        }
        stride != 0 && hulls.iter().all(|hull| hull.extent() <= stride.abs())
    }

    /// An index without the loop's own variable: what stays the same in all steps, and what moves inside of
    /// a step. `None` when that cannot be told apart.
    fn split(&self, this: &Loop, index: &Linear) -> Option<(Linear, Linear)> {
        let (mut outer, mut inner) = (Linear::default(), Linear::of(index.constant));
        for &(atom, coefficient) in index.terms.iter().filter(|&&(atom, _)| atom != this.var) {
            if !self.moves(this, atom) {
                outer.terms.push((atom, coefficient));
            } else if self.nodes[atom].made_at > 0 {
                inner.terms.push((atom, coefficient));
            } else {
                return None;
            }
        }
        Some((outer, inner))
    }

    /// Whether an expression may differ from step to step of a loop, or inside of a step.
    fn moves(&self, this: &Loop, expr: Expr) -> bool {
        self.nodes[expr].latest >= this.position()
    }

    /// Whether a buffer is made inside of a loop.
    pub(crate) fn is_local(&self, this: &Loop, buffer: Expr) -> bool {
        this.positions.contains(&self.nodes[buffer].made_at)
    }

    /// Whether something inside of a loop has an effect that is not an access.
    fn has_opaque(&self, this: &Loop) -> bool {
        let first = self.opaque.partition_point(|&position| position < this.positions.start);
        self.opaque.get(first).is_some_and(|position| this.positions.contains(position))
    }

    /// Whether, inside of a loop, its variable is read for more than to say where an element lies.
    /// Variables of the loops inside count as well.
    pub(crate) fn has_value_of_variable(&self, index: usize) -> bool {
        let this = &self.loops[index];
        let first = self.values.partition_point(|&(position, _)| position < this.positions.start);
        self.values[first..]
            .iter()
            .take_while(|(position, _)| this.positions.contains(position))
            .any(|&(_, latest)| latest >= this.position())
    }

    /// Whether an expression may differ from step to step of a loop, or inside of a step.
    pub(crate) fn varies(&self, index: usize, expr: Expr) -> bool {
        self.moves(&self.loops[index], expr)
    }

    /// How many elements lie between those that two neighbouring steps of a loop access; `None` when
    /// that is no constant.
    pub(crate) fn stride(&self, index: usize, access: &Access) -> Option<i64> {
        let this = &self.loops[index];
        let form = access.index.as_ref()?;
        let is_plain =
            |&(atom, _): &(Expr, i64)| self.nodes[atom].made_at > 0 || !self.moves(this, atom);
        form.terms.iter().all(is_plain).then(|| form.coefficient(this.var))
    }

    /// The only loop directly inside of a loop, when there is nothing else in it.
    pub(crate) fn perfect_inner(&self, index: usize) -> Option<usize> {
        let View::For { body, .. } = self.body.view(self.loops[index].stmt) else { return None };
        let first = self.loops[index].inner.start;
        self.loops.get(first).is_some_and(|inner| inner.stmt == body).then_some(first)
    }

    /// Numbers the statements, and finds loops and accesses.
    fn walk(&mut self) {
        let mut position = 0u32;
        let mut open: Vec<usize> = Vec::new();
        let mut pending: Vec<Expr> = Vec::new();
        for step in self.body.walk(self.body.root()) {
            let (stmt, is_enter) = match step {
                Walk::Enter(stmt) => (stmt, true),
                Walk::Leave(stmt) => (stmt, false),
            };
            if !is_enter {
                if self.body.kind(stmt) == Kind::FOR {
                    let index = open.pop().expect("a loop that closes was opened");
                    let (loops, accesses) = (self.loops.len(), self.accesses.len());
                    let this = &mut self.loops[index];
                    this.inner.end = loops;
                    this.accesses.end = accesses;
                    this.positions.end = position + 1;
                }
                continue;
            }
            position += 1;
            match self.body.view(stmt) {
                View::For { var, kind, attrs, .. } => {
                    self.find_accesses(position, stmt, 1..3, &mut pending);
                    self.values.push((position, stmt.0));
                    self.nodes[var].made_at = position;
                    let parent = open.last().copied();
                    let is_inside = parent.is_some_and(|parent| self.loops[parent].is_settled);
                    let (loops, accesses) = (self.loops.len() + 1, self.accesses.len());
                    self.loops.push(Loop {
                        stmt,
                        var,
                        kind,
                        steps: constant_extent(self.body, stmt),
                        depth: open.len(),
                        is_settled: is_inside || says_settled(self.body, attrs),
                        parent,
                        inner: loops..loops,
                        accesses: accesses..accesses,
                        positions: position + 1..position + 1,
                    });
                    open.push(self.loops.len() - 1);
                }
                View::LetStmt { .. } => {
                    self.find_accesses(position, stmt, 1..2, &mut pending);
                    self.values.push((position, stmt.0));
                }
                View::Alloc { buffer } => self.nodes[buffer].made_at = position,
                View::IfStmt { .. } => {
                    self.find_accesses(position, stmt, 0..1, &mut pending);
                    self.values.push((position, stmt.0));
                }
                View::Store { buffer, indices, .. } => {
                    let operands = 1..self.body.operands(stmt).len();
                    self.find_accesses(position, stmt, operands, &mut pending);
                    self.values.push((position, stmt.0));
                    self.add_access(buffer, true, indices);
                }
                View::Seq(_) | View::PrimFunc { .. } => {}
                // Calls, blocks, and what this build does not know.
                _ => self.opaque.push(position),
            }
        }
    }

    /// The elements that some operands of a statement read. `pending` is empty before and after.
    fn find_accesses(
        &mut self,
        position: u32,
        stmt: Expr,
        operands: Range<usize>,
        pending: &mut Vec<Expr>,
    ) {
        let args = self.body.operands(stmt);
        pending.extend(operands.map(|operand| args.at(operand)));
        while let Some(expr) = pending.pop() {
            if std::mem::replace(&mut self.nodes[expr].seen_at, position) == position {
                continue;
            }
            if self.body.kind(expr) == Kind::LOAD
                && let View::Load { buffer, indices } = self.body.view(expr)
            {
                self.add_access(buffer, false, indices);
            }
            pending.extend(self.body.operands(expr).iter());
        }
    }

    fn add_access(&mut self, buffer: Expr, is_store: bool, indices: Args<'_>) {
        let mut access = Access { buffer, is_store, index: None, reach: Interval::of(0) };
        if indices.len() == 1 {
            let index = indices.at(0);
            match self.body.view(index) {
                View::Ramp { base, stride } => {
                    let lanes = self.body.scalar_ty(index).map_or(1, |(_, lanes)| lanes as i64);
                    if let View::Int(stride) = self.body.view(stride) {
                        let last = Interval::of(stride).scale(lanes - 1);
                        access.reach = last.union(Interval::of(0));
                        access.index = Some(self.forms.form(base));
                    }
                }
                _ if self.body.scalar_ty(index) == Some((DType::I64, 1)) => {
                    access.index = Some(self.forms.form(index));
                }
                _ => {}
            }
        }
        self.accesses.push(access);
    }

    /// For each node the last of the loops it depends on.
    fn find_dependences(&mut self) {
        for expr in self.body.post_order() {
            let (latest, latest_value) = match self.body.kind(expr) {
                Kind::VAR => {
                    let position = self.nodes[expr].made_at;
                    (position, position)
                }
                Kind::LOAD => (ALL_LOOPS, 0),
                Kind::LET_STMT => {
                    let operands = self.body.operands(expr);
                    let (var, value) = (operands.at(0), operands.at(1));
                    // The value's nodes stand behind the variable, and its uses behind both.
                    let Node { latest, latest_value, .. } = self.nodes[value];
                    self.nodes[var] = Node { latest, latest_value, ..self.nodes[var] };
                    continue;
                }
                _ => {
                    let operands = self.body.operands(expr).iter();
                    operands.fold((0, 0), |(latest, latest_value), operand| {
                        let operand = self.nodes[operand];
                        (latest.max(operand.latest), latest_value.max(operand.latest_value))
                    })
                }
            };
            self.nodes[expr] = Node { latest, latest_value, ..self.nodes[expr] };
        }
    }

    /// For each statement the last of the loops that the numbers it reads depend on.
    fn find_values(&mut self) {
        for (_, value) in &mut self.values {
            // The walk left the statement there.
            let stmt = Expr(*value);
            let args = self.body.operands(stmt);
            let latest = |operand: usize| self.nodes[args.at(operand)].latest_value;
            *value = match self.body.kind(stmt) {
                Kind::FOR => latest(1).max(latest(2)),
                Kind::IF_STMT => latest(0),
                // `let` and stores.
                _ => latest(1),
            };
        }
    }
}

impl Loop {
    /// The number of the loop among the statements.
    fn position(&self) -> u32 {
        self.positions.start - 1
    }
}
