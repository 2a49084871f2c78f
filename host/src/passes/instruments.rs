//! The built-in instruments.

use std::time::Duration;

use tenon_plugin_api::ir::Context;

use super::context::{Instrument, StepInfo, StepOutcome};
use crate::ir::Module;
use crate::text::{WeightsPolicy, print_function, print_module};

/// Times each pass.
#[derive(Default)]
pub struct Timing {
    rows: Vec<(String, Option<Duration>, bool)>,
}

impl Instrument for Timing {
    fn after(&mut self, step: StepInfo<'_>, outcome: StepOutcome<'_>) -> Result<(), String> {
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

    fn print(&self, title: &str, info: StepInfo<'_>, text: &str) -> Result<(), String> {
        let mut stderr = std::io::stderr().lock();
        std::io::Write::write_all(
            &mut stderr,
            format!("// {title} {}\n{text}\n", info.step.name).as_bytes(),
        )
        .map_err(|error| format!("cannot print the module: {error}"))
    }
}

impl Instrument for PrintIr {
    fn before(&mut self, info: StepInfo<'_>, module: &Module) -> Result<(), String> {
        match self.is_wanted(info, PrintWhen::Before) {
            true => {
                self.print("before", info, &print_module(module, &mut WeightsPolicy::elided(64)))
            }
            false => Ok(()),
        }
    }

    fn after(&mut self, info: StepInfo<'_>, outcome: StepOutcome<'_>) -> Result<(), String> {
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
