//! Instruments of plugins.

use std::sync::Arc;
use std::time::Duration;

use tenon_plugin_api::abi::tables::Event;

use crate::border::Run;
use crate::diagnostics::Diagnostic;
use crate::ir::{Attrs, Cx, Module};
use crate::passes::{Instrument, StepInfo, StepOutcome};
use crate::registry::{PluginInstrument, Registry};

/// An instrument of a plugin's. What it reports is told when the run is over.
pub struct FromPlugin {
    name: String,
    instrument: PluginInstrument,
    said: Vec<String>,
}

impl FromPlugin {
    /// Makes the instrument called `name`, opening its plugin.
    pub fn new(registry: &Registry, name: &str) -> Result<Self, Diagnostic> {
        match registry.create_instrument(name) {
            Ok(instrument) => Ok(Self { name: name.to_owned(), instrument, said: Vec::new() }),
            Err(why) => Err(Diagnostic::error(why.text())),
        }
    }

    fn tell(
        &mut self,
        event: Event,
        pass: &str,
        modules: [Option<&Module>; 2],
        wall: Duration,
    ) -> Result<bool, Box<Diagnostic>> {
        // Where there is no module there are no terms.
        let cx = modules[0].map_or_else(Cx::new, |module| module.cx().clone());
        let run = Arc::new(Run::new(cx, Attrs::NONE, Attrs::NONE, Arc::default()));
        let answer = self.instrument.tell(&run, event, pass, modules, wall);
        let reports = run.take_reports().into_iter();
        self.said.extend(reports.map(|report| format!("{}: {}", self.name, report.text)));
        answer.map_err(|failure| {
            Box::new(Diagnostic::error(format!("instrument `{}`: {}", self.name, failure.message)))
        })
    }
}

impl Instrument for FromPlugin {
    fn enter(&mut self) -> Result<(), Box<Diagnostic>> {
        self.tell(Event::ENTER, "", [None; 2], Duration::ZERO).map(drop)
    }

    fn should_run(&mut self, info: StepInfo<'_>, module: &Module) -> Result<bool, Box<Diagnostic>> {
        self.tell(Event::MAY_RUN, &info.step.name, [Some(module), None], Duration::ZERO)
    }

    fn before(&mut self, info: StepInfo<'_>, module: &Module) -> Result<(), Box<Diagnostic>> {
        self.tell(Event::BEFORE, &info.step.name, [Some(module), None], Duration::ZERO).map(drop)
    }

    fn after(
        &mut self,
        info: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let (event, modules, wall) = match outcome {
            StepOutcome::Ran { before, after, wall, .. } => {
                (Event::RAN, [Some(before), Some(after)], wall)
            }
            StepOutcome::Skipped(_) => (Event::SKIPPED, [None; 2], Duration::ZERO),
            StepOutcome::Failed => (Event::FAILED, [None; 2], Duration::ZERO),
        };
        self.tell(event, &info.step.name, modules, wall).map(drop)
    }

    fn exit(&mut self) -> Result<(), Box<Diagnostic>> {
        self.tell(Event::EXIT, "", [None; 2], Duration::ZERO).map(drop)
    }

    fn report(&mut self) -> Option<String> {
        (!self.said.is_empty()).then(|| std::mem::take(&mut self.said).join("\n"))
    }
}
