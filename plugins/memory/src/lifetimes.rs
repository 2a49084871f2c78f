//! When the memory of each value is alive.
//!
//! One sweep over the bindings from the last to the first. The time of a node is that of the last binding
//! that may touch what it stands for; since users come later, it is final when the sweep reaches the binding
//! that makes it. An alias passes its time on to what it is made of.

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

struct Lifetimes<'a> {
    body: BodyView<'a>,
    /// For each node one more than the last binding that may touch it; 0 for none.
    last: SideTable<u32>,
    /// Nodes to be noted; empty between two calls.
    work: Vec<Expr>,
}

/// The memory that bindings make, in their order. `role` tells what the value of a binding does.
pub(crate) fn lifetimes(
    body: BodyView<'_>,
    bindings: LetView<'_>,
    mut role: impl FnMut(Expr) -> Role,
) -> Vec<Made> {
    let mut lifetimes = Lifetimes { body, last: SideTable::new(body, 0), work: Vec::new() };
    let mut made = Vec::new();
    lifetimes.touch(bindings.result(), FOREVER);
    for (birth, (var, value)) in bindings.bindings().enumerate().rev() {
        let now = birth as u32 + 1;
        let death = lifetimes.last[var].max(now);
        let role = role(value);
        if role.makes {
            let death = (death != FOREVER).then_some(death as usize - 1);
            made.push(Made { birth, death });
        }
        match role.operands {
            Operands::Use => {
                body.operands(value).iter().for_each(|arg| lifetimes.touch(arg, now));
            }
            Operands::Alias if body.kind(value) == Kind::VAR => lifetimes.touch(value, death),
            Operands::Alias => {
                body.operands(value).iter().for_each(|arg| lifetimes.touch(arg, death));
            }
            Operands::AliasAll => lifetimes.touch_all(value, death),
            Operands::Escape => lifetimes.touch_all(value, FOREVER),
        }
    }
    made.reverse();
    made
}

impl Lifetimes<'_> {
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
