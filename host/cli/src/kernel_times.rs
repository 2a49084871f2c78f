//! How long each kernel of a model took, and what it came from.

use serde_json::{Value, json};

use super::output::note;
use tenon_compiler::executable::KernelRun;
use tenon_compiler::printable::printable_line;
use tenon_compiler::runtime::profile::Profile;

/// The calls of kernels, each with its time in a run, in milliseconds: the mean of all runs.
pub(super) struct KernelTimes {
    rows: Vec<(KernelRun, f64)>,
    speed: Speed,
}

/// What the machine can, by which times are judged.
#[derive(Clone, Copy, Default)]
pub(super) struct Speed {
    /// Operations a second on all threads of a run; 0 where that was not measured.
    pub(super) operations: f64,
    /// Cycles a second of the clock by which a target's cycles are counted; likewise.
    pub(super) cycles: f64,
}

impl KernelTimes {
    pub(super) fn of(calls: Vec<KernelRun>, profile: &Profile, speed: Speed) -> Self {
        let mut sums = vec![0.0; calls.len()];
        for &(call, time) in &profile.calls {
            if let Some(sum) = sums.get_mut(call) {
                *sum += time.as_secs_f64() * 1e3;
            }
        }
        let means = sums.into_iter().map(|sum| sum / profile.runs.max(1) as f64);
        Self { rows: calls.into_iter().zip(means).collect(), speed }
    }

    /// Says them, the longest first.
    pub(super) fn tell(mut self) {
        self.rows.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let all: f64 = self.rows.iter().map(|(_, time)| time).sum();
        let width = self.rows.iter().map(|(run, _)| run.symbol.len()).max().unwrap_or(0);
        if !self.rows.is_empty() {
            note(format!("      ms      %  predicted  % of peak  {:width$}  from", "kernel"));
        }
        for (run, time) in &self.rows {
            let KernelRun { symbol, came_from, .. } = run;
            let share = 100.0 * time / all.max(f64::MIN_POSITIVE);
            let predicted =
                self.speed.predicted(run).map_or(String::new(), |ms| format!("{ms:.3}"));
            let peak = self.speed.share_of_peak(run, *time);
            let peak = peak.map_or(String::new(), |share| format!("{:.1}", 100.0 * share));
            let line = format!(
                "{time:8.3}  {share:5.1}  {predicted:>9}  {peak:>9}  {symbol:width$}  {}",
                printable_line(came_from)
            );
            note(line.trim_end());
        }
        if self.speed.operations > 0.0 {
            let speed = self.speed.operations / 1e9;
            note(format!(
                "peak: {speed:.0} G operations a second, as multiply-adds of vectors measured now"
            ));
        }
    }

    /// The same for programs, in the order of the calls.
    pub(super) fn to_json(&self) -> Value {
        let row = |(run, time): &(KernelRun, f64)| {
            let KernelRun { symbol, came_from, scheduled } = run;
            json!({
                "kernel": symbol, "ms": time, "from": came_from,
                "rule": scheduled.as_ref().map(|told| &told.rule),
                "predicted_ms": self.speed.predicted(run),
                "share_of_peak": self.speed.share_of_peak(run, *time),
            })
        };
        self.rows.iter().map(row).collect()
    }
}

impl Speed {
    /// The milliseconds that a kernel was thought to take.
    fn predicted(&self, run: &KernelRun) -> Option<f64> {
        let cycles = run.scheduled.as_ref()?.cycles.filter(|_| self.cycles > 0.0)?;
        Some(cycles as f64 / self.cycles * 1e3)
    }

    /// How much of what the machine can a kernel does that takes so many milliseconds.
    fn share_of_peak(&self, run: &KernelRun, ms: f64) -> Option<f64> {
        let operations = run.scheduled.as_ref()?.operations.filter(|_| self.operations > 0.0)?;
        (ms > 0.0).then(|| operations as f64 / (ms / 1e3) / self.operations)
    }
}
