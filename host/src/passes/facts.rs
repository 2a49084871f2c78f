//! What holds between passes: a requirement is skipped while what it established still does.

use rustc_hash::FxHashSet;

use super::pass::Pass;
use crate::registry::{PassRecord, Registry};

/// The facts that hold. The name of a pass is one: that running it would change nothing.
///
/// A pass that changes nothing destroys nothing, but for what its manifest names under `destroys`. One that
/// changes something destroys everything but what its manifest names under `preserves`.
#[derive(Default)]
pub(super) struct Facts<'a>(FxHashSet<&'a str>);

impl<'a> Facts<'a> {
    /// A pass has run.
    pub(super) fn ran(&mut self, registry: &'a Registry, pass: &'a Pass, has_changed: bool) {
        let record = record(registry, pass);
        if has_changed {
            let preserves = record.map_or(&[][..], |record| &record.preserves);
            self.0.retain(|fact| preserves.iter().any(|kept| kept == fact));
        }
        if let Some(record) = record {
            self.0.retain(|fact| !record.destroys.iter().any(|gone| gone == fact));
            self.0.extend(record.establishes.iter().map(String::as_str));
        }
        self.0.insert(pass.name());
    }

    /// Whether what a pass would establish holds already, whichever pass established it.
    pub(super) fn hold(&self, registry: &Registry, pass: &Pass) -> bool {
        let establishes = record(registry, pass).map_or(&[][..], |record| &record.establishes);
        let is_there = |fact: &String| self.0.contains(fact.as_str());
        self.0.contains(pass.name()) || !establishes.is_empty() && establishes.iter().all(is_there)
    }
}

fn record<'r>(registry: &'r Registry, pass: &Pass) -> Option<&'r PassRecord> {
    pass.id().map(|id| registry.record(id))
}
