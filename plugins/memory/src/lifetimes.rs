//! When the memory of each value is alive.
//!
//! One sweep over the bindings from the last to the first. The time of a node is that of the last binding
//! that may touch what it stands for; since users come later, it is final when the sweep reaches the binding
//! that makes it. An alias passes its time on to what it is made of, and a choice to what its branches give.

use tenon_plugin_api::ir::LetView;
use tenon_plugin_api::prelude::*;

/// Memory that a binding makes.
pub(crate) struct Made {
    /// The number of the binding.
    pub(crate) birth: usize,
    /// The number of the last binding that may touch it; `None` when that is after the function, or out of its
    /// sight.
    pub(crate) death: Option<usize>,
}

/// What a binding does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Role {
    /// Whether it makes memory.
    pub(crate) makes: bool,
    /// What it does with its operands.
    pub(crate) operands: Operands,
}

/// What a binding does with its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    /// Touches them now.
    Use,
    /// Stands for them, or for parts of them.
    Alias,
    /// Chooses by the first one between what the others are, branches, and stands for what these give.
    Choice,
    /// Touches now, or stands for, anything that is named inside.
    AliasAll,
    /// Anything else: they may be touched at any time.
    Escape,
}

impl Role {
    pub(crate) const fn new(makes: bool, operands: Operands) -> Self {
        Self { makes, operands }
    }
}

const FOREVER: u32 = u32::MAX;

/// The memory that the bindings of `block` make, in their order. `role` tells what the value of a binding does.
pub(crate) fn lifetimes(
    body: BodyView<'_>,
    block: Expr,
    role: impl FnMut(Expr) -> Role,
) -> Vec<Made> {
    let mut sweep = Sweep::new(body, role);
    sweep.run(block);
    sweep.found.pop().map(|(_, made)| made).unwrap_or_default()
}

/// The same of every `let` of a function: those of its branches as well, and of functions within it.
pub(crate) fn all_lifetimes(
    body: BodyView<'_>,
    role: impl FnMut(Expr) -> Role,
) -> Vec<(Expr, Vec<Made>)> {
    let lets: Vec<Expr> = body.post_order().filter(|&expr| body.kind(expr) == Kind::LET).collect();
    let mut is_branch = SideTable::new(body, false);
    for &expr in &lets {
        let View::Let(bindings) = body.view(expr) else { continue };
        for (_, value) in bindings.bindings() {
            branches(body, value).into_iter().flatten().for_each(|branch| is_branch[branch] = true);
        }
    }
    let mut sweep = Sweep::new(body, role);
    lets.into_iter().filter(|&expr| !is_branch[expr]).for_each(|root| sweep.run(root));
    sweep.found
}

/// The branches of a choice.
fn branches(body: BodyView<'_>, value: Expr) -> Option<[Expr; 2]> {
    match body.view(value) {
        View::If { then, otherwise, .. } => Some([then, otherwise]),
        _ => None,
    }
}

/// One walk from the last binding to the first. A choice comes before what stands in its branches, so its time is
/// later than theirs and earlier than that of the bindings behind it: no other order of times is needed to tell in which
/// binding of an outer `let` something was touched.
struct Sweep<'a, R> {
    body: BodyView<'a>,
    role: R,
    /// For each node the last time at which it may be touched; 0 for none.
    last: SideTable<u32>,
    /// The time of the binding that comes next.
    now: u32,
    /// Nodes to be noted; empty between two calls.
    work: Vec<Expr>,
    /// What was found of each `let`, those in branches before what they are in.
    found: Vec<(Expr, Vec<Made>)>,
}

/// A `let` that the walk is in.
struct Frame<'a> {
    block: Expr,
    bindings: LetView<'a>,
    /// The times of the bindings that were seen, the last one first.
    times: Vec<u32>,
    /// What they make, the last one first.
    made: Vec<Made>,
}

impl Frame<'_> {
    /// The number of the binding in which something is touched at `time`; `None` behind the last of them.
    fn binding_at(&self, time: u32) -> Option<usize> {
        let reached = self.times.partition_point(|&own| own >= time);
        Some(self.bindings.len() - reached).filter(|_| reached > 0)
    }
}

impl<'a, R: FnMut(Expr) -> Role> Sweep<'a, R> {
    fn new(body: BodyView<'a>, role: R) -> Self {
        let last = SideTable::new(body, 0);
        Self { body, role, last, now: FOREVER - 1, work: Vec::new(), found: Vec::new() }
    }

    /// Walks a `let` that is no branch, and those in its branches.
    fn run(&mut self, root: Expr) {
        let mut frames: Vec<Frame<'a>> = self.enter(root, FOREVER).into_iter().collect();
        while let Some(frame) = frames.last_mut() {
            let birth = frame.bindings.len() - frame.times.len();
            let Some(birth) = birth.checked_sub(1) else {
                let Frame { block, mut made, .. } =
                    frames.pop().expect("the frame that was looked at");
                made.reverse();
                self.found.push((block, made));
                continue;
            };
            let (var, value) = frame.bindings.binding(birth);
            frame.times.push(self.now);
            let death = self.last[var].max(self.now);
            let role = (self.role)(value);
            if role.makes {
                frame.made.push(Made { birth, death: frame.binding_at(death) });
            }
            self.visit(value, role.operands, death);
            self.now -= 1;
            if role.operands == Operands::Choice {
                for branch in branches(self.body, value).into_iter().flatten() {
                    frames.extend(self.enter(branch, death));
                }
            }
        }
    }

    /// What a branch or a function gives may be touched at `death`.
    fn enter(&mut self, block: Expr, death: u32) -> Option<Frame<'a>> {
        let View::Let(bindings) = self.body.view(block) else {
            self.touch_all(block, death);
            return None;
        };
        self.touch(bindings.result(), death);
        let times = Vec::with_capacity(bindings.len());
        Some(Frame { block, bindings, times, made: Vec::new() })
    }

    /// Notes what the value of a binding touches, whose result may be touched until `death`.
    fn visit(&mut self, value: Expr, operands: Operands, death: u32) {
        let (body, now) = (self.body, self.now);
        match operands {
            Operands::Use => body.operands(value).iter().for_each(|arg| self.touch(arg, now)),
            Operands::Alias if body.kind(value) == Kind::VAR => self.touch(value, death),
            Operands::Alias => body.operands(value).iter().for_each(|arg| self.touch(arg, death)),
            Operands::Choice => {
                body.operands(value).iter().take(1).for_each(|arg| self.touch(arg, now));
            }
            Operands::AliasAll => self.touch_all(value, death),
            Operands::Escape => self.touch_all(value, FOREVER),
        }
    }

    /// Notes that what `expr` stands for may be touched at `time`.
    fn touch(&mut self, expr: Expr, time: u32) {
        self.note(expr, time, |kind| kind == Kind::TUPLE);
    }

    /// Notes that whatever is named inside of `expr` may be touched at `time`.
    fn touch_all(&mut self, expr: Expr, time: u32) {
        self.note(expr, time, |_| true);
    }

    fn note(&mut self, expr: Expr, time: u32, enters: impl Fn(Kind) -> bool) {
        self.work.push(expr);
        while let Some(expr) = self.work.pop() {
            if self.last[expr] >= time {
                continue;
            }
            self.last[expr] = time;
            if enters(self.body.kind(expr)) {
                self.work.extend(self.body.operands(expr).iter());
            }
        }
    }
}

/// The bytes of a value: of a tensor, or of the tensors in a tuple. `None` when they are not known.
pub(crate) fn bytes_of(body: BodyView<'_>, expr: Expr) -> Option<u64> {
    let terms = body.terms();
    let mut pending = vec![body.ty(expr)?];
    let mut bytes = 0u64;
    while let Some(ty) = pending.pop() {
        if let TypeView::Tuple(fields) = terms.ty(ty) {
            pending.extend(fields);
            continue;
        }
        let (dtype, shape) = terms.static_tensor(ty)?;
        let count = shape
            .iter()
            .try_fold(1u64, |count, &extent| count.checked_mul(u64::try_from(extent).ok()?))?;
        bytes = bytes.checked_add(dtype.bytes(count)?)?;
    }
    Some(bytes)
}

/// The bytes of a tensor of known rank of which a dimension is a symbol; elements below a byte share it.
pub(crate) fn symbolic_bytes(ty: Type, cx: &PassContext) -> Option<Dim> {
    let (dtype, dims) = cx.terms().tensor(ty)?;
    dims.iter().find(|&&dim| cx.terms().dim_value(dim).is_none())?;
    let count = cx.dim_product(dims);
    let bits = cx.dim_mul(count, cx.dim(dtype.bits() as i64));
    match dtype.bits() % 8 {
        0 => Some(cx.dim_mul(count, cx.dim(dtype.bits() as i64 / 8))),
        _ => Some(cx.dim_floor_div(cx.dim_add(bits, cx.dim(7)), cx.dim(8))),
    }
}
