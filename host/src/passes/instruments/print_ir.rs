//! Prints modules between passes.

use tenon_plugin_api::ir::Context;

use crate::diagnostics::Diagnostic;
use crate::ir::Module;
use crate::passes::{Instrument, StepInfo, StepOutcome};
use crate::text::{WeightsPolicy, print_function, print_module};

/// When a module is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrintWhen {
    /// Before a pass.
    Before,
    /// After it.
    After,
    /// After it, the functions that it changed.
    Changed,
}

/// Prints modules to standard error, with large constants left out.
pub struct PrintIr {
    /// When.
    pub when: PrintWhen,
    /// Around which passes, by full name; around all when it is empty.
    pub names: Vec<String>,
}

impl PrintIr {
    fn is_wanted(&self, info: StepInfo<'_>, when: PrintWhen) -> bool {
        self.when == when && (self.names.is_empty() || self.names.contains(&info.step.name))
    }

    fn print(&self, title: &str, info: StepInfo<'_>, text: &str) -> Result<(), Box<Diagnostic>> {
        let mut stderr = std::io::stderr().lock();
        std::io::Write::write_all(
            &mut stderr,
            format!("// {title} {}\n{text}\n", info.step.name).as_bytes(),
        )
        .map_err(|error| Diagnostic::error(format!("cannot print the module: {error}")).into())
    }
}

impl Instrument for PrintIr {
    fn before(&mut self, info: StepInfo<'_>, module: &Module) -> Result<(), Box<Diagnostic>> {
        match self.is_wanted(info, PrintWhen::Before) {
            true => {
                self.print("before", info, &print_module(module, &mut WeightsPolicy::elided(64)))
            }
            false => Ok(()),
        }
    }

    fn after(
        &mut self,
        info: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let StepOutcome::Ran { before, after, .. } = outcome else { return Ok(()) };
        if self.is_wanted(info, PrintWhen::After) {
            self.print("after", info, &print_module(after, &mut WeightsPolicy::elided(64)))?;
        }
        if self.is_wanted(info, PrintWhen::Changed) && !after.is_identical(before) {
            self.print("changed by", info, &changed_functions(before, after))?;
        }
        Ok(())
    }
}

/// The functions of `after` that `before` does not have, and the names of those that went.
fn changed_functions(before: &Module, after: &Module) -> String {
    let terms = after.cx().terms();
    let mut text = String::new();
    for (name, function) in after.iter() {
        if !before.get(name).is_some_and(|old| std::sync::Arc::ptr_eq(old, function)) {
            let policy = &mut WeightsPolicy::elided(64);
            text.push_str(&print_function(terms.str(name), function, policy));
        }
    }
    for (name, _) in before.iter().filter(|(name, _)| after.get(*name).is_none()) {
        text.push_str(&format!("// removed @{}\n", terms.str(name)));
    }
    text
}
