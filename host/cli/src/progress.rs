//! Progress on a terminal; silence in a pipe.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use tenon_compiler::diagnostics::Diagnostic;
use tenon_compiler::ir::Module;
use tenon_compiler::passes::{Instrument, StepInfo, StepOutcome};

/// A line that says what is being done.
#[derive(Clone)]
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// A line on standard error, hidden when that is no terminal.
    pub(super) fn new() -> Self {
        let bar = match std::io::stderr().is_terminal() {
            true => ProgressBar::new_spinner(),
            false => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    /// Says what is being done now.
    pub(super) fn say(&self, text: impl Into<String>) {
        self.0.set_message(text.into());
    }

    /// Says something above the line, where there is one to be seen.
    pub(super) fn above(&self, text: &str) {
        self.0.println(text);
    }

    /// Removes the line.
    pub(super) fn done(&self) {
        self.0.finish_and_clear();
    }
}

impl Instrument for Progress {
    fn before(&mut self, info: StepInfo<'_>, _: &Module) -> Result<(), Box<Diagnostic>> {
        if info.is_group() {
            return Ok(());
        }
        self.say(format!("[{}/{}] {}", info.number + 1, info.total, info.step.name));
        Ok(())
    }

    fn after(&mut self, _: StepInfo<'_>, _: StepOutcome<'_>) -> Result<(), Box<Diagnostic>> {
        Ok(())
    }
}
