//! Where a program's own buffers live: on the stack, or in memory that the caller lends.
//!
//! ```text
//! alloc acc: f32[28, 16] "local"        stack; LLVM makes registers of it
//! alloc padded: f32[64, 58, 58]         the caller's, at an offset known here
//! alloc row: f32[n, m]                  the caller's, in a region whose size is known when it calls
//! parallel i in 0..n { alloc row: f32[m] … }     a region of n rows
//! ```
//!
//! The caller lends one block for the whole call: what has an offset that is known comes first, then the regions, in
//! their order, each on a boundary of [`ALIGN`]. A buffer of known size lives until the end of its sequence, so that
//! buffers of different sequences share memory. Inside of a parallel loop a region has as many places as the loop has
//! steps. A thread does its steps one after the other, and all of them in the place of its first one: no two threads
//! begin at the same step, and only the places that are used become memory.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::{
    access::{BufferLayout, Extent},
    error::{Problem, Result},
    value::Class,
};
use crate::backend::Scratch;
use tenon_ir::{BodyView, Context, Cx, Dim, Expr, LoopKind, View};

/// The largest buffer that goes on the stack.
const STACK_BUFFER_BYTES: u64 = 64 << 10;

/// The most that one function puts on the stack; threads have two megabytes as a rule.
const STACK_BYTES: u64 = 512 << 10;

/// Where buffers begin: a cache line, and the widest vector.
pub(crate) const ALIGN: u64 = 64;

/// The place of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Placement {
    Stack,
    /// So many bytes behind the start of what the caller lends.
    Scratch(u64),
    /// A region of its own.
    Region(usize),
    /// A region with a place for each step of a parallel loop, so many bytes apart.
    Piece {
        region: usize,
        stride: Dim,
    },
}

/// The places of all buffers that a program makes.
#[derive(Clone, Debug, Default)]
pub(super) struct ScratchPlan {
    places: HashMap<Expr, Placement, FxBuildHasher>,
    /// What the caller must lend.
    pub(super) lent: Scratch,
}

impl ScratchPlan {
    pub(super) fn place(&self, buffer: Expr) -> Result<Placement> {
        let place = self.places.get(&buffer).copied();
        place.map_or_else(|| Problem::malformed("a buffer has no place"), Ok)
    }

    /// Places the buffers of the statement `root`.
    pub(super) fn of(cx: &Cx, body: BodyView<'_>, root: Expr) -> Result<ScratchPlan> {
        let mut plan = ScratchPlan::default();
        let mut used = 0u64;
        let mut stack = StackUse::default();
        let mut steps = vec![Step::Enter(root)];
        while let Some(step) = steps.pop() {
            let expr = match step {
                Step::Enter(expr) => expr,
                Step::Release(bytes) => {
                    used = bytes;
                    continue;
                }
                Step::LeaveTask => {
                    stack.leave_task();
                    continue;
                }
            };
            match body.view(expr) {
                View::Seq(stmts) => {
                    steps.push(Step::Release(used));
                    steps.extend(stmts.iter().rev().map(Step::Enter));
                }
                View::For { body: inner, kind, extent, .. } => {
                    if kind == LoopKind::Parallel && stack.enter_task(extent) {
                        steps.push(Step::LeaveTask);
                    }
                    steps.push(Step::Enter(inner));
                }
                View::Block(block) => {
                    steps.push(Step::Enter(block.body));
                    steps.extend(block.init.map(Step::Enter));
                }
                View::IfStmt { then, otherwise, .. } => {
                    steps.extend(otherwise.map(Step::Enter));
                    steps.push(Step::Enter(then));
                }
                View::Alloc { buffer } => {
                    let layout = BufferLayout::of(body, buffer)?;
                    let known = layout.is_static().then(|| layout.bytes()).transpose()?;
                    let known = known.map(|bytes| bytes.next_multiple_of(ALIGN));
                    let place = match (known, stack.task) {
                        (Some(bytes), _) if stack.takes(bytes) => Placement::Stack,
                        (_, Some(task)) => {
                            let times = extent_of(cx, body, &layout, task.extent)?;
                            plan.piece(cx, &layout, times)?
                        }
                        (Some(bytes), None) => {
                            used += bytes;
                            plan.lent.bytes = plan.lent.bytes.max(used);
                            Placement::Scratch(used - bytes)
                        }
                        (None, None) => {
                            let bytes = bytes_of(cx, &layout)?;
                            plan.region(bytes)
                        }
                    };
                    plan.places.insert(buffer, place);
                }
                // The others hold no statements.
                _ => {}
            }
        }
        Ok(plan)
    }

    fn region(&mut self, bytes: Dim) -> Placement {
        self.lent.regions.push(bytes);
        Placement::Region(self.lent.regions.len() - 1)
    }

    /// A region of `times` places.
    fn piece(&mut self, cx: &Cx, layout: &BufferLayout, times: Dim) -> Result<Placement> {
        let bytes = bytes_of(cx, layout)?;
        let align = ALIGN as i64;
        let above = cx.dim_add(bytes, cx.dim(align - 1));
        let stride = cx.dim_mul(cx.dim_floor_div(above, cx.dim(align)), cx.dim(align));
        self.lent.regions.push(cx.dim_mul(stride, times));
        Ok(Placement::Piece { region: self.lent.regions.len() - 1, stride })
    }
}

/// The bytes of a buffer.
fn bytes_of(cx: &Cx, layout: &BufferLayout) -> Result<Dim> {
    let unit = cx.dim(i64::from(Class::of(layout.dtype)?.bytes()));
    let dim = |extent: &Extent| match *extent {
        Extent::Known(extent) => cx.dim(extent),
        Extent::Symbolic(dim) => dim,
    };
    let factors: Vec<Dim> = layout.shape.iter().map(dim).chain([unit]).collect();
    Ok(cx.dim_product(&factors))
}

/// The steps of the parallel loop that the buffer of `layout` is made in.
fn extent_of(cx: &Cx, body: BodyView<'_>, layout: &BufferLayout, extent: Expr) -> Result<Dim> {
    match body.view(extent) {
        View::Int(value) => Ok(cx.dim(value)),
        View::Prim { dim } => Ok(dim),
        _ => Problem::unsupported(
            format!("buffer `{}`", layout.name),
            "it is made inside of a parallel loop whose number of steps is not known when the \
             program is called; make it outside of the loop",
        ),
    }
}

enum Step {
    Enter(Expr),
    /// The end of a sequence: what it used is free again.
    Release(u64),
    LeaveTask,
}

/// Bytes on the stack of the function, and of the body of the parallel loop that is being walked.
#[derive(Default)]
struct StackUse {
    outside: u64,
    task: Option<TaskUse>,
}

#[derive(Clone, Copy)]
struct TaskUse {
    /// The steps of the loop.
    extent: Expr,
    used: u64,
}

impl StackUse {
    /// Whether a parallel loop is a task of its own: not when it stands in another.
    fn enter_task(&mut self, extent: Expr) -> bool {
        let is_outermost = self.task.is_none();
        self.task.get_or_insert(TaskUse { extent, used: 0 });
        is_outermost
    }

    fn leave_task(&mut self) {
        self.task = None;
    }

    fn takes(&mut self, bytes: u64) -> bool {
        let used = self.task.as_mut().map_or(&mut self.outside, |task| &mut task.used);
        let fits = bytes <= STACK_BUFFER_BYTES && *used + bytes <= STACK_BYTES;
        if fits {
            *used += bytes;
        }
        fits
    }
}
