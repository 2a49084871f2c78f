//! Where a program's own buffers live: on the stack, or in memory that the caller lends.
//!
//! ```text
//! alloc acc: f32[28, 16] "local"        stack; LLVM makes registers of it
//! alloc padded: f32[64, 58, 58]         the caller's, at an offset known here
//! ```
//!
//! The caller lends one block for the whole call. A buffer lives until the end of its sequence, so
//! that buffers of different sequences share memory. Inside of a parallel loop there would have to
//! be one block a thread; there, buffers must be small enough for the stack.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::{
    access::BufferLayout,
    error::{Problem, Result},
};
use crate::ir::{BodyView, Expr, LoopKind, View};

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
}

/// The places of all buffers that a program makes.
#[derive(Clone, Debug, Default)]
pub(super) struct ScratchPlan {
    places: HashMap<Expr, Placement, FxBuildHasher>,
    /// How much the caller must lend.
    pub(super) bytes: u64,
}

impl ScratchPlan {
    pub(super) fn place(&self, buffer: Expr) -> Result<Placement> {
        let place = self.places.get(&buffer).copied();
        place.map_or_else(|| Problem::malformed("a buffer has no place"), Ok)
    }

    /// Places the buffers of the statement `root`.
    pub(super) fn of(body: BodyView<'_>, root: Expr) -> Result<ScratchPlan> {
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
                View::For { body: inner, kind, .. } => {
                    if kind == LoopKind::Parallel && stack.enter_task() {
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
                    let bytes = layout.bytes()?.next_multiple_of(ALIGN);
                    let place = if stack.takes(bytes) {
                        Placement::Stack
                    } else if stack.is_in_task() {
                        return too_large(&layout, bytes);
                    } else {
                        used += bytes;
                        plan.bytes = plan.bytes.max(used);
                        Placement::Scratch(used - bytes)
                    };
                    plan.places.insert(buffer, place);
                }
                // The others hold no statements.
                _ => {}
            }
        }
        Ok(plan)
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
    task: Option<u64>,
}

impl StackUse {
    fn is_in_task(&self) -> bool {
        self.task.is_some()
    }

    /// Whether a parallel loop is a task of its own: not when it stands in another.
    fn enter_task(&mut self) -> bool {
        let is_outermost = self.task.is_none();
        self.task.get_or_insert(0);
        is_outermost
    }

    fn leave_task(&mut self) {
        self.task = None;
    }

    fn takes(&mut self, bytes: u64) -> bool {
        let used = self.task.as_mut().unwrap_or(&mut self.outside);
        let fits = bytes <= STACK_BUFFER_BYTES && *used + bytes <= STACK_BYTES;
        if fits {
            *used += bytes;
        }
        fits
    }
}

fn too_large<T>(layout: &BufferLayout, bytes: u64) -> Result<T> {
    let name = &layout.name;
    Problem::unsupported(
        format!("buffer `{name}` of {bytes} bytes"),
        format!(
            "a buffer that is made inside of a parallel loop may have {STACK_BUFFER_BYTES} bytes; \
             use smaller tiles, or make it outside of the loop"
        ),
    )
}
