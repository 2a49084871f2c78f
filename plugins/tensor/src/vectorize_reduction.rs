//! Sums along rows in vectors, one part of the sum in each lane.
//!
//! ```ir
//! for k in 0..100 {                        alloc part: f32[16]
//!   s[0] = s[0] + x[k]                     for l in 0..16 vectorized { part[l] = 0.0 }
//! }                                        for k in 0..6 {
//!                                  =>        for l in 0..16 vectorized {
//!                                              part[l] = part[l] + x[k*16 + l]
//!                                          for l in 0..8 vectorized { part[l] = part[l] + part[l + 8] }
//!                                          …
//!                                          s[0] = s[0] + part[0]
//!                                          for k in 0..4 { s[0] = s[0] + x[k + 96] }
//! ```
//!
//! A loop that does nothing but add to one element, or take the maximum or the minimum, depends on
//! itself from step to step and has no vector code. With a part for each lane it has, and several vectors of parts are added to at
//! once where there are steps enough, since each addition waits for the one before. Behind the loop the upper half of the parts is
//! put onto the lower one until one is left. For maxima and minima, and for integers, the result is the same; floats are
//! added in another order, which `reassociate=false` forbids. A loop whose steps are as many as the call says has a vector of parts.
//!
//! `tir.FlattenBuffer`, `tir.Simplify` and `tir.FuseLoops` come first, so that short rows are one; then
//! `tir.VectorizeLoop` and `tir.UnrollLoop`.

use tenon_plugin_api::prelude::*;

use crate::loops::bound_variable;
use crate::nest::Nest;
use crate::vectorize_loop::lanes;

/// A loop of fewer vectors is not worth the parts.
const MIN_VECTORS: i64 = 2;
/// Vectors of parts: an addition takes four cycles on the processors of today, and one begins in each.
const MAX_PARTS: i64 = 4;

/// Sums along rows in vectors, one part of the sum in each lane.
#[pass(
    name = "tir.VectorizeReduction",
    opt_level = 2,
    phase = "target",
    requires = ["tir.FlattenBuffer"],
    before = ["tir.VectorizeLoop"],
    idempotent = true
)]
fn vectorize_reduction(
    func: PrimFunc,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<PrimFunc> {
    let nest = Nest::of(func.view());
    let lanes = lanes(options.lanes, cx);
    let may_reorder = options.reassociate && !cx.keeps_floats();
    let mut rw = func.edit();
    for (index, this) in nest.loops.iter().enumerate() {
        if this.kind == LoopKind::Serial
            && lanes > 1
            && let Some(steps) = Steps::of(nest.body, this.stmt)
            && steps.are_many(lanes)
            && let Some(sum) = Sum::of(&nest, index)
            && (may_reorder || sum.is_exact(nest.body))
        {
            let in_parts = sum.in_parts(&mut rw, this.stmt, steps, steps.width(lanes));
            rw.replace(this.stmt, in_parts);
        }
    }
    Ok(rw.finish()?.into())
}

/// How often a loop runs.
#[derive(Clone, Copy)]
enum Steps {
    Known(i64),
    Open(Dim),
}

impl Steps {
    fn of(body: BodyView<'_>, stmt: Expr) -> Option<Self> {
        let View::For { extent, .. } = body.view(stmt) else { return None };
        match body.view(extent) {
            View::Int(steps) => Some(Self::Known(steps)),
            View::Prim { dim } => Some(Self::Open(dim)),
            _ => None,
        }
    }

    /// Whether parts are worth it, as far as can be told.
    fn are_many(self, lanes: i64) -> bool {
        matches!(self, Self::Open(_))
            || matches!(self, Self::Known(steps) if steps >= lanes * MIN_VECTORS)
    }

    /// The number of parts: so many vectors that each is added to several times, and the rest has no whole vector.
    fn width(self, lanes: i64) -> i64 {
        let Self::Known(steps) = self else { return lanes };
        let is_good = |width: &i64| steps >= width * MIN_VECTORS && steps % width < lanes;
        let widths = [MAX_PARTS, MAX_PARTS / 2].map(|vectors| vectors * lanes);
        widths.into_iter().find(is_good).unwrap_or(lanes)
    }

    /// How often all parts are added to, how many steps that are, and how many are left where there may be any.
    fn cut(self, rw: &mut Rewriter, parts: i64) -> (Expr, Expr, Option<Expr>) {
        match self {
            Self::Known(steps) => {
                let (times, rest) = (steps / parts, steps % parts);
                let [whole, left] = [times * parts, rest].map(|count| rw.index(count));
                (rw.index(times), whole, (rest > 0).then_some(left))
            }
            Self::Open(steps) => {
                let [times, whole, left] = rw.with_cx(|cx| {
                    let times = cx.dim_floor_div(steps, cx.dim(parts));
                    let whole = cx.dim_mul(times, cx.dim(parts));
                    [times, whole, cx.dim_sum(&[(steps, 1), (whole, -1)])]
                });
                (rw.prim(times), rw.prim(whole), Some(rw.prim(left)))
            }
        }
    }
}

#[derive(Options)]
struct Options {
    /// parts of a sum; 0 for what the target's registers hold
    #[option(default = 0, min = 0, max = 1024)]
    lanes: i64,
    /// floats may be added in another order, where the target does not keep it
    #[option(default = true)]
    reassociate: bool,
}

/// `buffer[place] = buffer[place] op value` as the only statement of a loop.
struct Sum {
    op: BinaryOp,
    store: Expr,
    buffer: Expr,
    place: Expr,
    value: Expr,
}

impl Sum {
    fn of(nest: &Nest<'_>, index: usize) -> Option<Sum> {
        let (body, this) = (nest.body, &nest.loops[index]);
        let View::For { body: store, .. } = body.view(this.stmt) else { return None };
        let View::Store { buffer, value: sum, indices } = body.view(store) else { return None };
        let View::Binary { op, a, b } = body.view(sum) else { return None };
        let place =
            indices.get(0).filter(|&place| indices.len() == 1 && !nest.varies(index, place))?;
        let is_place = |index: Expr| match (body.view(index), body.view(place)) {
            (View::Int(a), View::Int(b)) => a == b,
            _ => index == place,
        };
        let is_old = |expr: Expr| match body.view(expr) {
            View::Load { buffer: from, indices } => {
                from == buffer && indices.len() == 1 && is_place(indices.at(0))
            }
            _ => false,
        };
        let (old, value) = if is_old(a) { (a, b) } else { (b, a) };
        let is_sum = matches!(op, BinaryOp::Add | BinaryOp::Max | BinaryOp::Min) && is_old(old);
        // The only read of the buffer is that of the sum, and the others are side by side or all one.
        let accesses = &nest.accesses[this.accesses.clone()];
        let own = accesses.iter().filter(|access| access.buffer == buffer).count();
        let are_near = accesses.iter().all(|access| {
            access.buffer == buffer || matches!(nest.stride(index, access), Some(0 | 1))
        });
        let is_scalar = body.scalar_ty(sum).is_some_and(|(_, lanes)| lanes == 1);
        let is_plain = is_sum && own == 2 && are_near && is_scalar;
        (is_plain && !nest.is_settled(index)).then_some(Sum { op, store, buffer, place, value })
    }

    /// Whether the order does not matter.
    fn is_exact(&self, body: BodyView<'_>) -> bool {
        let is_float = body.scalar_ty(self.value).is_none_or(|(dtype, _)| dtype.is_float());
        self.op != BinaryOp::Add || !is_float
    }

    fn in_parts(&self, rw: &mut Rewriter, stmt: Expr, steps: Steps, lanes: i64) -> Expr {
        let View::For { min, .. } = rw.view(stmt) else { return stmt };
        let var = bound_variable(rw.body(), stmt);
        let dtype = rw.body().scalar_ty(self.value).map_or(DType::F32, |(dtype, _)| dtype);
        let ty = rw.cx().static_tensor_type(dtype, &[lanes]);
        let parts = rw.buffer("part", ty, "local");
        let made = rw.alloc(parts);

        // For a maximum every part may start at the element itself: taking it again changes nothing.
        let lane = rw.scalar_var("l", DType::I64);
        let first = match self.op {
            BinaryOp::Add => rw.literal(dtype, 0.0),
            _ => rw.load(self.buffer, &[self.place]),
        };
        let set = rw.store(parts, first, &[lane]);
        let set = rw.for_range(lane, lanes, LoopKind::Vectorized, set);

        let (times, whole, rest) = steps.cut(rw, lanes);
        let (outer, lane) = (rw.rebuild(var, &[]), rw.scalar_var("l", DType::I64));
        let step = rw.scaled(outer, lanes, lane);
        let step = rw.add(step, min);
        let value = Template::of(rw.body(), self.value).copy(rw, &[(var, step)]);
        let old = rw.load(parts, &[lane]);
        let sum = rw.binary(self.op, old, value);
        let add = rw.store(parts, sum, &[lane]);
        let add = rw.for_range(lane, lanes, LoopKind::Vectorized, add);
        let zero = rw.index(0);
        let add = rw.for_loop(outer, zero, times, LoopKind::Serial, add, Attrs::NONE);

        let mut stmts = vec![made, set, add];
        let mut half = lanes / 2;
        while half > 0 {
            stmts.push(self.fold(rw, parts, half));
            half /= 2;
        }
        let (old, all) = (rw.load(self.buffer, &[self.place]), rw.load(parts, &[zero]));
        let sum = rw.binary(self.op, old, all);
        stmts.push(rw.store(self.buffer, sum, &[self.place]));
        if let Some(left) = rest {
            let rest = rw.rebuild(var, &[]);
            let step = rw.add(rest, whole);
            let step = rw.add(step, min);
            let single = Template::of(rw.body(), self.store).copy(rw, &[(var, step)]);
            stmts.push(rw.for_loop(rest, zero, left, LoopKind::Serial, single, Attrs::NONE));
        }
        rw.seq(&stmts)
    }

    /// The second `half` of the parts put onto the first.
    fn fold(&self, rw: &mut Rewriter, parts: Expr, half: i64) -> Expr {
        let (lane, far) = (rw.scalar_var("l", DType::I64), rw.index(half));
        let other = rw.add(lane, far);
        let (low, high) = (rw.load(parts, &[lane]), rw.load(parts, &[other]));
        let both = rw.binary(self.op, low, high);
        let set = rw.store(parts, both, &[lane]);
        rw.for_range(lane, half, LoopKind::Vectorized, set)
    }
}
