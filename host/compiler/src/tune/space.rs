//! What may be chosen of a program: the knobs of the rule that schedules it, or its trace in another way.

use std::collections::{BTreeMap, HashSet};

use super::message::Candidate;
use crate::registry::{KnobRecord, Registry};

/// Of so many values of all knobs together each is tried before one is drawn again.
const FEW: usize = 4096;
/// One candidate in so many is a trace in another way, where there are knobs as well.
const MUTANTS: u32 = 4;
/// One candidate in so many has knobs near the best ones.
const NEAR: u32 = 2;

/// The candidates of a program.
pub(super) struct Space {
    knobs: Vec<KnobRecord>,
    /// All values, where there are few, in the order in which they are tried.
    left: Option<Vec<BTreeMap<String, i64>>>,
    drawn: HashSet<Vec<i64>>,
    random: fastrand::Rng,
}

impl Space {
    /// That of a program which computes `op` and which a rule with knobs of these names schedules.
    pub(super) fn of(registry: &Registry, op: &str, names: &[&str], seed: u64) -> Space {
        let of_key = |key| registry.rules_for("schedule", key).into_iter();
        let is_meant = |knobs: &[KnobRecord]| {
            knobs.len() == names.len() && knobs.iter().all(|knob| names.contains(&&*knob.name))
        };
        let found = of_key(op).chain(of_key("any")).find(|(_, rule)| is_meant(&rule.knobs));
        let knobs = found.map_or(Vec::new(), |(_, rule)| rule.knobs.clone());
        let mut space = Space {
            knobs,
            left: None,
            drawn: HashSet::new(),
            random: fastrand::Rng::with_seed(seed),
        };
        space.left = space.all();
        space
    }

    /// All values of all knobs, shuffled, where they are few.
    fn all(&mut self) -> Option<Vec<BTreeMap<String, i64>>> {
        let count = |knob: &KnobRecord| usize::try_from(knob.most - knob.least + 1).ok();
        let counts: Option<Vec<usize>> = self.knobs.iter().map(count).collect();
        let total = counts?.into_iter().try_fold(1, usize::checked_mul)?;
        if self.knobs.is_empty() || total > FEW {
            return None;
        }
        let mut all = vec![BTreeMap::new()];
        for KnobRecord { name, least, most } in &self.knobs {
            let with = |known: &BTreeMap<String, i64>, value| {
                let mut known = known.clone();
                known.insert(name.clone(), value);
                known
            };
            let with = &with;
            all = all
                .iter()
                .flat_map(|known| (*least..=*most).map(move |value| with(known, value)))
                .collect();
        }
        self.random.shuffle(&mut all);
        Some(all)
    }

    /// A candidate, near a schedule with these knobs and this trace or far from it.
    pub(super) fn draw(&mut self, knobs: &BTreeMap<String, i64>, trace: &str) -> Candidate {
        let mutant = |random: &mut fastrand::Rng| Candidate::Mutant {
            trace: trace.to_owned(),
            seed: random.u64(..),
        };
        if self.knobs.is_empty() || self.random.u32(0..MUTANTS) == 0 {
            return mutant(&mut self.random);
        }
        if self.random.u32(0..NEAR) == 0
            && let Some(near) = self.near(knobs)
        {
            return Candidate::Knobs(near);
        }
        match &mut self.left {
            Some(left) => left.pop().map_or_else(|| mutant(&mut self.random), Candidate::Knobs),
            None => self.far().map_or_else(|| mutant(&mut self.random), Candidate::Knobs),
        }
    }

    /// The same knobs but for one, which is some more or less; nothing where all of these were drawn.
    fn near(&mut self, knobs: &BTreeMap<String, i64>) -> Option<BTreeMap<String, i64>> {
        let knob = self.knobs[self.random.usize(0..self.knobs.len())].clone();
        let value = knobs.get(&knob.name).copied().unwrap_or(knob.least);
        let others = [value + 1, value - 1, value * 2, value / 2];
        let other = others[self.random.usize(0..others.len())].clamp(knob.least, knob.most);
        let mut knobs = knobs.clone();
        knobs.insert(knob.name, other);
        self.drawn.insert(knobs.values().copied().collect()).then_some(knobs)
    }

    /// Any values; of large ranges small numbers as often as large ones.
    fn far(&mut self) -> Option<BTreeMap<String, i64>> {
        let mut values = BTreeMap::new();
        for KnobRecord { name, least, most } in &self.knobs {
            let span = (most - least + 1) as f64;
            let part = self.random.f64() * span.ln();
            let value = least + (part.exp() - 1.0).round() as i64;
            values.insert(name.clone(), value.clamp(*least, *most));
        }
        self.drawn.insert(values.values().copied().collect()).then_some(values)
    }
}
