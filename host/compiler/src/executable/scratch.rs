//! The memory that kernels are lent: as much, behind the tensors of the workspace, as the one that needs most. Where nobody knows
//! before how much that is, the call takes it.

use std::ops::Range;

use crate::backend::Scratch;
use crate::ir::{BinaryOp, Context, Cx, Symbol};
use crate::plan::{Action, Bindings, Body, Callee, Circle, Code, Size, Sizes, Take};

/// Boundaries that regions begin on.
const ALIGN: u64 = 64;

/// What a kernel must be lent, in the symbols of its parameters.
#[derive(Debug, Default)]
pub(super) struct Lent {
    pub(super) scratch: Scratch,
    pub(super) symbols: Vec<Symbol>,
}

/// Makes the workspace of each body large enough for all its calls; `lent` has an entry for each of the kernels, `sizes` for
/// each body. What a function needs is known before those that call it; a function of a circle counts none of its circle, and
/// whoever calls into that brings what it needs as often as it may be in work at once.
pub(super) fn lend(cx: &Cx, code: &mut Code, sizes: &mut [Sizes], lent: &[Lent]) {
    let circles: Vec<Option<Circle>> = code.routines.iter().map(|it| it.circle).collect();
    let circle_of = |number: usize| circles.get(number).copied().flatten();
    let mut bodies: Vec<&mut Body> = code.bodies_mut().collect();
    let mut needed: Vec<Size> = Vec::with_capacity(sizes.len());
    for number in 0..bodies.len() {
        let (behind, rest) = sizes.split_at_mut(number);
        let (body, sizes_of_it) = (&mut *bodies[number], &mut rest[0]);
        let own = circle_of(number);
        let (mut most, mut slots) = (Size::Known(0), body.slots);
        for (callee, symbols, lent_here) in calls_of_mut(body) {
            let bytes = match callee {
                Callee::Kernel(kernel) => scratch(cx, sizes_of_it, &lent[kernel], symbols),
                Callee::Routine(routine) if own.is_some() && circle_of(routine) == own => continue,
                Callee::Routine(routine) => {
                    let steps = behind[routine].steps();
                    let bytes = sizes_of_it.of_call(steps, needed[routine], symbols);
                    sizes_of_it.most(bytes)
                }
            };
            if sizes_of_it.is_open(bytes) {
                *lent_here = Some(Take { slot: slots, bytes });
                slots += 1;
                continue;
            }
            most = sizes_of_it.binary(BinaryOp::Max, most, bytes);
        }
        body.slots = slots;
        body.scratch = body.workspace;
        body.workspace = sizes_of_it.binary(BinaryOp::Add, body.workspace, most);
        needed.push(body.workspace);
        if let Some(circle) = own.filter(|_| circle_of(number + 1) != own) {
            let members = circle.number..number + 1;
            let depth = Size::Known(circle.depth);
            let of_members = members.clone().map(|member| {
                let most = with_called(member, &members, bodies[member], sizes, &needed);
                sizes[member].binary(BinaryOp::Mul, depth, most)
            });
            let of_members: Vec<Size> = of_members.collect();
            needed[circle.number..].copy_from_slice(&of_members);
        }
    }
}

/// What a function of a circle needs, or another one of it that it calls, if that needs more.
fn with_called(
    member: usize,
    members: &Range<usize>,
    body: &Body,
    sizes: &mut [Sizes],
    needed: &[Size],
) -> Size {
    let mut most = needed[member];
    for (callee, symbols) in calls_of(body) {
        let Callee::Routine(called) = callee else { continue };
        if called == member || !members.contains(&called) {
            continue;
        }
        let steps = sizes[called].steps().to_vec();
        let bytes = sizes[member].of_call(&steps, needed[called], symbols);
        let bytes = sizes[member].most(bytes);
        most = sizes[member].binary(BinaryOp::Max, most, bytes);
    }
    most
}

/// What a body calls, and what it gives for the symbols of that.
fn calls_of(body: &Body) -> impl Iterator<Item = (Callee, &[Size])> {
    body.actions.iter().filter_map(|action| match action {
        Action::Call(call) => Some((call.callee, &call.symbols[..])),
        Action::Loop(it) => Some((Callee::Routine(it.routine), &it.symbols[..])),
        _ => None,
    })
}

/// The same, with what each call takes for what it is lent.
fn calls_of_mut(body: &mut Body) -> impl Iterator<Item = (Callee, &[Size], &mut Option<Take>)> {
    body.actions.iter_mut().filter_map(|action| match action {
        Action::Call(call) => Some((call.callee, &call.symbols[..], &mut call.lent)),
        Action::Loop(it) => Some((Callee::Routine(it.routine), &it.symbols[..], &mut it.lent)),
        _ => None,
    })
}

/// What a call lends to a kernel.
fn scratch(cx: &Cx, sizes: &mut Sizes, lent: &Lent, given: &[Size]) -> Size {
    let Lent { scratch, symbols } = lent;
    let bindings: Bindings = symbols.iter().copied().zip(given.iter().copied()).collect();
    let mut bytes = Size::Known(scratch.bytes as i64);
    for &region in &scratch.regions {
        // All symbols of a program stand for something, so that each region has a size.
        let region = sizes.dim(cx.terms(), region, &bindings).unwrap_or_default();
        let region = sizes.aligned(sizes.most(region), ALIGN);
        bytes = sizes.binary(BinaryOp::Add, bytes, region);
    }
    bytes
}
