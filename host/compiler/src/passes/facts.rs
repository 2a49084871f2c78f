//! What holds between passes: a requirement is skipped while what it established still does.

use rustc_hash::FxHashSet;

use super::pass::Pass;
use crate::registry::{PassRecord, Registry};

/// The facts that hold. The name of a pass is one: that running it would change nothing.
///
/// A pass that changes nothing destroys nothing, but for what its manifest names under `destroys`. One that
/// changes something destroys everything but what its manifest names under `preserves`.
#[derive(Default)]
pub(super) struct Facts<'a> {
    facts: FxHashSet<&'a str>,
    /// The passes that ran with options and still hold, each with them.
    with_options: FxHashSet<(&'a str, String)>,
}

impl<'a> Facts<'a> {
    /// A pass has run. It makes nothing hold where it was kept from a function.
    pub(super) fn ran(
        &mut self,
        registry: &'a Registry,
        pass: &'a Pass,
        has_changed: bool,
        is_whole: bool,
    ) {
        let record = record(registry, pass);
        if has_changed {
            let preserves = record.map_or(&[][..], |record| &record.preserves);
            let is_kept = |fact: &str| preserves.iter().any(|kept| kept == fact);
            self.facts.retain(|fact| is_kept(fact));
            self.with_options.retain(|(fact, _)| is_kept(fact));
        }
        if let Some(record) = record {
            let is_kept = |fact: &str| !record.destroys.iter().any(|gone| gone == fact);
            self.facts.retain(|fact| is_kept(fact));
            self.with_options.retain(|(fact, _)| is_kept(fact));
            let establishes = record.establishes.iter().filter(|_| is_whole);
            self.facts.extend(establishes.map(String::as_str));
        }
        if !is_whole {
            return;
        }
        self.facts.insert(pass.name());
        let given = pass.given_text();
        if !given.is_empty() {
            self.with_options.insert((pass.name(), given));
        }
    }

    /// Whether what a pass would establish holds already, whichever pass established it. One that is wanted with
    /// options must have run with these.
    pub(super) fn hold(&self, registry: &Registry, pass: &Pass) -> bool {
        let given = pass.given_text();
        if !given.is_empty() {
            return self.with_options.contains(&(pass.name(), given));
        }
        let establishes = record(registry, pass).map_or(&[][..], |record| &record.establishes);
        let is_there = |fact: &String| self.facts.contains(fact.as_str());
        self.facts.contains(pass.name())
            || !establishes.is_empty() && establishes.iter().all(is_there)
    }
}

fn record<'r>(registry: &'r Registry, pass: &Pass) -> Option<&'r PassRecord> {
    pass.id().map(|id| registry.record(id))
}
