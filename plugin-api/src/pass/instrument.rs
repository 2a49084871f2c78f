//! What an instrument sees of the passes around it.

use std::time::Duration;

use crate::pass::{Module, PassContext, Result};

/// Watches passes: what [`macro@crate::instrument`] stands on. It belongs to one context, which calls it from one
/// thread at a time; there is another one for each context.
///
/// A method that fails stops the run with its error, but for one that is called while the run ends anyway. A group of
/// passes is told of as its passes are. `cx` has neither options nor a target that is a pass's own; what is reported
/// to it is told the user when the run is over.
pub trait Instrument: Send {
    /// When the context is entered.
    fn enter(&mut self, cx: &PassContext) -> Result<()> {
        let _ = cx;
        Ok(())
    }

    /// Whether a pass may run. Not asked for passes that the context requires.
    fn should_run(&mut self, pass: &str, module: &Module, cx: &PassContext) -> Result<bool> {
        let _ = (pass, module, cx);
        Ok(true)
    }

    /// Before a pass runs.
    fn before(&mut self, pass: &str, module: &Module, cx: &PassContext) -> Result<()> {
        let _ = (pass, module, cx);
        Ok(())
    }

    /// After a pass, however it ended.
    fn after(&mut self, pass: &str, outcome: Outcome<'_>, cx: &PassContext) -> Result<()> {
        let _ = (pass, outcome, cx);
        Ok(())
    }

    /// When the context is left, however that came.
    fn exit(&mut self, cx: &PassContext) -> Result<()> {
        let _ = cx;
        Ok(())
    }
}

/// How a pass ended.
#[derive(Clone, Copy)]
pub enum Outcome<'a> {
    /// It ran.
    Ran {
        /// The module before it.
        before: &'a Module,
        /// The module after it.
        after: &'a Module,
        /// Wall time of the pass.
        wall: Duration,
    },
    /// It did not run.
    Skipped,
    /// It failed, and the module is as it was.
    Failed,
}
