//! What is told of a compile while it goes on.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::border::Report;
use crate::passes::Instrument;

/// Is told what a session does. Each method may be left out.
pub trait Observer {
    /// What begins now, as a line that stands until the next one: `comparing compiled code`.
    fn begins(&mut self, _what: &str) {}

    /// What a user should know of the plugins that were opened.
    fn warns(&mut self, _warning: &str) {}

    /// What a pass reports.
    fn reports(&mut self, _pass: &str, _report: &Report) {}

    /// What an instrument, or a comparison, has to say once the passes have run.
    fn says(&mut self, _text: &str) {}
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

/// Who watches a run of the passes.
pub struct Watch<'a> {
    /// They are asked and told behind those of the options, in order, and are gone after the run.
    pub instruments: Vec<Box<dyn Instrument>>,
    /// Is told the rest.
    pub observer: Box<dyn Observer + 'a>,
    /// Stops this run when it is set; without it, the session's own flag does.
    pub cancelled: Option<Arc<AtomicBool>>,
}

impl Default for Watch<'_> {
    fn default() -> Self {
        Self { instruments: Vec::new(), observer: Box::new(Silent), cancelled: None }
    }
}
