//! The iterators of a reduction rounded up to multiples, over copies of what it reads and writes that are as large.
//!
//! ```ir
//! for %i in 0..dim(n) { for %j … { for %k … {        block "A_pad" … { if %v0 < dim(n) { %A_pad[%v0, %v1] = %A[%v0, %v1] }
//!   block "C" …                                =>                      else { %A_pad[%v0, %v1] = 0.0 } }
//!     %C[%vi, %vj] = %C[%vi, %vj]                    for %i in 0..dim(32 * floordiv(n + 31, 32)) { for %j … { for %k … {
//!       + %A[%vi, %vk] * %B[%vk, %vj]                  block "C" … %C_pad[%vi, %vj] = … + %A_pad[%vi, %vk] * %B[%vk, %vj]
//! } } }                                              block "C_pad" … { %C[%v0, %v1] = %C_pad[%v0, %v1] }
//! ```
//!
//! So any extent, and a symbol, has tiles without tails. What is added changes nothing of a result: elements beyond those that were
//! written are not copied back, and a longer reduction combines with what its operation makes nothing of, which all of its factors
//! have to be padded with, since a factor that is left may be infinite. The blocks that copy are given, that of the result last.

use tenon_plugin_api::ir::{
    Attrs, BinaryOp, Build, BuildPrim, Expr, Kind as NodeKind, LoopKind, View,
};

use crate::exprs::divides;
use crate::index::{AtomId, Fit, Range, Space, Sum};
use crate::refusal::{Result, refuse};
use crate::schedule::{Block, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive};
use crate::tree::{BlockNode, Id, Iter, Node};

use super::cache::use_instead;
use super::fuse::plain;
use super::rfactor::{Reduction, recognize};
use super::split::MOST_STEPS;

pub(super) static PAD_EINSUM: Primitive = Primitive {
    name: "pad_einsum",
    version: 1,
    summary: "Rounds the extents of a reduction's iterators up to multiples of these numbers, in padded copies of its buffers.",
    params: &[Param::new("block", Kind::Block), Param::new("multiples", Kind::Ints)],
    apply,
};

/// An iterator of the block, in the order of the block's.
struct Padded {
    atom: AtomId,
    each: Id,
    old: Sum,
    new: Sum,
    is_reduce: bool,
}

impl Padded {
    fn grows(&self) -> bool {
        self.old != self.new
    }
}

/// A buffer of the block and what stands for each of its axes.
struct Operand {
    buffer: Expr,
    axes: Vec<Axis>,
}

enum Axis {
    /// An iterator, by its number.
    Iter(usize),
    At(i64),
}

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let multiples: Vec<i64> = args.factors(1).into_iter().flatten().collect();
    pad_to(schedule, args.id(0), &multiples)
}

/// Rounds the extents of the iterators of a block up to multiples.
pub(super) fn pad_to(schedule: &mut Schedule, id: Id, multiples: &[i64]) -> Result<Vec<Handle>> {
    let among = schedule.tree.blocks_of(schedule.tree.scope(id));
    let why = schedule.why_no_reduction(id, &among);
    if let Some(why) = why.or_else(|| schedule.why_not_affine(id, Fit::Exact)) {
        return refuse(id, format!("the block is no reduction: {why}"));
    }
    let reduction = recognize(schedule, id)?;
    let mut space = schedule.space();
    let iters = iterators(schedule, &mut space, id, multiples)?;
    let mut operands = operands(schedule, &mut space, id, &iters)?;
    operands.sort_by_key(|operand| operand.buffer == reduction.buffer);
    let pad = neutral(schedule, id, &reduction, &operands, &iters)?;
    for iter in iters.iter().filter(|iter| iter.grows()) {
        let extent = space.build(&mut schedule.rw, &iter.new);
        schedule.tree.for_mut(iter.each).extent = extent;
    }
    for (at, iter) in iters.iter().enumerate().filter(|(_, iter)| iter.grows()) {
        let extent = space.build(&mut schedule.rw, &iter.new);
        schedule.tree.block_mut(id).iters[at].extent = extent;
    }
    let (top, scope) = (schedule.tree.loops_around(id)[0], schedule.tree.scope(id));
    let mut made = Vec::new();
    for operand in operands.iter().filter(|operand| operand.grows(&iters)) {
        let is_result = operand.buffer == reduction.buffer;
        let padded = padded_buffer(schedule, &mut space, operand, &iters);
        let pad = (!is_result).then_some(pad);
        let (nest, block) = copy(schedule, &mut space, operand, padded, &iters, pad);
        schedule.tree.insert(top, is_result, vec![nest]);
        use_instead(schedule, id, operand.buffer, padded);
        schedule.allocate(scope, padded);
        made.push(Block(block).into());
    }
    Ok(made)
}

/// The iterators with their extents before and after; each is bound to a loop of its own, and the loops hold nothing else.
fn iterators(
    schedule: &Schedule,
    space: &mut Space,
    id: Id,
    multiples: &[i64],
) -> Result<Vec<Padded>> {
    let Some(block) = schedule.tree.as_block(id) else { return refuse(id, "it is no block") };
    let loops = schedule.tree.loops_around(id);
    let count = block.iters.len();
    if multiples.len() != count || loops.len() != count || count == 0 {
        let (given, loops) = (multiples.len(), loops.len());
        return refuse(
            id,
            format!("it has {count} iterators and {loops} loops, and {given} multiples are given"),
        );
    }
    if block.predicate.is_some() {
        return refuse(id, "it has a predicate");
    }
    let inner = loops.iter().skip(1).chain([&id]);
    if let Some((_, &inner)) = loops
        .iter()
        .zip(inner)
        .find(|(outer, inner)| schedule.tree.parent(**inner) != Some(**outer))
    {
        return refuse(inner, "it is not the only statement inside the loop around it");
    }
    let mut padded: Vec<Padded> = Vec::new();
    for (iter, &multiple) in block.iters.iter().zip(multiples) {
        if !(1..=MOST_STEPS).contains(&multiple) {
            return refuse(id, "a multiple is not positive, or too large");
        }
        let is_own = |each: &&Id| {
            schedule.tree.as_for(**each).is_some_and(|each| each.var == iter.binding)
                && padded.iter().all(|other| other.each != **each)
        };
        let name = schedule.var_name(iter.var);
        let Some(&each) = loops.iter().find(is_own) else {
            return refuse(id, format!("its iterator `{name}` is not bound to a loop of its own"));
        };
        if plain(schedule, each)?.kind != LoopKind::Serial {
            return refuse(each, "the loop has a kind already");
        }
        let [min, old] = [iter.min, iter.extent].map(|expr| space.read(schedule.body(), expr));
        if min.value() != Some(0) || !space.is_symbolic(&old) {
            return refuse(id, format!("the domain of its iterator `{name}` is not known"));
        }
        let multiple = Sum::int(multiple);
        let Some(new) = space.ceil_div(&old, &multiple).mul(&multiple) else {
            return refuse(id, format!("the extent of its iterator `{name}` is too long"));
        };
        let Some(atom) = space.find(iter.var) else { return refuse(id, "it has no iterators") };
        let is_reduce = schedule.is_reduce(iter.kind);
        padded.push(Padded { atom, each, old, new: space.rejoin(new), is_reduce });
    }
    Ok(padded)
}

/// The buffers of the block, each accessed at one place: distinct iterators, or numbers.
fn operands(
    schedule: &Schedule,
    space: &mut Space,
    id: Id,
    iters: &[Padded],
) -> Result<Vec<Operand>> {
    let mut operands: Vec<(Operand, Vec<Sum>)> = Vec::new();
    for access in schedule.accesses(space, id) {
        let Some(indices) = access.indices else {
            return refuse(access.stmt, "it does not access single elements");
        };
        if let Some((_, first)) = operands.iter().find(|(other, _)| other.buffer == access.buffer) {
            if *first != indices {
                return refuse(access.stmt, "it accesses several elements of a buffer");
            }
            continue;
        }
        let mut axes = Vec::new();
        for index in &indices {
            let number =
                index.as_atom().and_then(|atom| iters.iter().position(|iter| iter.atom == atom));
            let is_new = |at: &usize| {
                !axes.iter().any(|axis| matches!(axis, Axis::Iter(other) if other == at))
            };
            match (number.filter(is_new), index.value()) {
                (Some(at), _) => axes.push(Axis::Iter(at)),
                (None, Some(at)) => axes.push(Axis::At(at)),
                (None, None) => {
                    return refuse(
                        access.stmt,
                        "it accesses a buffer at more than distinct iterators and numbers",
                    );
                }
            }
        }
        operands.push((Operand { buffer: access.buffer, axes }, indices));
    }
    Ok(operands.into_iter().map(|(operand, _)| operand).collect())
}

/// What operands are padded with.
fn neutral(
    schedule: &mut Schedule,
    id: Id,
    reduction: &Reduction,
    operands: &[Operand],
    iters: &[Padded],
) -> Result<f64> {
    if divides(&schedule.rw, reduction.term) {
        return refuse(id, "it divides integers, of which some would be padding");
    }
    let longer: Vec<usize> =
        (0..iters.len()).filter(|&at| iters[at].is_reduce && iters[at].grows()).collect();
    if longer.is_empty() {
        return Ok(0.0);
    }
    let Some(factors) = factors(schedule, reduction.term) else {
        return refuse(
            id,
            "what it combines is no product of elements, so no padding leaves it as it is",
        );
    };
    if reduction.op != BinaryOp::Add && schedule.body().kind(reduction.term) != NodeKind::LOAD {
        return refuse(id, "it is neither a sum of products nor takes elements as they are");
    }
    let padded = |buffer: &Expr| {
        operands.iter().find(|operand| operand.buffer == *buffer).is_some_and(|operand| {
            longer.iter().all(|at| {
                operand.axes.iter().any(|axis| matches!(axis, Axis::Iter(own) if own == at))
            })
        })
    };
    if let Some(&left) = factors.iter().find(|buffer| !padded(buffer)) {
        let name = schedule.var_name(left);
        return refuse(
            id,
            format!("`{name}` is the same in all of a reduction that grows, and may be infinite"),
        );
    }
    match schedule.view(reduction.identity) {
        View::Float(value) => Ok(value),
        View::Int(value) => Ok(value as f64),
        _ => refuse(id, "it does not start from a number"),
    }
}

/// The buffers of which a term is a product of elements, or of elements of other types; none when it is something else.
fn factors(schedule: &Schedule, term: Expr) -> Option<Vec<Expr>> {
    let (mut buffers, mut stack) = (Vec::new(), vec![term]);
    while let Some(part) = stack.pop() {
        match schedule.view(part) {
            View::Binary { op: BinaryOp::Mul, a, b } => stack.extend([b, a]),
            View::Cast { value } => stack.push(value),
            View::Load { buffer, .. } => buffers.push(buffer),
            _ => return None,
        }
    }
    Some(buffers)
}

impl Operand {
    fn grows(&self, iters: &[Padded]) -> bool {
        self.axes.iter().any(|axis| matches!(axis, Axis::Iter(at) if iters[*at].grows()))
    }
}

fn padded_buffer(
    schedule: &mut Schedule,
    space: &mut Space,
    operand: &Operand,
    iters: &[Padded],
) -> Expr {
    let cx = schedule.rw.cx();
    let shape = schedule.shape(operand.buffer);
    let dims: Vec<_> = operand
        .axes
        .iter()
        .zip(shape)
        .map(|(axis, dim)| match axis {
            Axis::Iter(at) if iters[*at].grows() => space.dim(&cx, &iters[*at].new),
            _ => dim,
        })
        .collect();
    let like = schedule.buffer_like(operand.buffer, &dims);
    let name = format!("{}_pad", schedule.var_name(operand.buffer));
    let ty = schedule.body().ty(like).expect("a buffer has a type");
    schedule.new_buffer(&name, ty, "")
}

/// Loops around a block that copies to a padded buffer, with `pad` beyond what there is; without, back from it.
fn copy(
    schedule: &mut Schedule,
    space: &mut Space,
    operand: &Operand,
    padded: Expr,
    iters: &[Padded],
    pad: Option<f64>,
) -> (Id, Id) {
    let (mut own, mut loops, mut at) = (Vec::new(), Vec::new(), Vec::new());
    let mut conditions = Vec::new();
    for (axis, stands) in operand.axes.iter().enumerate() {
        let iter = match stands {
            Axis::At(number) => {
                at.push(schedule.int(*number));
                continue;
            }
            Axis::Iter(iter) => &iters[*iter],
        };
        let [var, each] =
            [format!("v{axis}"), format!("ax{axis}")].map(|name| schedule.index_var(&name));
        let range = if pad.is_some() { &iter.new } else { &iter.old };
        space.set_range(var, Range { min: Sum::default(), extent: range.clone() });
        let (min, extent) = (schedule.int(0), space.build(&mut schedule.rw, range));
        own.push(Iter { var, kind: schedule.kind_term(false), binding: each, min, extent });
        loops.push((each, extent));
        at.push(var);
        if pad.is_some() && iter.grows() {
            let value = space.node(var);
            conditions.push(schedule.less(space, &value, &iter.old));
        }
    }
    let (from, to) =
        if pad.is_some() { (operand.buffer, padded) } else { (padded, operand.buffer) };
    let value = schedule.rw.load(from, &at);
    let mut body = schedule.tree.add(Node::Store { buffer: to, value, indices: at.clone() });
    if let (Some(pad), Some(cond)) = (pad, schedule.join(space, &conditions)) {
        let dtype = schedule.body().scalar_ty(value).map(|(dtype, _)| dtype);
        let value = match dtype {
            Some(dtype) if dtype.is_float() => schedule.rw.float_of(dtype, pad),
            Some(dtype) => schedule.rw.int_of(dtype, pad as i64),
            None => value,
        };
        let beyond = schedule.tree.add(Node::Store { buffer: to, value, indices: at });
        body = schedule.tree.make(Node::If { cond, then: body, otherwise: Some(beyond) });
    }
    let name = schedule.var_name(padded);
    let name = schedule.symbol(&name);
    let (predicate, init, attrs) = (None, None, Attrs::NONE);
    let block = BlockNode { name, iters: own, predicate, attrs, init, body };
    let block = schedule.tree.make(Node::Block(block));
    (schedule.loops_over(block, loops), block)
}
