//! Phases in a plan: what the registry lists for one, and what finds its place in it.

use std::collections::{HashMap, HashSet};

use super::super::pass::Pass;
use super::super::pipeline::{Element, Word};
use super::super::placement::{self, Listed, Placed};
use super::super::plan::{LeftOut, PlanError, Reason, Step};
use super::super::requirements;
use super::{Planner, Text, Work};
use crate::diagnostics::Diagnostic;
use crate::ir::PHASES;
use crate::registry::{PassId, Place};
use crate::suggest::nearest;

impl<'a> Planner<'a> {
    /// The module enters a phase.
    pub(super) fn enter(&mut self, phase: &str, place: &Place) -> Result<(), PlanError> {
        if !PHASES.contains(&phase) {
            let error = place.error(format!("there is no phase `{phase}`"), "");
            return Err(near_phase(error, phase).into());
        }
        if let Some((_, group)) = self.open.last() {
            let message = format!("a module enters phase `{phase}` within a group");
            let error = place.error(message, "").note(format!("the group begins in {group}"));
            return Err(error.help("name phases outside of groups").into());
        }
        self.order.enter(phase, place)?;
        self.plan.steps.push(Step::Phase(phase.to_owned()));
        Ok(())
    }

    /// The passes of a phase: the registry's list, with the enabled passes that find their own place.
    pub(super) fn phase(&mut self, phase: &str, place: &Place) -> Result<(), PlanError> {
        self.enter(phase, place)?;
        let (mut items, mut parts) = (Vec::new(), Vec::new());
        for item in self.listed(phase)? {
            let (mut passes, mut kept) = (Vec::new(), Vec::new());
            let place = item[0].0.place(&name_of(&item[0].1).at);
            for (text, element) in item {
                if let Element::Pass(spec) = &element {
                    let listed = text.place(&spec.name.at);
                    let id = self.find(&spec.name.text, &listed)?;
                    if let Some(set) = self.registry.enabled_by(id).filter(|set| !set.value) {
                        let name = self.registry.record(id).name.clone();
                        let (chain, disabled) = (vec![name.clone()], set.place.clone());
                        self.plan.left_out.push(LeftOut { name, chain, listed, disabled });
                        continue;
                    }
                    passes.push(id);
                }
                kept.push(Work::Listed(text, element));
            }
            if !passes.is_empty() {
                items.push(Listed { passes, place });
                parts.push(kept);
            }
        }
        let all_placed = match self.placed.take() {
            Some(placed) => placed,
            None => self.enabled_elsewhere()?,
        };
        let placed = all_placed.get(phase).map_or(&[][..], Vec::as_slice);
        let order =
            placement::Phase { registry: self.registry, name: phase, listed: &items, placed };
        for part in order.order()? {
            match part {
                Placed::Listed(number) => {
                    let mut part = std::mem::take(&mut parts[number]);
                    part.reverse();
                    self.elements(part)?;
                }
                Placed::Found(number, beside) => {
                    let (id, enabled) = &placed[number];
                    let reason = Reason::Placed { enabled: enabled.clone(), beside };
                    let record = self.registry.record(*id);
                    let pass = Pass::plugin(record, *id, Vec::new());
                    requirements::plan(self, pass, enabled, reason)?;
                }
            }
        }
        self.placed = Some(all_placed);
        Ok(())
    }

    /// What the registry lists for a phase: passes, and groups of them.
    fn listed(&self, phase: &str) -> Result<Vec<Vec<(Text<'a>, Element)>>, PlanError> {
        let mut listed: Vec<Vec<(Text<'a>, Element)>> = Vec::new();
        for text in self.registry.config().phases.get(phase).into_iter().flatten() {
            let text = Text::of_file(text);
            let mut depth = 0;
            for element in text.parse()?.0 {
                if let Element::Phase(inner) | Element::Enter(inner) = &element {
                    let place = text.place(&inner.at);
                    return Err(place.error("a phase lists passes, and no phases", "").into());
                }
                if depth == 0 {
                    listed.push(Vec::new());
                }
                match element {
                    Element::Begin(_) => depth += 1,
                    Element::End(_) => depth -= 1,
                    _ => {}
                }
                listed.last_mut().expect("one was pushed").push((text.clone(), element));
            }
        }
        Ok(listed)
    }

    /// The passes that the registry enables by name and lists nowhere, by their phase.
    fn enabled_elsewhere(&self) -> Result<HashMap<String, Vec<(PassId, Place)>>, PlanError> {
        let mut in_a_list: HashSet<PassId> = HashSet::new();
        for phase in self.registry.config().phases.keys() {
            for (_, element) in self.listed(phase)?.iter().flatten() {
                if let Element::Pass(spec) = element {
                    in_a_list.extend(self.registry.find(&spec.name.text).ok());
                }
            }
        }
        let mut placed: HashMap<String, Vec<(PassId, Place)>> = HashMap::new();
        for (name, config) in &self.registry.config().passes {
            let Some(enabled) = config.enabled.as_ref().filter(|set| set.value) else { continue };
            let id = self.find(name, &config.place)?;
            let record = self.registry.record(id);
            if record.name != *name {
                let message = format!("`{name}` is not the full name of a pass");
                let help = format!("write [passes.\"{}\"]", record.name);
                return Err(config.place.error(message, "").help(help).into());
            }
            if record.phase.is_empty() || in_a_list.contains(&id) {
                continue;
            }
            if !PHASES.contains(&record.phase.as_str()) {
                let message = format!(
                    "`{name}` cannot be placed: {} says it belongs to phase `{}`, and there is none",
                    self.registry.plugin_of(id).path.display(),
                    record.phase
                );
                let error = enabled.place.error(message, "enabled here");
                return Err(near_phase(error, &record.phase).into());
            }
            placed.entry(record.phase.clone()).or_default().push((id, enabled.place.clone()));
        }
        Ok(placed)
    }
}

/// The name that an element of a list begins with.
fn name_of(element: &Element) -> &Word {
    match element {
        Element::Pass(spec) => &spec.name,
        Element::Phase(word) | Element::Enter(word) | Element::Begin(word) => word,
        Element::End(_) => unreachable!("an end has a beginning before it"),
    }
}

/// Adds the phase that was meant to an error about one that is none.
fn near_phase(error: Diagnostic, name: &str) -> Diagnostic {
    match nearest(name, PHASES.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.note(format!("the phases are {}", PHASES.join(", "))),
    }
}
