//! Which schedules of one program are measured next.

use std::collections::{BTreeMap, HashSet};

use tenon_tuning::{Found, Line, digest};

use super::message::{Candidate, Looked};
use super::space::Space;
use crate::registry::Registry;

/// How candidates are picked from those that are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Those that the rule predicts to be fast come first, and some others.
    #[default]
    Model,
    /// As they are drawn.
    Random,
}

/// Candidates that are drawn and looked at for a round, at most.
const DRAWN: usize = 48;
/// Schedules that are measured in a round.
const MEASURED: usize = 8;
/// Of those, such as nobody thinks fast.
const OUTSIDERS: usize = 3;
/// Rounds without a new schedule, after which there is nothing left to try.
const EMPTY: usize = 3;

/// The search over one program's schedules.
pub(super) struct Search {
    space: Space,
    strategy: Strategy,
    pub(super) default: Looked,
    pub(super) default_ms: f64,
    pub(super) best: Looked,
    pub(super) best_ms: f64,
    /// Digests of the traces that were measured, or failed.
    tried: HashSet<String>,
    /// Rounds since one was better, and those that found nothing new.
    pub(super) in_vain: usize,
    empty: usize,
    /// Candidates that a rule or a primitive refused.
    pub(super) refused: usize,
    random: fastrand::Rng,
}

impl Search {
    pub(super) fn new(
        registry: &Registry,
        op: &str,
        default: Looked,
        default_ms: f64,
        strategy: Strategy,
        seed: u64,
    ) -> Search {
        let names: Vec<&str> = default.knobs.keys().map(String::as_str).collect();
        let space = Space::of(registry, op, &names, seed);
        let tried = HashSet::from([digest(default.trace.as_bytes())]);
        Search {
            space,
            strategy,
            best: default.clone(),
            best_ms: default_ms,
            default,
            default_ms,
            tried,
            in_vain: 0,
            empty: 0,
            refused: 0,
            random: fastrand::Rng::with_seed(seed ^ 1),
        }
    }

    /// Takes up what was found before. A time of another day is no better than its share of what the rules chose then.
    pub(super) fn go_on(&mut self, lines: &[Line]) {
        for line in lines {
            self.tried.insert(line.schedule().to_owned());
            if let Found::Best(best) = &line.found {
                let ms = best.ms / best.default_ms * self.default_ms;
                if ms < self.best_ms {
                    self.best_ms = ms;
                    self.best = Looked {
                        trace: best.trace.clone(),
                        rule: best.rule.clone(),
                        knobs: best.knobs.clone(),
                        cycles: None,
                    };
                }
            }
        }
    }

    /// What a round may bring, in milliseconds of a run: the less, the more rounds were in vain.
    pub(super) fn hope(&self) -> f64 {
        match self.is_exhausted() {
            true => 0.0,
            false => self.best_ms / ((1 + self.in_vain) as f64).powf(1.5),
        }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.empty >= EMPTY
    }

    /// The schedules of a round; `look` says how a candidate would run, and nothing where it is refused.
    pub(super) fn round<E>(
        &mut self,
        mut look: impl FnMut(Candidate) -> Result<Option<Looked>, E>,
    ) -> Result<Vec<Looked>, E> {
        let mut found: Vec<Looked> = Vec::new();
        let wanted = match self.strategy {
            Strategy::Model => 3 * MEASURED,
            Strategy::Random => MEASURED,
        };
        for _ in 0..DRAWN {
            if found.len() >= wanted {
                break;
            }
            let base: (&BTreeMap<String, i64>, &str) = (&self.best.knobs, &self.best.trace);
            let candidate = self.space.draw(base.0, base.1);
            let Some(mut looked) = look(candidate.clone())? else {
                self.refused += 1;
                continue;
            };
            if let Candidate::Mutant { .. } = candidate {
                // It is not the rule's any more, nor are its knobs.
                looked.rule.clone_from(&self.best.rule);
                looked.knobs.clear();
            }
            if self.tried.insert(digest(looked.trace.as_bytes())) {
                found.push(looked);
            }
        }
        self.empty = if found.is_empty() { self.empty + 1 } else { 0 };
        Ok(self.pick(found))
    }

    /// Those that are measured; the others may be drawn again.
    fn pick(&mut self, mut found: Vec<Looked>) -> Vec<Looked> {
        if found.len() <= MEASURED {
            return found;
        }
        // What has no prediction is as good as the best that has one.
        let least = found.iter().filter_map(|looked| looked.cycles).min().unwrap_or(0);
        found.sort_by_key(|looked| looked.cycles.unwrap_or(least));
        let mut left = found.split_off(MEASURED - OUTSIDERS);
        self.random.shuffle(&mut left);
        let dropped = left.split_off(OUTSIDERS);
        for looked in dropped {
            self.tried.remove(&digest(looked.trace.as_bytes()));
        }
        found.extend(left);
        found
    }
}
