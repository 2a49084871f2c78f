//! The state of one run of a pass.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tenon_plugin_api::ir::Attrs;

use crate::ir::Cx;

/// What a plugin's calls refer to while one of its passes runs.
pub struct Run {
    /// The context of the module's terms.
    pub cx: Cx,
    /// The pass's options, defaults filled in.
    pub options: Attrs,
    /// The target's description.
    pub target: Attrs,
    /// Set to ask the pass to stop.
    pub cancelled: Arc<AtomicBool>,
    reports: Mutex<Vec<Report>>,
    refused: OnceLock<String>,
}

/// How serious a report is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportLevel {
    /// Something is wrong, though the pass went on.
    Error,
    /// Something is probably not as the user wants it.
    Warning,
    /// Worth knowing.
    Note,
    /// For whoever watches closely.
    Trace,
}

/// Something a pass reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// How serious it is.
    pub level: ReportLevel,
    /// The text.
    pub text: String,
}

impl Run {
    /// The state for a run.
    pub fn new(cx: Cx, options: Attrs, target: Attrs, cancelled: Arc<AtomicBool>) -> Self {
        Self { cx, options, target, cancelled, reports: Mutex::default(), refused: OnceLock::new() }
    }

    /// Whether the pass is asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Remembers that the plugin gave something that cannot be used. Its pass fails when it has ended.
    pub fn refuse(&self, what: String) {
        self.refused.get_or_init(|| what);
    }

    /// The first thing that was refused.
    pub fn refused(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }

    /// Adds a report.
    pub fn report(&self, level: ReportLevel, text: String) {
        let mut reports = self.reports.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        reports.push(Report { level, text });
    }

    /// Takes the reports made so far.
    pub fn take_reports(&self) -> Vec<Report> {
        std::mem::take(&mut self.reports.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}
