//! How long passes take.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::diagnostics::Diagnostic;
use crate::io::{FileError, write_atomically};
use crate::ir::{Context, Module};
use crate::passes::{Instrument, StepInfo, StepOutcome};

/// Times each pass: a table by phases, in which groups stand above their passes. Two of them do not disturb each
/// other.
#[derive(Default)]
pub struct Timing {
    rows: Vec<Row>,
    phase: String,
    /// The groups that are open: their steps and their rows.
    open: Vec<(usize, usize)>,
}

struct Row {
    phase: String,
    name: String,
    /// The number of groups around it.
    depth: usize,
    /// Nothing when it did not run.
    wall: Option<Duration>,
    /// Functions, and the sum of their times.
    functions: (usize, Duration),
    note: &'static str,
}

impl Instrument for Timing {
    fn enter(&mut self) -> Result<(), Box<Diagnostic>> {
        self.open.clear();
        Ok(())
    }

    fn before(&mut self, info: StepInfo<'_>, module: &Module) -> Result<(), Box<Diagnostic>> {
        self.phase = module.phase().to_owned();
        if info.is_group() {
            self.open.push((info.number, self.rows.len()));
            self.push(info, self.open.len() - 1);
        }
        Ok(())
    }

    fn after(
        &mut self,
        info: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let row = match self.open.iter().rposition(|&(step, _)| step == info.number) {
            Some(open) => {
                let row = self.open[open].1;
                self.open.truncate(open);
                row
            }
            None => self.push(info, self.open.len()),
        };
        let row = &mut self.rows[row];
        match outcome {
            StepOutcome::Ran { before, after, wall, functions } => {
                row.wall = Some(wall);
                row.functions =
                    (functions.len(), functions.iter().map(|function| function.wall).sum());
                row.note = if after.is_identical(before) { "no change" } else { "" };
            }
            StepOutcome::Skipped(why) => row.note = why,
            StepOutcome::Failed => row.note = "failed",
        }
        Ok(())
    }

    fn report(&mut self) -> Option<String> {
        let total = spent(&self.rows, 0);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let part = |time: Duration| match total.is_zero() {
            true => 0.0,
            false => 100.0 * ms(time) / ms(total),
        };
        let mut text = String::from("      ms      %  functions  sum ms  pass\n");
        for group in self.rows.chunk_by(|a, b| a.phase == b.phase) {
            let wall = spent(group, 0);
            let phase = &group[0].phase;
            text.push_str(&format!(
                "{:8.3} {:6.1}                     phase {phase}\n",
                ms(wall),
                part(wall)
            ));
            for (at, row) in group.iter().enumerate() {
                let times = match row.wall {
                    Some(wall) => format!("{:8.3} {:6.1}", ms(wall), part(wall)),
                    None => format!("{:>8} {:>6}", "-", "-"),
                };
                let functions = match row.functions {
                    (0, _) => format!("{:>9} {:>7}", "", ""),
                    (count, sum) => format!("{count:9} {:7.3}", ms(sum)),
                };
                let mut notes = vec![row.note.to_owned()];
                let inner = group[at + 1..].iter().position(|inner| inner.depth <= row.depth);
                let inner = &group[at + 1..at + 1 + inner.unwrap_or(group.len() - at - 1)];
                if let (Some(wall), false) = (row.wall, inner.is_empty()) {
                    let own = wall.saturating_sub(spent(inner, row.depth + 1));
                    notes.push(format!("itself {:.3}", ms(own)));
                }
                notes.retain(|note| !note.is_empty());
                let note = match notes.is_empty() {
                    true => String::new(),
                    false => format!(" ({})", notes.join(", ")),
                };
                let indent = "  ".repeat(row.depth);
                text.push_str(&format!("{times}  {functions}    {indent}{}{note}\n", row.name));
            }
        }
        text.push_str(&format!("{:8.3}  100.0                     total", ms(total)));
        Some(text)
    }

    fn times_functions(&self) -> bool {
        true
    }
}

impl Timing {
    /// Adds a row; gives its number.
    fn push(&mut self, info: StepInfo<'_>, depth: usize) -> usize {
        let (phase, name) = (self.phase.clone(), info.step.name.clone());
        let functions = (0, Duration::ZERO);
        self.rows.push(Row { phase, name, depth, wall: None, functions, note: "" });
        self.rows.len() - 1
    }
}

/// The time that rows of a depth took. Of one that did not end, what those below it took is known.
fn spent(rows: &[Row], depth: usize) -> Duration {
    let mut sum = Duration::ZERO;
    // The depth of the group that is counted as a whole.
    let mut counted = None;
    for row in rows.iter().filter(|row| row.depth >= depth) {
        if counted.is_some_and(|counted| row.depth > counted) {
            continue;
        }
        counted = row.wall.map(|_| row.depth);
        sum += row.wall.unwrap_or_default();
    }
    sum
}

/// Writes when each pass, and each function within it, began and ended, in the trace event format that browsers
/// and Perfetto show.
pub struct Trace {
    path: PathBuf,
    origin: Instant,
    events: Vec<serde_json::Value>,
}

impl Trace {
    /// Writes to `path` when the run is over.
    pub fn new(path: PathBuf) -> Self {
        Self { path, origin: Instant::now(), events: Vec::new() }
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
    fn after(
        &mut self,
        step: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        if let StepOutcome::Ran { before, wall, functions, .. } = outcome {
            let start = Instant::now().checked_sub(wall).unwrap_or(self.origin);
            let kind = if step.is_group() { "group" } else { "pass" };
            self.push(&step.step.name, kind, 0, start, wall);
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
