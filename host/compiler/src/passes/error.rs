//! Why a run stopped.

use std::sync::Arc;

use thiserror::Error;

use super::instruments::Snapshot;
use super::plan::{PassStep, PlanError, Reason};
use crate::diagnostics::Diagnostic;
use crate::infer::{InferError, fits};
use crate::ir::{BodyView, Context, Expr, Function, Module, Symbol, Type, View};
use crate::registry::{LoadError, PassFailure};
use crate::text::point_at;

/// Why a run stopped. The module that was given is as it was.
#[derive(Debug, Error)]
pub enum PassError {
    /// A requirement is disabled.
    #[error("pass `{pass}` is disabled, but `{by}` requires it")]
    Disabled {
        /// The requirement.
        pass: String,
        /// The pass that requires it.
        by: String,
        /// The pass for which all of this is done, which cannot be left out.
        root: Box<PassStep>,
    },
    /// A module does not keep what a phase promises.
    #[error("the module {what} phase `{phase}`: {}", .diagnostic.message)]
    Phase {
        /// Whether it cannot enter it, or does not keep it.
        what: &'static str,
        /// The phase.
        phase: String,
        /// The step from which on this can be seen again.
        step: usize,
        /// The module before that step.
        module: Module,
        /// The place, the rule, and who was to establish it.
        diagnostic: Box<Diagnostic>,
    },
    /// A plugin cannot be used.
    #[error("pass `{pass}`: {error}")]
    Load {
        /// The pass.
        pass: String,
        /// Why.
        error: Arc<LoadError>,
    },
    /// A pass failed.
    #[error("pass `{pass}`{}: {}", in_function(.function), .failure.message)]
    Failed {
        /// The pass.
        pass: String,
        /// The function it worked on.
        function: Option<(String, Arc<Function>)>,
        /// How.
        failure: PassFailure,
    },
    /// A pass left something that has no type.
    #[error("pass `{pass}` left something wrong in function @{function}: {error}")]
    Untyped {
        /// The pass.
        pass: String,
        /// The function.
        function: String,
        /// The function as the pass left it.
        body: Arc<Function>,
        /// What is wrong.
        error: InferError,
    },
    /// What a pass found out of types shows that a call which stood in the module cannot be made.
    #[error("in function @{function}, as pass `{pass}` found out: {error}")]
    Refuted {
        /// The pass.
        pass: String,
        /// The function that the call stands in.
        function: String,
        /// The function as it was before the pass.
        body: Arc<Function>,
        /// The call in it.
        node: Expr,
        /// What is wrong.
        error: InferError,
    },
    /// The plan cannot run over this module.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The run was told to stop.
    #[error("stopped before pass `{pass}`")]
    Cancelled {
        /// The pass that would have come next.
        pass: String,
    },
    /// An error, and instruments that failed to be left behind it.
    #[error("{error}")]
    AndExits {
        /// The error.
        error: Box<PassError>,
        /// What the instruments have to say.
        exits: Vec<Diagnostic>,
    },
    /// An instrument failed when the context was entered or left.
    #[error("{when}: {}", .diagnostic.message)]
    Context {
        /// When.
        when: &'static str,
        /// What the instrument has to say.
        diagnostic: Box<Diagnostic>,
    },
    /// An instrument stopped the run.
    #[error("at pass `{pass}`: {}", .diagnostic.message)]
    Instrument {
        /// The pass.
        pass: String,
        /// What the instrument has to say.
        diagnostic: Box<Diagnostic>,
    },
}

impl PassError {
    /// The pass that it is about; none when the run did not begin or end.
    pub fn pass(&self) -> Option<&str> {
        match self {
            PassError::Context { .. }
            | PassError::Plan(_)
            | PassError::Phase { .. }
            | PassError::Cancelled { .. } => None,
            PassError::AndExits { error, .. } => error.pass(),
            PassError::Disabled { pass, .. }
            | PassError::Load { pass, .. }
            | PassError::Failed { pass, .. }
            | PassError::Untyped { pass, .. }
            | PassError::Refuted { pass, .. }
            | PassError::Instrument { pass, .. } => Some(pass),
        }
    }

    /// Whether the run stopped because it was told to.
    pub fn is_cancelled(&self) -> bool {
        match self {
            PassError::Cancelled { .. } => true,
            PassError::Failed { failure, .. } => failure.is_cancelled,
            PassError::AndExits { error, .. } => error.is_cancelled(),
            _ => false,
        }
    }

    /// Where the run stopped, when it is not a pass that was about to run.
    pub fn stopped_at(&self) -> Option<Snapshot> {
        match self {
            PassError::Phase { phase, step, module, .. } => Some(Snapshot {
                step: *step,
                pass: format!("phase-{phase}"),
                module: module.clone(),
            }),
            PassError::AndExits { error, .. } => error.stopped_at(),
            _ => None,
        }
    }

    /// Whether an instrument stopped it.
    pub fn is_of_instrument(&self) -> bool {
        match self {
            PassError::AndExits { error, .. } => error.is_of_instrument(),
            error => matches!(error, PassError::Instrument { .. }),
        }
    }

    /// The error as a person reads it, with the lines of the function around the node it is about.
    pub fn to_diagnostic(&self) -> Diagnostic {
        if let PassError::Plan(error) = self {
            return error.to_diagnostic();
        }
        if let PassError::AndExits { error, exits } = self {
            let note =
                |error: Diagnostic, exit: &Diagnostic| error.note(format!("then {}", exit.message));
            return exits.iter().fold(error.to_diagnostic(), note);
        }
        if let PassError::Disabled { root, .. } = self {
            let why = match root.reason {
                Reason::Listed(_) | Reason::Placed { .. } if root.pass.level() == 0 => {
                    "which is of level 0: code is not made without it"
                }
                _ => "which was asked for",
            };
            let note = format!("it is needed for `{}`, {why}", root.name);
            return Diagnostic::error(self.to_string()).note(note);
        }
        if let PassError::Instrument { diagnostic, .. }
        | PassError::Context { diagnostic, .. }
        | PassError::Phase { diagnostic, .. } = self
        {
            return Diagnostic { message: self.to_string(), ..(**diagnostic).clone() };
        }
        let mut diagnostic = Diagnostic::error(self.to_string());
        let (name, function, node, source) = match self {
            PassError::Failed { pass, function: Some((name, function)), failure } => {
                let Some(node) = failure.node else {
                    // A tensor program came from somewhere as a whole.
                    let from = Some(function).filter(|function| function.is_prim());
                    return match from.and_then(|program| program.source_text(Expr(0))) {
                        Some(from) => diagnostic.note(format!("from {from}")),
                        None => diagnostic,
                    };
                };
                match &failure.program {
                    Some(program) => (name, program, node, format!("@{name} in {pass}")),
                    None => (name, function, node, format!("@{name} before {pass}")),
                }
            }
            PassError::Untyped { pass, function: name, body, error } => {
                (name, body, error.node, format!("@{name} after {pass}"))
            }
            PassError::Refuted { pass, function: name, body, node, .. } => {
                (name, body, *node, format!("@{name} before {pass}"))
            }
            _ => return diagnostic,
        };
        if let Some(from) = function.source_text(node) {
            diagnostic = diagnostic.note(format!("from {from}"));
        }
        match point_at(source, name, function, node) {
            Some((source, place)) => diagnostic.in_source(&source).label(place, ""),
            None => diagnostic,
        }
    }

    /// What inference found wrong with a module that a pass left.
    pub(super) fn untyped(
        pass: &str,
        before: &Module,
        after: &Module,
        errors: Vec<(Symbol, InferError)>,
    ) -> Self {
        let (name, error) = errors.into_iter().next().expect("a failure has an error");
        let body = after.get(name).expect("an error is about a function of the module").clone();
        Self::untyped_function(pass, before, (name, body), error)
    }

    /// What inference found wrong with a function that a pass left. It is the pass's mistake, unless the very call
    /// stood in the module before it, with operands of which less was known.
    pub(super) fn untyped_function(
        pass: &str,
        before: &Module,
        (name, body): (Symbol, Arc<Function>),
        error: InferError,
    ) -> Self {
        let pass = pass.to_owned();
        let text = |name| before.cx().terms().str(name).to_owned();
        let Some((name, before, node)) = same_call(before, &body, error.node) else {
            return PassError::Untyped { pass, function: text(name), body, error };
        };
        PassError::Refuted { pass, function: text(name), body: before, node, error }
    }
}

/// The call of a module that `call` of a function is, with types that say more of its operands.
fn same_call(
    module: &Module,
    function: &Function,
    call: Expr,
) -> Option<(Symbol, Arc<Function>, Expr)> {
    let cx = module.cx();
    let body = function.view();
    let View::Call { callee, args, attrs } = body.view(call) else { return None };
    let (op, span) = (body.op_symbol(callee)?, body.raw_node(call).span);
    let says_more = |old: Option<Type>, new: Option<Type>| match (old, new) {
        (Some(old), Some(new)) => fits(cx, old, new, None),
        _ => true,
    };
    let is_same = |old: BodyView<'_>, expr: Expr| match old.view(expr) {
        View::Call { callee: other, args: others, attrs: theirs } => {
            let types = || others.iter().map(|arg| old.ty(arg));
            let known = || args.iter().map(|arg| body.ty(arg));
            old.op_symbol(other) == Some(op)
                && (theirs, others.len(), old.raw_node(expr).span) == (attrs, args.len(), span)
                && types().zip(known()).all(|(old, new)| says_more(old, new))
                && !types().eq(known())
        }
        _ => false,
    };
    module.iter().find_map(|(name, function)| {
        let old = function.view();
        let node = old.post_order().find(|&expr| is_same(old, expr))?;
        Some((name, function.clone(), node))
    })
}

fn in_function(function: &Option<(String, Arc<Function>)>) -> String {
    function.as_ref().map_or(String::new(), |(name, _)| format!(" in function @{name}"))
}
