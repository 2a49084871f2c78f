//! Stops running passes after so many.

use crate::diagnostics::Diagnostic;
use crate::ir::Module;
use crate::passes::{Instrument, StepInfo};

/// Refuses all passes after the first so many; the module stays in the phase that it is in then.
pub struct PassLimit {
    left: usize,
}

impl PassLimit {
    /// Lets `count` passes run.
    pub fn new(count: usize) -> Self {
        Self { left: count }
    }
}

impl Instrument for PassLimit {
    fn should_run(&mut self, info: StepInfo<'_>, _: &Module) -> Result<bool, Box<Diagnostic>> {
        if info.is_group() {
            return Ok(true);
        }
        let may_run = self.left > 0;
        self.left = self.left.saturating_sub(1);
        Ok(may_run)
    }

    fn is_over(&self) -> bool {
        self.left == 0
    }
}
