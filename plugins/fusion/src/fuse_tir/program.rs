//! What fusion has to know of one tensor program.

use std::collections::HashMap;

use tenon_plugin_api::ir::{Args, DimView, PrimBlockView, Terms};
use tenon_plugin_api::prelude::*;

/// A tensor program, analysed.
pub(super) struct Program {
    pub(super) func: Function,
    pub(super) params: Vec<Expr>,
    /// The number of each parameter.
    pub(super) param_of: HashMap<Expr, usize>,
    /// The number of the first parameter that is written; all behind it are written as well.
    pub(super) first_output: usize,
    pub(super) body: Expr,
    /// The program as loops around one store, if it is that.
    pub(super) nest: Option<Nest>,
    /// Loads from parameters.
    pub(super) loads: Vec<Load>,
    /// Stores to parameters, with the number of the parameter.
    pub(super) stores: Vec<(Expr, usize)>,
    /// For each parameter, whether it is used in a way that fusion does not look into.
    pub(super) is_pinned: Vec<bool>,
    pub(super) attrs: Attrs,
}

/// Loops around scalar definitions and one store, whose indices are the loop variables, or the iterators of a block that are
/// bound to them.
pub(super) struct Nest {
    /// Outermost first.
    pub(super) loops: Vec<Loop>,
    /// The block inside of them, if there is one.
    pub(super) block: Option<Expr>,
    pub(super) value: Expr,
    pub(super) store: Expr,
    /// For each axis of the result, its index.
    pub(super) axes: Vec<Axis>,
    pub(super) has_lets: bool,
    /// The instructions in which an element is computed; none where a function takes many.
    pub(super) work: Option<usize>,
    /// How often the store runs, once for each element of the result, as far as that can be told.
    pub(super) elements: u64,
}

pub(super) struct Loop {
    pub(super) stmt: Expr,
    pub(super) var: Expr,
    /// What stands for its step inside: the iterator that is bound to the variable, or that itself.
    pub(super) place: Expr,
    pub(super) extent: Extent,
}

/// How many elements an axis has, or how many steps a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extent {
    Known(i64),
    /// Equal expressions are equal extents; of others nothing is known.
    Symbolic(Dim),
}

/// What a symbol counts as where amounts of work are compared: more than a few.
const LIKELY: u64 = 64;

impl Extent {
    fn of(terms: Terms<'_>, dim: Dim) -> Self {
        terms.dim_value(dim).map_or(Extent::Symbolic(dim), Extent::Known)
    }

    /// Those of a tensor of known rank.
    pub(super) fn all_of(terms: Terms<'_>, ty: Type) -> Option<Vec<Extent>> {
        let (_, dims) = terms.tensor(ty)?;
        Some(dims.iter().map(|&dim| Extent::of(terms, dim)).collect())
    }

    /// The extent of a loop.
    fn of_loop(body: BodyView<'_>, extent: Expr) -> Option<Self> {
        match body.view(extent) {
            View::Int(extent) => Some(Extent::Known(extent)),
            View::Prim { dim } => Some(Extent::of(body.terms(), dim)),
            _ => None,
        }
    }

    /// A number that stands for it where amounts of work are compared: products of as many symbols are as many.
    fn likely(self, terms: Terms<'_>) -> u64 {
        match self {
            Extent::Known(extent) => extent.max(0) as u64,
            Extent::Symbolic(dim) => match terms.dim(dim) {
                DimView::Mul(factors) => factors.iter().fold(1, |product: u64, &factor| {
                    let factor =
                        terms.dim_value(factor).map_or(LIKELY, |value| value.max(0) as u64);
                    product.saturating_mul(factor)
                }),
                _ => LIKELY,
            },
        }
    }
}

/// An index: the variable of a loop of a nest, or zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Axis {
    Loop(usize),
    Zero,
}

pub(super) struct Load {
    pub(super) param: usize,
    /// Its indices, in a nest, if each is one.
    pub(super) axes: Option<Vec<Axis>>,
    /// How often it runs.
    pub(super) trips: u64,
    /// How many expressions and statements read it.
    pub(super) uses: u32,
}

/// The most nodes of an element that is computed again rather than kept.
pub(super) const MAX_CHEAP: usize = 32;
/// What a division of integers takes whose divisor is not known, in other instructions.
const DIVISION: usize = 16;
/// Scalar functions that are a few instructions.
const CHEAP_INTRINSICS: [&str; 4] = ["abs", "floor", "ceil", "round"];

impl Program {
    /// `None` when the function is no tensor program, or when it has parameters that are no buffers of known rank.
    pub(super) fn of(func: Function) -> Option<Self> {
        let body = func.view();
        let View::PrimFunc { params, outputs, body: stmt, attrs } = body.view(body.root()) else {
            return None;
        };
        let params = params.to_vec();
        let is_ranked = |&param: &Expr| {
            let ty = body.ty(param).filter(|_| body.kind(param) == Kind::BUFFER);
            ty.is_some_and(|ty| body.terms().tensor(ty).is_some())
        };
        if !params.iter().all(is_ranked) {
            return None;
        }
        let first_output = params.len() - outputs;
        let nest = Nest::of(body, &params[first_output..], stmt);
        let param_of = params.iter().enumerate().map(|(index, &param)| (param, index)).collect();
        let mut this = Self {
            params,
            param_of,
            first_output,
            body: stmt,
            nest,
            loads: Vec::new(),
            stores: Vec::new(),
            is_pinned: Vec::new(),
            attrs,
            func: func.clone(),
        };
        this.find_accesses(body);
        Some(this)
    }

    fn find_accesses(&mut self, body: BodyView<'_>) {
        self.is_pinned = vec![false; self.params.len()];
        let trips = Trips::of(body, self.body);
        for expr in body.post_order().filter(|&expr| expr != body.root()) {
            let view = body.view(expr);
            let (buffer, indices, value) = match view {
                View::Load { buffer, indices } => (Some(buffer), indices, expr),
                View::Store { buffer, indices, value } => (Some(buffer), indices, value),
                _ => (None, body.operands(expr), expr),
            };
            let first = usize::from(buffer.is_some());
            for operand in body.operands(expr).skip(first).iter() {
                if let Some(&param) = self.param_of.get(&operand) {
                    self.is_pinned[param] = true;
                }
            }
            let Some(buffer) = buffer else { continue };
            let Some(&param) = self.param_of.get(&buffer) else { continue };
            if !is_element(body, buffer, indices, value) {
                self.is_pinned[param] = true;
            }
            if body.kind(expr) == Kind::STORE {
                self.stores.push((expr, param));
                continue;
            }
            self.loads.push(Load {
                param,
                axes: self.nest.as_ref().and_then(|nest| nest.axes_of(body, indices)),
                trips: trips.count[expr],
                uses: trips.uses[expr],
            });
        }
    }

    /// Whether it reads what it writes.
    pub(super) fn reads_outputs(&self) -> bool {
        self.loads.iter().any(|load| load.param >= self.first_output)
    }
}

/// Whether an access is that of one element, with an index for each axis.
fn is_element(body: BodyView<'_>, buffer: Expr, indices: Args<'_>, value: Expr) -> bool {
    let rank = body.ty(buffer).and_then(|ty| body.terms().tensor(ty)).map(|(_, dims)| dims.len());
    rank == Some(indices.len()) && body.scalar_ty(value).is_some_and(|(_, lanes)| lanes == 1)
}

impl Nest {
    fn of(body: BodyView<'_>, outputs: &[Expr], stmt: Expr) -> Option<Self> {
        let &[output] = outputs else { return None };
        let mut loops = Vec::new();
        let mut inner = stmt;
        while let View::For { var, min, extent, body: next, kind, .. } = body.view(inner) {
            let extent = Extent::of_loop(body, extent)?;
            if kind == LoopKind::ThreadBound || !matches!(body.view(min), View::Int(0)) {
                return None;
            }
            loops.push(Loop { stmt: inner, var, place: var, extent });
            inner = next;
        }
        let block = match body.view(inner) {
            View::Block(block) => {
                bind(body, block, &mut loops)?;
                Some(std::mem::replace(&mut inner, block.body))
            }
            _ => None,
        };
        let (lets, store) = match body.view(inner) {
            View::Store { .. } => (Vec::new(), inner),
            View::Seq(stmts) => {
                let mut stmts = stmts.to_vec();
                let store = stmts.pop()?;
                (stmts, store)
            }
            _ => return None,
        };
        let is_let = |&stmt: &Expr| body.kind(stmt) == Kind::LET_STMT;
        let View::Store { buffer, value, indices } = body.view(store) else { return None };
        if buffer != output || !lets.iter().all(is_let) {
            return None;
        }
        let work = work(body);
        let has_lets = !lets.is_empty();
        let steps = loops.iter().map(|each| each.extent.likely(body.terms()));
        let elements = steps.fold(1, u64::saturating_mul);
        let axes = Vec::new();
        let mut nest = Self { loops, block, value, store, axes, has_lets, work, elements };
        nest.axes = nest.axes_of(body, indices)?;
        let shape = Extent::all_of(body.terms(), body.ty(output)?)?;
        nest.is_over(&nest.axes, &shape).then_some(nest)
    }

    /// Whether the loops, with their variables as these indices, run over each element of a tensor of this
    /// shape once.
    pub(super) fn is_over(&self, axes: &[Axis], shape: &[Extent]) -> bool {
        let one = Extent::Known(1);
        let mut is_used: Vec<bool> = self.loops.iter().map(|each| each.extent == one).collect();
        let each_axis = axes.iter().zip(shape).all(|(&axis, &extent)| match axis {
            Axis::Zero => extent == one,
            Axis::Loop(index) => {
                let is_first = !std::mem::replace(&mut is_used[index], true);
                self.loops[index].extent == extent && (is_first || extent == one)
            }
        });
        each_axis && axes.len() == shape.len() && is_used.iter().all(|&used| used)
    }

    /// Indices as axes, if each is a loop variable or zero.
    fn axes_of(&self, body: BodyView<'_>, indices: Args<'_>) -> Option<Vec<Axis>> {
        let axis = |index: Expr| match body.view(index) {
            View::Int(0) => Some(Axis::Zero),
            View::Var { .. } => {
                self.loops.iter().position(|each| each.place == index).map(Axis::Loop)
            }
            _ => None,
        };
        indices.iter().map(axis).collect()
    }
}

/// Has the iterators of a block stand for the steps of the loops around it, when each loop has one, and nothing but what it
/// writes depends on where the block stands.
fn bind(body: BodyView<'_>, block: PrimBlockView<'_>, loops: &mut [Loop]) -> Option<()> {
    let is_plain = block.predicate.is_none()
        && block.init.is_none()
        && block.domains.is_empty()
        && block.attrs == Attrs::NONE;
    if !is_plain || block.iter_kinds.len() != loops.len() {
        return None;
    }
    for iter in block.iterators() {
        let bound = loops.iter_mut().find(|each| each.var == iter.binding)?;
        let is_spatial = body.terms().view(iter.kind) == TermView::Str("spatial");
        let is_first = bound.place == bound.var;
        bound.place = iter.var;
        (is_spatial && is_first).then_some(())?;
    }
    Some(())
}

/// The instructions in which a program that is a nest computes an element; none where a function takes many.
fn work(body: BodyView<'_>) -> Option<usize> {
    let mut work = 0;
    for expr in body.post_order() {
        work += match body.view(expr) {
            View::Intrinsic { name, .. } => {
                CHEAP_INTRINSICS.contains(&body.terms().str(name)).then_some(0)?
            }
            View::Binary {
                op: BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::FloorMod, b, ..
            } => match body.scalar_ty(expr).is_some_and(|(dtype, _)| dtype.is_int()) {
                true if !matches!(body.view(b), View::Int(_)) => DIVISION,
                _ => 1,
            },
            _ => usize::from(matches!(
                body.kind(expr),
                Kind::BINARY | Kind::SELECT | Kind::CAST | Kind::LOAD
            )),
        };
    }
    Some(work)
}

/// How often each node runs, and in how many places it is read. What an expression reads several times runs
/// once for it.
struct Trips {
    count: SideTable<u64>,
    uses: SideTable<u32>,
}

impl Trips {
    fn of(body: BodyView<'_>, root: Expr) -> Self {
        let mut this = Self { count: SideTable::new(body, 0), uses: SideTable::new(body, 0) };
        // What statements add up to, and the most that an expression asks for.
        let mut by_stmts = SideTable::new(body, 0u64);
        let mut by_exprs = SideTable::new(body, 0u64);
        by_stmts[root] = 1;
        for expr in body.post_order().rev() {
            let count = by_stmts[expr].saturating_add(by_exprs[expr]);
            this.count[expr] = count;
            let inner = match body.view(expr) {
                View::For { extent, .. } => match Extent::of_loop(body, extent) {
                    Some(extent) => count.saturating_mul(extent.likely(body.terms())),
                    None => u64::MAX,
                },
                _ => count,
            };
            for operand in body.operands(expr).iter() {
                this.uses[operand] += 1;
                if body.kind(expr).is_stmt() {
                    let is_inner = body.kind(operand).is_stmt();
                    let sum = &mut by_stmts[operand];
                    *sum = sum.saturating_add(if is_inner { inner } else { count });
                } else {
                    let most = &mut by_exprs[operand];
                    *most = count.max(*most);
                }
            }
        }
        this
    }
}
