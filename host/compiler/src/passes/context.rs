//! The context of runs of the pass manager: an explicit value, and for those who want it a scope.
//!
//! ```text
//! run(&registry, &plan, &module, &mut cx)?          a run enters the context and leaves it
//! cx.scope(|cx| { cx.run(…)?; cx.run(…) })?          several runs between one entering and one leaving
//! ```
//!
//! Within a scope, and within a run, [`PassContext::current`] tells the settings. A scope within a scope
//! inherits nothing; [`PassContext::derive`] makes a context like another.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::error::PassError;
use super::instrument::Instrument;
use super::manager;
use super::plan::Plan;
use super::settings::Settings;
use crate::border::Report;
use crate::diagnostics::Diagnostic;
use crate::ir::{Attrs, Module};
use crate::registry::Registry;
use crate::tune::Measuring;

/// How passes are run: an explicit value that may be sent to threads.
pub struct PassContext {
    /// Passes of a higher level do not run.
    pub opt_level: u8,
    /// Passes that do not run, by name or alias; this wins over everything.
    pub disabled: Vec<String>,
    /// Passes that run whatever their level, by name or alias.
    pub required: Vec<String>,
    /// Values of options.
    pub settings: Settings,
    /// The target's description, as passes read it.
    pub target: Attrs,
    /// Set to make the run stop.
    pub cancelled: Arc<AtomicBool>,
    /// Who measures schedules for passes that ask for it.
    pub measuring: Arc<Measuring>,
    /// After so many edits the host refuses them, to see what a pass does then.
    pub edit_limit: Option<u32>,
    /// What watches, in order.
    pub instruments: Vec<Box<dyn Instrument>>,
    /// What the passes reported, with their names.
    pub reports: Vec<(String, Report)>,
}

impl Default for PassContext {
    fn default() -> Self {
        Self {
            opt_level: 2,
            disabled: Vec::new(),
            required: Vec::new(),
            settings: Settings::default(),
            target: Attrs::NONE,
            cancelled: Arc::default(),
            measuring: Arc::default(),
            edit_limit: None,
            instruments: Vec::new(),
            reports: Vec::new(),
        }
    }
}

thread_local! {
    /// The contexts whose scopes this thread is in, the innermost last.
    static CURRENT: RefCell<Vec<Rc<PassContext>>> = const { RefCell::new(Vec::new()) };
}

impl PassContext {
    /// A context like that of the innermost scope of this thread, as it was entered; the default one outside of
    /// scopes. Other threads see nothing of it: a context is sent to them as a value.
    pub fn current() -> Self {
        CURRENT.with_borrow(|open| open.last().map_or_else(Self::default, |cx| cx.derive()))
    }

    /// A context with the same settings and the same flag to cancel it, without instruments and reports.
    pub fn derive(&self) -> Self {
        Self {
            opt_level: self.opt_level,
            disabled: self.disabled.clone(),
            required: self.required.clone(),
            settings: self.settings.clone(),
            target: self.target,
            cancelled: self.cancelled.clone(),
            measuring: self.measuring.clone(),
            ..Self::default()
        }
    }

    /// Enters the context, calls `body`, and leaves it, whatever happens in between.
    ///
    /// # Errors
    /// The body's, or that of an instrument that fails to be entered: then those before it are left, and the
    /// context has no instruments any more. All are left, and what fails at that is told behind the body's error.
    pub fn scope<T>(
        &mut self,
        body: impl FnOnce(&mut Scope<'_>) -> Result<T, PassError>,
    ) -> Result<T, PassError> {
        self.enter()?;
        CURRENT.with_borrow_mut(|open| open.push(Rc::new(self.derive())));
        let result = catch_unwind(AssertUnwindSafe(|| body(&mut Scope { cx: self })));
        CURRENT.with_borrow_mut(Vec::pop);
        let exits = self.exit();
        match result {
            Ok(result) => with_exits(result, exits),
            Err(panic) => resume_unwind(panic),
        }
    }

    fn enter(&mut self) -> Result<(), PassError> {
        for number in 0..self.instruments.len() {
            if let Err(diagnostic) = self.instruments[number].enter() {
                let entered = self.instruments[..number].iter_mut().rev();
                let exits = entered.filter_map(failed_exit).collect();
                self.instruments.clear();
                let error = PassError::Context { when: "when the context was entered", diagnostic };
                return with_exits(Err(error), exits);
            }
        }
        Ok(())
    }

    fn exit(&mut self) -> Vec<Diagnostic> {
        self.instruments.iter_mut().filter_map(failed_exit).collect()
    }
}

/// A context that is entered.
pub struct Scope<'a> {
    pub(super) cx: &'a mut PassContext,
}

impl Scope<'_> {
    /// Runs a plan. Every plugin that it needs is opened before the first pass runs.
    pub fn run(
        &mut self,
        registry: &Registry,
        plan: &Plan,
        module: &Module,
    ) -> Result<Module, PassError> {
        manager::run_entered(registry, plan, module, self.cx)
    }

    /// Enters the context once more; its instruments are entered and left once more.
    pub fn scope<T>(
        &mut self,
        body: impl FnOnce(&mut Scope<'_>) -> Result<T, PassError>,
    ) -> Result<T, PassError> {
        self.cx.scope(body)
    }

    /// Leaves the instruments, and enters others in their place.
    ///
    /// # Errors
    /// An old one fails to be left, or a new one to be entered. Then the context has none.
    pub fn override_instruments(
        &mut self,
        instruments: Vec<Box<dyn Instrument>>,
    ) -> Result<(), PassError> {
        let exits = self.cx.exit();
        self.cx.instruments.clear();
        with_exits(Ok(()), exits)?;
        self.cx.instruments = instruments;
        self.cx.enter()
    }

    /// What the passes reported, with their names.
    pub fn reports(&self) -> &[(String, Report)] {
        &self.cx.reports
    }
}

/// What an instrument says that fails to be left.
fn failed_exit(instrument: &mut Box<dyn Instrument>) -> Option<Diagnostic> {
    instrument.exit().err().map(|diagnostic| *diagnostic)
}

/// A result, and what instruments said that failed to be left: the result's own error comes first.
fn with_exits<T>(result: Result<T, PassError>, exits: Vec<Diagnostic>) -> Result<T, PassError> {
    let mut exits = exits.into_iter();
    let error = match result {
        Err(error) => error,
        Ok(value) => match exits.next() {
            None => return Ok(value),
            Some(exit) => {
                PassError::Context { when: "when the context was left", diagnostic: exit.into() }
            }
        },
    };
    let exits: Vec<Diagnostic> = exits.collect();
    match exits.is_empty() {
        true => Err(error),
        false => Err(PassError::AndExits { error: Box::new(error), exits }),
    }
}
