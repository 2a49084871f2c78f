//! A reduction in two: over parts, and over the results of these.
//!
//! ```ir
//! for %i … { for %ko … { for %ki in 0..16 {       block "B_rf" (vr: spatial = %ki, vi, vk: reduce = %ko)
//!   block "B" (vi, vk: reduce = %ko*16+%ki)   =>    %B_rf[%vi, %vr] = %B_rf[%vi, %vr] + …
//!     %B[%vi] = %B[%vi] + …                       block "B" (vi, vr: reduce = %ki)
//! } } }                                             %B[%vi] = %B[%vi] + %B_rf[%vi, %vr]
//! ```
//!
//! The loop that is named becomes spatial in the first, so that its steps may be lanes or threads. The result differs from that
//! of one reduction in the last place of floats.

use rustc_hash::FxHashMap as HashMap;

use tenon_plugin_api::ir::{
    Attrs, BinaryOp, Build, BuildPrim, Context, Expr, Kind as NodeKind, LoopKind, Symbol, View,
};

use crate::exprs::{Replacing, mentions};
use crate::index::{Fit, Range, Sum};
use crate::refusal::{Result, refuse};
use crate::schedule::{Block, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{BlockNode, For, Id, Iter, Node};

use super::order;
use super::state::State;

pub(super) static RFACTOR: Primitive = Primitive {
    name: "rfactor",
    version: 1,
    summary: "Reduces over parts first, one for each step of a loop, and then over these; they are an axis of a buffer.",
    params: &[Param::new("loop", Kind::Loop), Param::new("axis", Kind::Int).or("0")],
    apply,
};

/// A reduction as `buffer[indices] = buffer[indices] op term`, started with the identity of `op`.
pub(super) struct Reduction {
    pub(super) buffer: Expr,
    indices: Vec<Expr>,
    pub(super) op: BinaryOp,
    pub(super) term: Expr,
    pub(super) identity: Expr,
}

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let (at, axis) = (args.id(0), args.int(1));
    let Some(id) = schedule.only_block(at) else {
        return refuse(at, "the loop does not hold exactly one block");
    };
    schedule.only_blocks(at)?;
    let among = schedule.tree.blocks_of(schedule.tree.scope(id));
    let why = schedule.why_no_reduction(id, &among);
    if let Some(why) = why.or_else(|| schedule.why_not_affine(id, Fit::Exact)) {
        return refuse(id, format!("the block is no reduction: {why}"));
    }
    let state = State::of(schedule, id)?;
    let reduction = match &state {
        Some(_) => None,
        None => Some(recognize(schedule, id)?),
    };
    order::check(schedule, id)?;
    let loops = check_loops(schedule, id, at)?;
    let indices = match (&state, &reduction) {
        (Some(state), _) => &state.indices,
        (None, Some(reduction)) => &reduction.indices,
        (None, None) => return Ok(Vec::new()),
    };
    let rank = indices.len() as i64;
    let place = if axis < 0 { axis + rank + 1 } else { axis };
    if !(0..=rank).contains(&place) {
        return refuse(at, format!("the axis {axis} is not within -{} and {rank}", rank + 1));
    }
    let (place, top) = (place as usize, *loops.first().unwrap_or(&at));
    let scope = schedule.tree.scope(id);
    let parts = parts(schedule, id, at, &loops)?;
    let (partials, (nest, joined)) = match (state, reduction) {
        (Some(state), _) => {
            let partials =
                state.buffers.iter().map(|&buffer| partial_buffer(schedule, buffer, at, place));
            let partials = partials.collect::<Result<Vec<Expr>>>()?;
            let nest = final_nest(schedule, id, at, &loops, |schedule, own, inside| {
                state.join(schedule, id, &partials, place, own, inside)
            })?;
            state.reduce_parts(schedule, id, parts, &partials, place);
            (partials, nest)
        }
        (None, Some(reduction)) => {
            let partial = partial_buffer(schedule, reduction.buffer, at, place)?;
            let nest = final_nest(schedule, id, at, &loops, |schedule, own, inside| {
                Ok(combine_parts(schedule, &reduction, partial, place, own, inside))
            })?;
            make_partial(schedule, id, &reduction, parts, partial, place);
            (vec![partial], nest)
        }
        (None, None) => return Ok(Vec::new()),
    };
    schedule.tree.insert(top, true, vec![nest]);
    for partial in partials {
        schedule.allocate(scope, partial);
    }
    Ok(vec![Block(id).into(), Block(joined).into()])
}

pub(super) fn recognize(schedule: &Schedule, id: Id) -> Result<Reduction> {
    let parts = schedule.tree.as_block(id).and_then(|block| Some((block.init?, block.body)));
    let Some((init, body)) = parts else { return refuse(id, "it has no initial statement") };
    let (
        Node::Store { buffer, value: identity, indices: first },
        Node::Store { buffer: other, value, indices },
    ) = (schedule.tree.get(init), schedule.tree.get(body))
    else {
        return refuse(id, "it does not store one value at the start and one in each step");
    };
    let mut space = schedule.space();
    let mut read = |indices: &[Expr]| -> Vec<Sum> {
        indices.iter().map(|&index| space.read(schedule.body(), index)).collect()
    };
    let place = read(indices);
    if buffer != other || read(first) != place {
        return refuse(id, "its initial statement writes elsewhere than its body");
    }
    let mut is_own = |expr: Expr| match schedule.view(expr) {
        View::Load { buffer: from, indices } => from == *buffer && read(&indices.to_vec()) == place,
        _ => false,
    };
    let View::Binary { op, a, b } = schedule.view(*value) else {
        return refuse(body, "its step is no sum, product, minimum or maximum");
    };
    let term = match (is_own(a), is_own(b)) {
        (true, _) => b,
        (_, true) => a,
        _ => return refuse(body, "its step does not combine the element with a value"),
    };
    if mentions(&schedule.rw, term, &[*buffer]) {
        return refuse(body, "the value that is combined reads the buffer as well");
    }
    let start = match schedule.view(*identity) {
        View::Float(value) => value,
        View::Int(value) => value as f64,
        _ => return refuse(init, "it does not start from a number"),
    };
    let dtype = schedule.body().scalar_ty(*identity).map(|(dtype, _)| dtype);
    let bounds = dtype.filter(|dtype| dtype.is_int()).map(|dtype| dtype.int_bounds());
    let (low, high) =
        bounds.map_or((f64::NEG_INFINITY, f64::INFINITY), |(low, high)| (low as f64, high as f64));
    let expected = match op {
        BinaryOp::Add => 0.0,
        BinaryOp::Mul => 1.0,
        BinaryOp::Max => low,
        BinaryOp::Min => high,
        _ => return refuse(body, "its step is no sum, product, minimum or maximum"),
    };
    if start != expected {
        return refuse(
            init,
            format!("it starts from {start}, and `{}` of nothing is {expected}", op.text()),
        );
    }
    Ok(Reduction { buffer: *buffer, indices: indices.clone(), op, term, identity: *identity })
}

/// The loops around the block from the outermost on; the one that is factored is serial and goes through the reduction alone.
fn check_loops(schedule: &Schedule, id: Id, at: Id) -> Result<Vec<Id>> {
    let Some(each) = schedule.tree.as_for(at) else { return refuse(at, "it is no loop") };
    if each.kind != LoopKind::Serial {
        return refuse(at, "the loop is not serial");
    }
    let mut space = schedule.space();
    let loops = schedule.tree.loops_around(id);
    let Some(block) = schedule.tree.as_block(id) else { return refuse(at, "it holds no block") };
    for &other in &loops {
        let Some(node) = schedule.tree.as_for(other) else { continue };
        let mut moves = [false; 2];
        for iter in &block.iters {
            let binding = space.read(schedule.body(), iter.binding);
            moves[schedule.is_reduce(iter.kind) as usize] |= space.mentions(&binding, node.var);
        }
        if moves == [true, true] {
            return refuse(other, "this loop moves iterators of the reduction and others");
        }
        if other == at && moves != [false, true] {
            return refuse(at, "the loop does not go through the reduction");
        }
        if schedule.tree.blocks_below(other) != [id] {
            return refuse(other, "this loop holds other blocks as well");
        }
    }
    Ok(loops)
}

/// The buffer of the parts: as the result, with an axis for the loop.
fn partial_buffer(schedule: &mut Schedule, buffer: Expr, at: Id, place: usize) -> Result<Expr> {
    let mut space = schedule.space();
    let extent = schedule.tree.as_for(at).map(|each| space.read(schedule.body(), each.extent));
    let extent = extent.unwrap_or_default();
    if !space.is_symbolic(&extent) {
        return refuse(at, "its extent is not made of numbers and symbols");
    }
    let cx = schedule.rw.cx();
    let mut shape = schedule.shape(buffer);
    shape.insert(place, space.dim(&cx, &extent));
    let body = schedule.body();
    let tensor = body.ty(buffer).and_then(|ty| body.terms().tensor(ty));
    let Some((dtype, _)) = tensor else { return refuse(at, "the result is no buffer") };
    let ty = cx.tensor_type(dtype, &shape);
    let name = format!("{}_rf", schedule.var_name(buffer));
    Ok(schedule.new_buffer(&name, ty, ""))
}

/// How the block reduces into the parts.
pub(super) struct Parts {
    /// The loop's own, which is spatial, the spatial ones, and one for each other loop of the reduction.
    pub(super) iters: Vec<Iter>,
    /// The iterators of the reduction, and what they are in terms of these.
    pub(super) pairs: Vec<(Expr, Expr)>,
    /// Whether there is another loop of the reduction.
    pub(super) has_rest: bool,
}

impl Parts {
    /// The iterator of the loop.
    pub(super) fn own(&self) -> Expr {
        self.iters[0].var
    }
}

fn parts(schedule: &mut Schedule, id: Id, at: Id, loops: &[Id]) -> Result<Parts> {
    let mut space = schedule.space();
    let Some(block) = schedule.tree.as_block(id).cloned() else {
        return refuse(id, "it is no block");
    };
    let factored = schedule.tree.as_for(at).map(|each| each.var);
    let (mut iters, mut rest) = (Vec::new(), Vec::new());
    let mut of_loop: HashMap<Expr, Expr> = HashMap::default();
    let reduced: Vec<Expr> = block
        .iters
        .iter()
        .filter(|iter| schedule.is_reduce(iter.kind))
        .map(|iter| iter.binding)
        .collect();
    for &each in loops {
        let Some(each) = schedule.tree.as_for(each).cloned() else { continue };
        if !reduced.iter().any(|&binding| mentions(&schedule.rw, binding, &[each.var])) {
            continue;
        }
        let is_factored = Some(each.var) == factored;
        let name = format!("v{}", schedule.var_name(each.var));
        let var = schedule.index_var(&name);
        of_loop.insert(each.var, var);
        let kind = schedule.kind_term(!is_factored);
        let iter = Iter { var, kind, binding: each.var, min: each.min, extent: each.extent };
        if is_factored { iters.insert(0, iter) } else { rest.push(iter) }
    }
    if let Some(predicate) = block.predicate {
        check_predicate(schedule, predicate, at, &rest)?;
    }
    iters.extend(block.iters.iter().filter(|iter| !schedule.is_reduce(iter.kind)).copied());
    iters.extend(&rest);
    for iter in &iters {
        let [min, extent] = [iter.min, iter.extent].map(|expr| space.read(schedule.body(), expr));
        space.set_range(iter.var, Range { min, extent });
    }
    // The old iterators of the reduction in terms of the new ones.
    let mut inner = Replacing::of(of_loop);
    let old: Vec<Iter> =
        block.iters.iter().filter(|iter| schedule.is_reduce(iter.kind)).copied().collect();
    let mut pairs = Vec::new();
    for iter in old {
        let value = inner.of_expr(&mut schedule.rw, iter.binding);
        pairs.push((iter.var, crate::schedule::normal(&mut schedule.rw, &mut space, value)));
    }
    Ok(Parts { iters, pairs, has_rest: !rest.is_empty() })
}

/// The block reduces into the parts.
fn make_partial(
    schedule: &mut Schedule,
    id: Id,
    reduction: &Reduction,
    parts: Parts,
    partial: Expr,
    place: usize,
) {
    let Some(block) = schedule.tree.as_block(id).cloned() else { return };
    let mut space = schedule.space();
    for iter in &parts.iters {
        let [min, extent] = [iter.min, iter.extent].map(|expr| space.read(schedule.body(), expr));
        space.set_range(iter.var, Range { min, extent });
    }
    let mut indices = reduction.indices.clone();
    indices.insert(place, parts.own());
    let name = format!("{}_rf", schedule.block_name(id));
    let rw = &mut schedule.rw;
    let mut replacing = Replacing::of(parts.pairs);
    let term = replacing.apply(rw, reduction.term, |rw, old, operands| {
        let changed = !rw.body().operands(old).iter().eq(operands.iter().copied());
        (rw.body().kind(old) == NodeKind::LOAD && changed).then(|| {
            let operands: Vec<Expr> = operands
                .iter()
                .map(|&operand| crate::schedule::normal(rw, &mut space, operand))
                .collect();
            rw.rebuild(old, &operands)
        })
    });
    let value = match parts.has_rest {
        true => {
            let so_far = rw.load(partial, &indices);
            rw.binary(reduction.op, so_far, term)
        }
        false => term,
    };
    let body = Node::Store { buffer: partial, value, indices: indices.clone() };
    let start = Node::Store { buffer: partial, value: reduction.identity, indices };
    *schedule.tree.get_mut(block.body) = body;
    if let Some(init) = block.init {
        *schedule.tree.get_mut(init) = start;
    }
    let name = schedule.symbol(&name);
    let node = schedule.tree.block_mut(id);
    (node.name, node.iters) = (name, parts.iters);
    if !parts.has_rest {
        node.init = None;
    }
}

/// A part is started only where its first step runs.
fn check_predicate(schedule: &Schedule, predicate: Expr, at: Id, rest: &[Iter]) -> Result<()> {
    let mut space = schedule.space();
    let factored = schedule.tree.as_for(at).map(|each| each.var);
    let first: HashMap<_, _> =
        rest.iter().filter_map(|iter| Some((space.find(iter.binding)?, Sum::default()))).collect();
    for part in schedule.conjuncts(predicate) {
        let slack = schedule.slack(&mut space, part);
        let holds = slack.is_some_and(|slack| {
            let mut loops = rest.iter().map(|iter| iter.binding).chain(factored);
            let moved = loops.any(|var| space.mentions(&slack, var));
            let started = space.substitute(&slack, &first);
            !moved || space.is_natural(&started)
        });
        if !holds {
            return refuse(
                at,
                "the predicate of the block is not known to hold in the first step of each part",
            );
        }
    }
    Ok(())
}

/// The initial statement and the body of the block that combines the parts, given the iterator of these and the others in the place of
/// the old ones.
fn combine_parts(
    schedule: &mut Schedule,
    reduction: &Reduction,
    partial: Expr,
    place: usize,
    own: Expr,
    inside: HashMap<Expr, Expr>,
) -> (Id, Id) {
    let mut replacing = Replacing::of(inside);
    let rw = &mut schedule.rw;
    let indices: Vec<Expr> =
        reduction.indices.iter().map(|&index| replacing.of_expr(rw, index)).collect();
    let mut from = indices.clone();
    from.insert(place, own);
    let (so_far, term) = (rw.load(reduction.buffer, &indices), rw.load(partial, &from));
    let value = rw.binary(reduction.op, so_far, term);
    let buffer = reduction.buffer;
    let init = Node::Store { buffer, value: reduction.identity, indices: indices.clone() };
    let init = schedule.tree.add(init);
    (init, schedule.tree.add(Node::Store { buffer, value, indices }))
}

/// The loops and the block that reduce over the parts; `stmts` makes its initial statement and its body.
fn final_nest(
    schedule: &mut Schedule,
    id: Id,
    at: Id,
    loops: &[Id],
    stmts: impl FnOnce(&mut Schedule, Expr, HashMap<Expr, Expr>) -> Result<(Id, Id)>,
) -> Result<(Id, Id)> {
    let block = schedule.tree.as_block(id).cloned().expect("it was looked at before");
    let mut renamed: HashMap<Expr, Expr> = HashMap::default();
    let mut nodes: Vec<For> = Vec::new();
    let mut part = None;
    for &each in loops {
        let Some(node) = schedule.tree.as_for(each).cloned() else { continue };
        let moves = block.iters.iter().any(|iter| {
            !schedule.is_reduce(iter.kind) && mentions(&schedule.rw, iter.binding, &[node.var])
        });
        if moves || each == at {
            let var = schedule.rw.rebuild(node.var, &[]);
            renamed.insert(node.var, var);
            if each == at {
                part = Some((var, node.clone()));
            }
            nodes.push(For { var, ..node });
        }
    }
    let (part_var, part_loop) = part.expect("the loop is around the block");
    let name = format!("v{}", schedule.var_name(part_loop.var));
    let own = schedule.index_var(&name);
    let kind = schedule.kind_term(true);
    let (min, extent) = (part_loop.min, part_loop.extent);
    let mut iters = vec![Iter { var: own, kind, binding: part_var, min, extent }];
    let mut inside: HashMap<Expr, Expr> = HashMap::default();
    for iter in &block.iters {
        if schedule.is_reduce(iter.kind) {
            continue;
        }
        let var = schedule.rw.rebuild(iter.var, &[]);
        inside.insert(iter.var, var);
        let binding = Replacing::of(renamed.clone()).of_expr(&mut schedule.rw, iter.binding);
        iters.push(Iter { var, binding, ..*iter });
    }
    let (init, body) = stmts(schedule, own, inside)?;
    let predicate: Vec<Expr> = block
        .predicate
        .map_or(Vec::new(), |predicate| schedule.conjuncts(predicate))
        .into_iter()
        .filter(|&part| {
            let gone: Vec<Expr> = loops
                .iter()
                .filter_map(|&each| schedule.tree.as_for(each))
                .map(|each| each.var)
                .filter(|var| !renamed.contains_key(var) || *var == part_loop.var)
                .collect();
            !mentions(&schedule.rw, part, &gone)
        })
        .collect();
    let mut space = schedule.space();
    let predicate = schedule.join(&mut space, &predicate);
    let predicate =
        predicate.map(|predicate| Replacing::of(renamed).of_expr(&mut schedule.rw, predicate));
    let made = schedule.tree.make(Node::Block(BlockNode {
        name: block.name,
        iters,
        predicate,
        attrs: block.attrs,
        init: Some(init),
        body,
    }));
    let nest = nodes.into_iter().rev().fold(made, |body, node| {
        let kind = if node.kind == LoopKind::Parallel { node.kind } else { LoopKind::Serial };
        let node = For { body, kind, thread: Symbol(0), attrs: Attrs::NONE, ..node };
        schedule.tree.make(Node::For(node))
    });
    Ok((nest, made))
}
