//! Passes as values: from the registry, from closures, and made of other passes.
//!
//! ```text
//! Pass::get(&registry, "acme.Fuse{depth=8}")     a plugin's, by name or alias, with options
//! Pass::function("twice", |func, module, run| …)   a closure over each graph function
//! Pass::sequential([a, b, c])                      one after the other
//! ```
//!
//! A value is cheap to clone and may be sent to threads. What runs is the plan of it, which is flat: nesting
//! costs nothing but two steps.

use std::fmt;
use std::mem;
use std::sync::Arc;

use tenon_plugin_api::abi::guard::guard;

use super::options::Given;
use crate::border::{PassFailure, Run};
use crate::ir::{Function, Module};
use crate::registry::{PassId, PassKind, PassRecord};

/// A pass.
#[derive(Clone)]
pub struct Pass(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    name: String,
    opt_level: u8,
    /// How much results may differ, as a part of a number.
    tolerance: Option<f64>,
    required: Vec<Required>,
    body: Body,
}

/// What a pass does.
#[derive(Clone)]
pub(super) enum Body {
    Plugin { id: PassId, given: Vec<Given> },
    Module(Arc<ModuleBody>),
    Function(PassKind, Arc<FunctionBody>),
    Group(GroupKind, Vec<Pass>),
}

type ModuleBody = dyn Fn(&Module, &Run) -> Result<Module, PassFailure> + Send + Sync;
type FunctionBody =
    dyn Fn(&Arc<Function>, &Module, &Run) -> Result<Arc<Function>, PassFailure> + Send + Sync;

/// How the passes of a group are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// Each over the module, one after the other.
    Sequence,
    /// The same, and each of them runs when the group does: levels and lists are asked for the group alone.
    Composite,
    /// Each function goes through all of them before the module is put together again. Each pass sees the
    /// other functions as they were before the group.
    Functions,
    /// One after the other, again and again, until a round changes nothing or `max` rounds have run.
    Fixpoint {
        /// The most rounds.
        max: u32,
    },
}

impl GroupKind {
    /// The rounds of a fixpoint that says nothing of them.
    pub const ROUNDS: u32 = 10;

    /// How a pipeline's text calls it, and instruments and lists of names where it has no name of its own.
    pub fn name(self) -> &'static str {
        match self {
            GroupKind::Sequence => "sequential",
            GroupKind::Composite => "composite",
            GroupKind::Functions => "func",
            GroupKind::Fixpoint { .. } => "fixpoint",
        }
    }
}

/// A pass that another one needs.
#[derive(Clone)]
pub(super) enum Required {
    Name(String),
    Value(Pass),
}

impl Pass {
    fn new(name: impl Into<String>, body: Body) -> Self {
        let (name, required) = (name.into(), Vec::new());
        Self(Arc::new(Inner { name, opt_level: 0, tolerance: None, required, body }))
    }

    pub(super) fn plugin(record: &PassRecord, id: PassId, given: Vec<Given>) -> Self {
        let mut pass =
            Self::new(&record.name, Body::Plugin { id, given }).opt_level(record.opt_level);
        Arc::make_mut(&mut pass.0).tolerance = record.tolerance;
        pass
    }

    /// A pass over the module, which may add and remove functions.
    pub fn module(
        name: impl Into<String>,
        body: impl Fn(&Module, &Run) -> Result<Module, PassFailure> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, Body::Module(Arc::new(body)))
    }

    /// A pass over each graph function. It sees the module as it was before the pass.
    pub fn function(
        name: impl Into<String>,
        body: impl Fn(&Arc<Function>, &Module, &Run) -> Result<Arc<Function>, PassFailure>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self::new(name, Body::Function(PassKind::Function, Arc::new(body)))
    }

    /// A pass over each tensor program. It sees the module as it was before the pass.
    pub fn prim(
        name: impl Into<String>,
        body: impl Fn(&Arc<Function>, &Module, &Run) -> Result<Arc<Function>, PassFailure>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self::new(name, Body::Function(PassKind::Prim, Arc::new(body)))
    }

    /// Passes one after the other. It is called `sequential`, and has level 0.
    pub fn sequential(passes: impl IntoIterator<Item = Pass>) -> Self {
        Self::group(GroupKind::Sequence, passes)
    }

    /// One pass that is made of others: whether it runs is asked for it alone.
    pub fn composite(name: impl Into<String>, passes: impl IntoIterator<Item = Pass>) -> Self {
        Self::group(GroupKind::Composite, passes).named(name)
    }

    /// Passes that are run as `kind` says.
    pub fn group(kind: GroupKind, passes: impl IntoIterator<Item = Pass>) -> Self {
        Self::new(kind.name(), Body::Group(kind, passes.into_iter().collect()))
    }

    /// The same pass under another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).name = name.into();
        self
    }

    /// The same pass with another level: it runs in a context of that level or a higher one.
    #[must_use]
    pub fn opt_level(mut self, level: u8) -> Self {
        Arc::make_mut(&mut self.0).opt_level = level;
        self
    }

    /// The same pass, which also needs the pass of this name.
    #[must_use]
    pub fn requires_name(mut self, name: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).required.push(Required::Name(name.into()));
        self
    }

    /// The same pass, which also needs another one.
    #[must_use]
    pub fn requires(mut self, pass: Pass) -> Self {
        Arc::make_mut(&mut self.0).required.push(Required::Value(pass));
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its level.
    pub fn level(&self) -> u8 {
        self.0.opt_level
    }

    /// How much results may differ because it computes in fewer bits, as a part of a number.
    pub fn tolerance(&self) -> Option<f64> {
        self.0.tolerance
    }

    /// The registry's number of it, where it is a plugin's.
    pub fn id(&self) -> Option<PassId> {
        match self.0.body {
            Body::Plugin { id, .. } => Some(id),
            _ => None,
        }
    }

    /// The options that it is given, as they tell one run of a plugin's pass from another; empty for none.
    pub(super) fn given_text(&self) -> String {
        let Body::Plugin { given, .. } = &self.0.body else { return String::new() };
        given.iter().map(|it| format!("{}={};", it.name.value, it.value.value)).collect()
    }

    /// How its passes are run, where it is made of others.
    pub fn group_kind(&self) -> Option<GroupKind> {
        match self.0.body {
            Body::Group(kind, _) => Some(kind),
            _ => None,
        }
    }

    /// The same group with other rounds, for a fixpoint that says so behind its passes.
    pub(super) fn set_kind(&mut self, new: GroupKind) {
        if let Body::Group(kind, _) = &mut Arc::make_mut(&mut self.0).body {
            *kind = new;
        }
    }

    pub(super) fn required(&self) -> &[Required] {
        &self.0.required
    }

    pub(super) fn body(&self) -> &Body {
        &self.0.body
    }

    /// What tells it from others: its place in memory.
    pub(super) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// Runs a closure; a panic is a failure with its place, and what comes back must be of this run.
pub(super) fn run_own<T>(
    body: impl FnOnce() -> Result<T, PassFailure>,
    is_of_this_run: impl FnOnce(&T) -> bool,
) -> Result<T, PassFailure> {
    match guard(body) {
        Ok(Ok(unit)) if !is_of_this_run(&unit) => {
            Err(PassFailure::error("the pass returned what belongs to another run's terms"))
        }
        Ok(result) => result,
        Err(panic) => Err(PassFailure { is_panic: true, ..PassFailure::error(panic) }),
    }
}

/// A nested group is taken apart in a loop, however deep it is.
impl Drop for Inner {
    fn drop(&mut self) {
        let mut rest = Vec::new();
        take_parts(self, &mut rest);
        while let Some(Pass(inner)) = rest.pop() {
            if let Some(mut inner) = Arc::into_inner(inner) {
                take_parts(&mut inner, &mut rest);
            }
        }
    }
}

fn take_parts(inner: &mut Inner, rest: &mut Vec<Pass>) {
    if let Body::Group(_, passes) = &mut inner.body {
        rest.append(passes);
    }
    rest.extend(mem::take(&mut inner.required).into_iter().filter_map(|required| match required {
        Required::Value(pass) => Some(pass),
        Required::Name(_) => None,
    }));
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("name", &self.0.name).finish_non_exhaustive()
    }
}

/// Its name, and its level.
impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (level {})", self.0.name, self.0.opt_level)
    }
}
