//! The built-in instruments.

use std::time::Duration;

use tenon_plugin_api::ir::Context;

use super::context::{Instrument, StepInfo, StepOutcome};
use crate::check::{Violation, check, check_changed};
use crate::diagnostics::Diagnostic;
use crate::ir::Module;
use crate::text::{WeightsPolicy, print_function, print_module};

/// Times each pass.
#[derive(Default)]
pub struct Timing {
    rows: Vec<(String, Option<Duration>, bool)>,
}

impl Instrument for Timing {
    fn after(
        &mut self,
        step: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let row = match outcome {
            StepOutcome::Ran { before, after, wall } => {
                (step.step.name.clone(), Some(wall), !after.is_identical(before))
            }
            StepOutcome::Skipped(_) | StepOutcome::Failed => (step.step.name.clone(), None, false),
        };
        self.rows.push(row);
        Ok(())
    }

    fn finish(&mut self) -> Option<String> {
        let total: Duration = self.rows.iter().filter_map(|row| row.1).sum();
        let mut text = String::from("      ms      %  pass\n");
        for (name, wall, changed) in &self.rows {
            let line = match wall {
                Some(wall) => format!(
                    "{:8.3} {:6.1}  {name}{}\n",
                    wall.as_secs_f64() * 1e3,
                    100.0 * wall.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE),
                    if *changed { "" } else { " (no change)" }
                ),
                None => format!("       -      -  {name} (did not run)\n"),
            };
            text.push_str(&line);
        }
        text.push_str(&format!("{:8.3}  100.0  total", total.as_secs_f64() * 1e3));
        Some(text)
    }
}

/// Checks that the module is well formed: the one that the passes are given, and what each pass makes of it.
#[derive(Default)]
pub struct VerifyEach {
    /// The module that was checked last.
    checked: Option<Module>,
}

impl VerifyEach {
    fn verify(&mut self, module: &Module, whose: &str) -> Result<(), Box<Diagnostic>> {
        let violations = match &self.checked {
            Some(checked) => check_changed(checked, module),
            None => check(module),
        };
        self.checked = Some(module.clone());
        match violations.first() {
            Some(first) => Err(Box::new(describe(first, violations.len() - 1, whose))),
            None => Ok(()),
        }
    }
}

fn describe(first: &Violation, others: usize, whose: &str) -> Diagnostic {
    let mut diagnostic = first.to_diagnostic();
    diagnostic.message = format!("{whose} is not well formed: {}", diagnostic.message);
    match others {
        0 => diagnostic,
        _ => diagnostic.note(format!("{others} more places are wrong")),
    }
}

impl Instrument for VerifyEach {
    fn before(&mut self, _: StepInfo<'_>, module: &Module) -> Result<(), Box<Diagnostic>> {
        self.verify(module, "the module before it")
    }

    fn after(&mut self, _: StepInfo<'_>, outcome: StepOutcome<'_>) -> Result<(), Box<Diagnostic>> {
        match outcome {
            StepOutcome::Ran { after, .. } => self.verify(after, "the module that it left"),
            StepOutcome::Skipped(_) | StepOutcome::Failed => Ok(()),
        }
    }
}

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
