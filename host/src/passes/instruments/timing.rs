//! How long passes take.

use std::time::Duration;

use crate::diagnostics::Diagnostic;
use crate::passes::{Instrument, StepInfo, StepOutcome};

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
