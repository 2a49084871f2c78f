//! Prints modules between passes.

use std::sync::Arc;
use std::time::Duration;

use similar::TextDiff;

use crate::diagnostics::Diagnostic;
use crate::ir::{Context, Function, Module, Symbol};
use crate::passes::{HostOption, Instrument, Settings, StepInfo, StepOutcome};
use crate::printable::printable_line;
use crate::text::{WeightsPolicy, print_function, print_module};

/// Elements that a constant may have to be shown.
static SHOWN_ELEMENTS: HostOption = HostOption {
    key: "print.elements",
    default: 64,
    min: 0,
    max: 1_000_000_000,
    help: "elements that a constant may have to be printed in full between passes",
};

inventory::submit!(&SHOWN_ELEMENTS);

/// After this time a diff need not be the shortest any more.
const DIFF_TIME: Duration = Duration::from_millis(500);

/// When a module is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrintWhen {
    /// Before a pass.
    Before,
    /// After it.
    After,
    /// After it, what it changed, as a unified diff.
    Changed,
}

/// Prints modules to standard error, with large constants left out.
pub struct PrintIr {
    /// When.
    pub when: PrintWhen,
    /// Around which passes and groups, by full name; around all passes when it is empty.
    pub names: Vec<String>,
    /// Elements that a constant may have to be shown.
    pub elements: u64,
    /// Whether it is printed what nodes came from.
    pub has_sources: bool,
}

impl PrintIr {
    /// What the settings say of [`PrintIr::elements`].
    pub fn elements(settings: &Settings) -> u64 {
        SHOWN_ELEMENTS.get(settings).unsigned_abs()
    }

    fn policy(&self) -> WeightsPolicy {
        WeightsPolicy::elided(self.elements).with_sources(self.has_sources)
    }

    fn is_wanted(&self, info: StepInfo<'_>, when: PrintWhen) -> bool {
        let is_named = self.names.contains(&info.step.name);
        self.when == when && (is_named || self.names.is_empty() && !info.is_group())
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
            true => self.print("before", info, &print_module(module, &mut self.policy())),
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
            self.print("after", info, &print_module(after, &mut self.policy()))?;
        }
        if self.is_wanted(info, PrintWhen::Changed) && !after.is_identical(before) {
            self.print("changed by", info, &differences(before, after, || self.policy()))?;
        }
        Ok(())
    }
}

/// What a pass changed, function by function, as a unified diff.
fn differences(before: &Module, after: &Module, policy: impl Fn() -> WeightsPolicy) -> String {
    let terms = after.cx().terms();
    let print = |module: &Module, name: Symbol| {
        let printed =
            |function: &Arc<Function>| print_function(terms.str(name), function, &mut policy());
        module.get(name).map_or(String::new(), printed)
    };
    let is_gone = |name: &Symbol| after.get(*name).is_none();
    let gone = before.iter().map(|(name, _)| name).filter(is_gone);
    let is_new = |&(name, function): &(Symbol, &Arc<Function>)| {
        !before.get(name).is_some_and(|old| Arc::ptr_eq(old, function))
    };
    let changed = after.iter().filter(is_new).map(|(name, _)| name);
    let mut text = String::new();
    for name in changed.chain(gone) {
        let (old, new) = (print(before, name), print(after, name));
        let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(&old, &new);
        let title = format!("@{}", printable_line(terms.str(name)));
        text.push_str(&diff.unified_diff().context_radius(3).header(&title, &title).to_string());
    }
    text
}
