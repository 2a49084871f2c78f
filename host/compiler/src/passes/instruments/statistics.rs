//! What passes make of a module, in numbers.

use crate::diagnostics::Diagnostic;
use crate::ir::Module;
use crate::passes::{Instrument, StepInfo, StepOutcome};

/// Counts functions, nodes and bytes after each pass that changed something.
#[derive(Default)]
pub struct Statistics {
    rows: Vec<(String, Counts)>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    functions: usize,
    nodes: usize,
    /// Bytes of the nodes.
    bodies: usize,
    /// Bytes of the constants; one that functions share counts once for each.
    constants: usize,
}

impl Counts {
    fn of(module: &Module) -> Self {
        let mut counts = Self { functions: module.len(), ..Self::default() };
        for (_, function) in module.iter() {
            counts.nodes += function.view().len();
            counts.bodies += function.memory();
            counts.constants +=
                function.constants().iter().map(|constant| constant.data.len()).sum::<usize>();
        }
        counts
    }
}

impl Instrument for Statistics {
    fn before(&mut self, _: StepInfo<'_>, module: &Module) -> Result<(), Box<Diagnostic>> {
        if self.rows.is_empty() {
            self.rows.push(("(before the first pass)".to_owned(), Counts::of(module)));
        }
        Ok(())
    }

    fn after(
        &mut self,
        step: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        if let StepOutcome::Ran { before, after, .. } = outcome
            && !step.is_group()
            && !after.is_identical(before)
        {
            self.rows.push((step.step.name.clone(), Counts::of(after)));
        }
        Ok(())
    }

    fn report(&mut self) -> Option<String> {
        let mut text =
            String::from("functions       nodes    KiB of nodes  KiB of constants  after");
        for (name, counts) in &self.rows {
            text.push_str(&format!(
                "\n{:9} {:11} {:15.1} {:17.1}  {name}",
                counts.functions,
                counts.nodes,
                counts.bodies as f64 / 1024.0,
                counts.constants as f64 / 1024.0,
            ));
        }
        Some(text)
    }
}

/// Logs the structural hash of the module after each pass: two runs that should be alike differ first where
/// their logs do.
#[derive(Default)]
pub struct Hashes {
    lines: Vec<String>,
}

impl Instrument for Hashes {
    fn before(&mut self, _: StepInfo<'_>, module: &Module) -> Result<(), Box<Diagnostic>> {
        if self.lines.is_empty() {
            self.lines.push(format!("{:016x}  (before the first pass)", module.structural_hash()));
        }
        Ok(())
    }

    fn after(
        &mut self,
        step: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        if let StepOutcome::Ran { after, .. } = outcome
            && !step.is_group()
        {
            self.lines.push(format!("{:016x}  {}", after.structural_hash(), step.step.name));
        }
        Ok(())
    }

    fn report(&mut self) -> Option<String> {
        Some(self.lines.join("\n"))
    }
}
