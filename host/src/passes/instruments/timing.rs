//! How long passes take.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::diagnostics::Diagnostic;
use crate::io::{FileError, write_atomically};
use crate::ir::{Context, Module};
use crate::passes::{FunctionTime, Instrument, StepInfo, StepOutcome};

/// Times each pass: a table by phases. Two of them do not disturb each other.
#[derive(Default)]
pub struct Timing {
    rows: Vec<Row>,
    phase: String,
}

struct Row {
    phase: String,
    name: String,
    /// Nothing when it did not run.
    wall: Option<Duration>,
    /// Functions, and the sum of their times.
    functions: (usize, Duration),
    note: &'static str,
}

impl Instrument for Timing {
    fn before(&mut self, _: StepInfo<'_>, module: &Module) -> Result<(), Box<Diagnostic>> {
        self.phase = module.phase().to_owned();
        Ok(())
    }

    fn after(
        &mut self,
        step: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let sum = |functions: &[FunctionTime]| {
            (functions.len(), functions.iter().map(|each| each.wall).sum())
        };
        let (wall, functions, note) = match outcome {
            StepOutcome::Ran { before, after, wall, functions } => {
                let note = if after.is_identical(before) { "no change" } else { "" };
                (Some(wall), sum(functions), note)
            }
            StepOutcome::Skipped(why) => (None, sum(&[]), why),
            StepOutcome::Failed => (None, sum(&[]), "failed"),
        };
        let (phase, name) = (self.phase.clone(), step.step.name.clone());
        self.rows.push(Row { phase, name, wall, functions, note });
        Ok(())
    }

    fn report(&mut self) -> Option<String> {
        let total: Duration = self.rows.iter().filter_map(|row| row.wall).sum();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let part = |time: Duration| 100.0 * ms(time) / ms(total).max(f64::MIN_POSITIVE);
        let mut text = String::from("      ms      %  functions  sum ms  pass\n");
        for group in self.rows.chunk_by(|a, b| a.phase == b.phase) {
            let wall: Duration = group.iter().filter_map(|row| row.wall).sum();
            let phase = &group[0].phase;
            text.push_str(&format!(
                "{:8.3} {:6.1}                     phase {phase}\n",
                ms(wall),
                part(wall)
            ));
            for row in group {
                let times = match row.wall {
                    Some(wall) => format!("{:8.3} {:6.1}", ms(wall), part(wall)),
                    None => format!("{:>8} {:>6}", "-", "-"),
                };
                let functions = match row.functions {
                    (0, _) => format!("{:>9} {:>7}", "", ""),
                    (count, sum) => format!("{count:9} {:7.3}", ms(sum)),
                };
                let note = match row.note {
                    "" => String::new(),
                    note => format!(" ({note})"),
                };
                text.push_str(&format!("{times}  {functions}    {}{note}\n", row.name));
            }
        }
        text.push_str(&format!("{:8.3}  100.0                     total", ms(total)));
        Some(text)
    }

    fn times_functions(&self) -> bool {
        true
    }
}

/// Writes when each pass, and each function within it, began and ended, in the trace event format that browsers
/// and Perfetto show.
pub struct Trace {
    path: PathBuf,
    origin: Instant,
    start: Instant,
    events: Vec<serde_json::Value>,
}

impl Trace {
    /// Writes to `path` when the run is over.
    pub fn new(path: PathBuf) -> Self {
        let now = Instant::now();
        Self { path, origin: now, start: now, events: Vec::new() }
    }

    fn push(&mut self, name: &str, kind: &str, thread: usize, start: Instant, wall: Duration) {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        self.events.push(json!({
            "name": name,
            "cat": kind,
            "ph": "X",
            "ts": us(start.saturating_duration_since(self.origin)),
            "dur": us(wall),
            "pid": 1,
            "tid": thread,
        }));
    }
}

impl Instrument for Trace {
    fn before(&mut self, _: StepInfo<'_>, _: &Module) -> Result<(), Box<Diagnostic>> {
        self.start = Instant::now();
        Ok(())
    }

    fn after(
        &mut self,
        step: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        if let StepOutcome::Ran { before, wall, functions, .. } = outcome {
            self.push(&step.step.name, "pass", 0, self.start, wall);
            for each in functions {
                let name = before.cx().terms().str(each.name);
                self.push(name, "function", each.thread + 1, each.start, each.wall);
            }
        }
        Ok(())
    }

    fn exit(&mut self) -> Result<(), Box<Diagnostic>> {
        let trace = json!({ "traceEvents": self.events, "displayTimeUnit": "ms" });
        let path = &self.path;
        write_atomically(path, |file| {
            std::io::Write::write_all(file, trace.to_string().as_bytes())
                .map_err(|cause| FileError::Write { path: path.clone(), cause })
        })
        .map_err(|error| Diagnostic::error(error.to_string()).into())
    }

    fn times_functions(&self) -> bool {
        true
    }
}
