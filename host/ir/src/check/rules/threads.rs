//! A program that is bound to a device has one loop over each of its axes around what its threads do. What they share is made before
//! them, and where they wait they all come by: a barrier is evaluated for its effect, within loops over threads.

use crate::check::{Report, Rule, Subject};
use crate::{BARRIER, BOUND, Expr, LoopKind, View, Walk};

pub(super) const RULE: Rule = Rule {
    name: "threads",
    demands: "the axes of a bound program are around all that its threads do",
    since: None,
    until: None,
    check,
};

/// The axes that there are.
const AXES: [&str; 6] =
    ["blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z"];

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    let View::PrimFunc { body: root, .. } = body.view(body.root()) else { return };
    let attrs = body.terms().attrs(body.attrs(body.root()));
    let is_bound = attrs.bool(BOUND) == Some(true);
    let mut axes = Axes::default();
    for step in body.walk(root) {
        match step {
            Walk::Enter(stmt) => {
                if let Some(problem) = axes.enter(subject, stmt, is_bound) {
                    report.at(stmt, || problem);
                }
            }
            Walk::Leave(stmt) => axes.leave(subject, stmt),
        }
    }
    for expr in body.post_order().filter(|&expr| !matches!(body.view(expr), View::Evaluate { .. }))
    {
        if body.operands(expr).iter().any(|operand| is_barrier(subject, operand)) {
            report.at(expr, || format!("`{BARRIER}` has no value; it is evaluated for its effect"));
        }
    }
}

/// The loops over axes around a statement, outermost first.
#[derive(Default)]
struct Axes {
    open: Vec<(Expr, String)>,
}

impl Axes {
    /// What is wrong with a statement in its place.
    fn enter(&mut self, subject: &Subject<'_>, stmt: Expr, is_bound: bool) -> Option<String> {
        let is_thread = self.open.iter().any(|(_, axis)| axis.starts_with("threadIdx."));
        match subject.body.view(stmt) {
            View::For { kind: LoopKind::ThreadBound, thread, .. } if is_bound => {
                let axis = subject.str(thread).to_owned();
                let problem = self.wrong_axis(&axis, is_thread);
                self.open.push((stmt, axis));
                problem
            }
            View::Alloc { buffer } if is_bound && is_thread => {
                let View::Buffer { scope, .. } = subject.body.view(buffer) else { return None };
                (subject.str(scope) == "shared").then(|| {
                    format!("{} is shared, and each thread makes it", subject.name_of(buffer))
                })
            }
            View::Evaluate { value } if is_barrier(subject, value) => {
                let has_args = !subject.body.operands(value).is_empty();
                match (is_bound, is_thread) {
                    _ if has_args => Some(format!("`{BARRIER}` takes no arguments")),
                    (true, true) => None,
                    (false, _) => {
                        Some("a barrier stands in a program that is not bound".to_owned())
                    }
                    (true, false) => {
                        Some("a barrier stands outside of loops over threads".to_owned())
                    }
                }
            }
            _ => None,
        }
    }

    fn wrong_axis(&self, axis: &str, is_thread: bool) -> Option<String> {
        if !AXES.contains(&axis) {
            return Some(format!("there is no axis `{axis}`; there are {}", AXES.join(", ")));
        }
        if self.open.iter().any(|(_, other)| other == axis) {
            return Some(format!("a loop over `{axis}` is around it already"));
        }
        (is_thread && axis.starts_with("blockIdx."))
            .then(|| format!("a loop over threads is around `{axis}`"))
    }

    fn leave(&mut self, subject: &Subject<'_>, stmt: Expr) {
        if matches!(subject.body.view(stmt), View::For { .. })
            && self.open.last().is_some_and(|(last, _)| *last == stmt)
        {
            self.open.pop();
        }
    }
}

fn is_barrier(subject: &Subject<'_>, expr: Expr) -> bool {
    matches!(subject.body.view(expr), View::Intrinsic { name, .. } if subject.str(name) == BARRIER)
}
