//! How long each kernel of a model took, and what it came from.

use std::time::Duration;

use serde_json::{Value, json};

use super::output::note;
use crate::executable::KernelRun;
use crate::printable::printable_line;

/// The calls of kernels, each with its time in a run, in milliseconds: the mean of all runs.
pub(super) struct KernelTimes(Vec<(KernelRun, f64)>);

impl KernelTimes {
    /// `times` are those of all calls of the first run, then of the second one.
    pub(super) fn of(calls: Vec<KernelRun>, times: &[Duration]) -> Self {
        let runs = (times.len() + 1) / (calls.len() + 1);
        let mut sums = vec![0.0; calls.len()];
        // Between two runs stands the time from the end of the one to the beginning of the other.
        for run in times.chunks(calls.len() + 1) {
            sums.iter_mut().zip(run).for_each(|(sum, time)| *sum += time.as_secs_f64() * 1e3);
        }
        let means = sums.into_iter().map(|sum| sum / runs.max(1) as f64);
        Self(calls.into_iter().zip(means).collect())
    }

    /// Says them, the longest first.
    pub(super) fn tell(mut self) {
        self.0.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let all: f64 = self.0.iter().map(|(_, time)| time).sum();
        let width = self.0.iter().map(|(run, _)| run.symbol.len()).max().unwrap_or(0);
        if !self.0.is_empty() {
            note(format!("      ms      %  {:width$}  from", "kernel"));
        }
        for (KernelRun { symbol, came_from }, time) in &self.0 {
            let share = 100.0 * time / all.max(f64::MIN_POSITIVE);
            let line =
                format!("{time:8.3}  {share:5.1}  {symbol:width$}  {}", printable_line(came_from));
            note(line.trim_end());
        }
    }

    /// The same for programs, in the order of the calls.
    pub(super) fn to_json(&self) -> Value {
        let row = |(run, time): &(KernelRun, f64)| {
            let KernelRun { symbol, came_from } = run;
            json!({ "kernel": symbol, "ms": time, "from": came_from })
        };
        self.0.iter().map(row).collect()
    }
}
