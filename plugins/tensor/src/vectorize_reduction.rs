//! Sums along rows in vectors, one part of the sum in each lane.
//!
//! ```ir
//! for k in 0..150 {                        alloc part: f32[64]
//!   s[0] = s[0] + x[k]                     for l in 0..64 vectorized { part[l] = 0.0 }
//! }                                        for k in 0..2 {
//!                                  =>        for l in 0..64 vectorized {
//!                                              part[l] = part[l] + x[k*64 + l]
//!                                          for l in 0..16 vectorized { part[l] = part[l] + x[l + 128] }
//!                                          for l in 0..32 vectorized { part[l] = part[l] + part[l + 32] }
//!                                          …
//!                                          s[0] = s[0] + part[0]
//!                                          for k in 0..6 { s[0] = s[0] + x[k + 144] }
//! ```
//!
//! A loop that does nothing but add to one element, or take the maximum or the minimum, depends on
//! itself from step to step and has no vector code. With a part for each lane it has, and several vectors of parts are added to at
//! once where there are steps enough or as many as the call says, since each addition waits for the one before. Whole vectors that
//! are left go to the first parts, and elements behind them to the sum. The upper half of the parts is put onto the lower one
//! until one is left. For maxima and minima, and for integers, the result is the same; floats are
//! added in another order, which `reassociate=false` forbids.
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
            let in_parts = sum.in_parts(&mut rw, this.stmt, steps, lanes);
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

    /// The number of parts: so many vectors that each is added to several times. What is left are vectors, and then elements.
    fn width(self, lanes: i64) -> i64 {
        let Self::Known(steps) = self else { return MAX_PARTS * lanes };
        let widths = [MAX_PARTS, MAX_PARTS / 2].map(|vectors| vectors * lanes);
        widths.into_iter().find(|width| steps >= width * MIN_VECTORS).unwrap_or(lanes)
    }

    /// How many steps are in whole groups of so many.
    fn in_groups(self, rw: &mut Rewriter, of: i64) -> Self {
        match self {
            Self::Known(steps) => Self::Known(steps / of * of),
            Self::Open(steps) => Self::Open(rw.with_cx(|cx| {
                let times = cx.dim_floor_div(steps, cx.dim(of));
                cx.dim_mul(times, cx.dim(of))
            })),
        }
    }

    /// How many groups of so many these steps are beyond `first`; none where there are none.
    fn groups_behind(self, rw: &mut Rewriter, first: Self, of: i64) -> Option<Expr> {
        match (self, first) {
            (Self::Known(steps), Self::Known(first)) => {
                (steps > first).then(|| rw.index((steps - first) / of))
            }
            _ => {
                let [steps, first] = [self, first].map(|each| each.dim(rw));
                let count = rw.with_cx(|cx| {
                    let [steps, first] =
                        [steps, first].map(|each| cx.dim_floor_div(each, cx.dim(of)));
                    cx.dim_sum(&[(steps, 1), (first, -1)])
                });
                Some(rw.prim(count))
            }
        }
    }

    fn dim(self, rw: &mut Rewriter) -> Dim {
        match self {
            Self::Known(steps) => rw.with_cx(|cx| cx.dim(steps)),
            Self::Open(steps) => steps,
        }
    }

    fn expr(self, rw: &mut Rewriter) -> Expr {
        match self {
            Self::Known(steps) => rw.index(steps),
            Self::Open(steps) => rw.prim(steps),
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
        let looped = (bound_variable(rw.body(), stmt), min);
        let dtype = rw.body().scalar_ty(self.value).map_or(DType::F32, |(dtype, _)| dtype);
        let width = steps.width(lanes);
        let ty = rw.cx().static_tensor_type(dtype, &[width]);
        let parts = rw.buffer("part", ty, "local");
        let made = rw.alloc(parts);

        // For a maximum every part may start at the element itself: taking it again changes nothing.
        let lane = rw.scalar_var("l", DType::I64);
        let first = match self.op {
            BinaryOp::Add => rw.literal(dtype, 0.0),
            _ => rw.load(self.buffer, &[self.place]),
        };
        let set = rw.store(parts, first, &[lane]);
        let set = rw.for_range(lane, width, LoopKind::Vectorized, set);

        let mut stmts = vec![made, set];
        let mut done = Steps::Known(0);
        for size in [width, lanes].into_iter().take(if width == lanes { 1 } else { 2 }) {
            let whole = steps.in_groups(rw, size);
            if let Some(times) = whole.groups_behind(rw, done, size) {
                stmts.push(self.add_to_parts(rw, parts, looped, (done, times), size));
            }
            done = whole;
        }
        let mut half = width / 2;
        while half > 0 {
            stmts.push(self.fold(rw, parts, half));
            half /= 2;
        }
        let zero = rw.index(0);
        let (old, all) = (rw.load(self.buffer, &[self.place]), rw.load(parts, &[zero]));
        let sum = rw.binary(self.op, old, all);
        stmts.push(rw.store(self.buffer, sum, &[self.place]));
        if let Some(left) = steps.groups_behind(rw, done, 1) {
            let (var, min) = looped;
            let rest = rw.rebuild(var, &[]);
            let whole = done.expr(rw);
            let step = rw.add(rest, whole);
            let step = rw.add(step, min);
            let single = Template::of(rw.body(), self.store).copy(rw, &[(var, step)]);
            stmts.push(rw.for_loop(rest, zero, left, LoopKind::Serial, single, Attrs::NONE));
        }
        rw.seq(&stmts)
    }

    /// Adds `times` groups of `size` steps behind `done` to the first parts.
    fn add_to_parts(
        &self,
        rw: &mut Rewriter,
        parts: Expr,
        (var, min): (Expr, Expr),
        (done, times): (Steps, Expr),
        size: i64,
    ) -> Expr {
        let (outer, lane) = (rw.rebuild(var, &[]), rw.scalar_var("l", DType::I64));
        let step = rw.scaled(outer, size, lane);
        let done = done.expr(rw);
        let step = rw.add(step, done);
        let step = rw.add(step, min);
        let value = Template::of(rw.body(), self.value).copy(rw, &[(var, step)]);
        let old = rw.load(parts, &[lane]);
        let sum = rw.binary(self.op, old, value);
        let add = rw.store(parts, sum, &[lane]);
        let add = rw.for_range(lane, size, LoopKind::Vectorized, add);
        let zero = rw.index(0);
        rw.for_loop(outer, zero, times, LoopKind::Serial, add, Attrs::NONE)
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
