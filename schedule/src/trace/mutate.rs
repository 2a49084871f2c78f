//! Traces that differ from another in one decision.
//!
//! ```text
//! [i_0, i_1] = split(i, [_, 16]); reorder([i_0, k, i_1]); vectorize(i_1)
//!   => [i_0, i_1] = split(i, [_, 8]); reorder([i_0, k, i_1]); vectorize(i_1)      another factor
//!   => [i_0, i_1] = split(i, [_, 16]); reorder([k, i_0, i_1]); vectorize(i_1)     two loops changed places
//!   => [i_0, i_1] = split(i, [_, 16]); reorder([i_0, k, i_1])                     one thing less
//!   => …; vectorize(i_1); unroll(k)                                               one thing more
//! [a, b] = sample_perfect_tile(i, 2, decision = [8, 16])
//!   => [a, b] = sample_perfect_tile(i, 2, decision = [32, 4])                     something else is drawn
//! ```
//!
//! Whether such a trace applies says whoever replays it: primitives check themselves. As the mutators of MetaSchedule (J. Shao et
//! al., "Tensor Program Optimization with Probabilistic Programs", 2022), but over what a trace says, whichever rule made it.

use crate::primitives;
use crate::random::{Random, primes};

use super::Kind;
use super::parse::{Raw, Script, Step};

/// Instructions that say how a loop runs and give nothing that others name.
const MARKS: [&str; 3] = ["unroll", "vectorize", "parallel"];
/// Factors that a factor is multiplied with, or divided by.
const SCALES: [i64; 2] = [2, 3];
/// No place for a block is in more loops.
const MAX_DEPTH: i64 = 64;
/// No factor gets larger.
const MAX_FACTOR: i64 = 1 << 20;

/// A decision that may be another one.
enum Site {
    /// An integer among the factors of an instruction, or among those that were drawn: instruction, argument, place in the list.
    Factor(usize, usize, usize),
    /// Two neighbours in the list of a `reorder`.
    Order(usize, usize),
    /// A mark that may be left out.
    Mark(usize),
    /// A loop that has none, and may be unrolled.
    Plain(String),
    /// Factors of an extent that were drawn, of which one gives a part to another: instruction, places of both.
    Tile(usize, usize, usize),
    /// One of so many that was drawn: instruction, number of candidates.
    Candidate(usize, usize),
    /// A place for a block that was drawn.
    Location(usize),
}

impl Script {
    /// A script with another decision in one place; nothing where it has none. Equal seeds give equal scripts.
    pub fn mutated(&self, seed: u64) -> Option<Self> {
        let mut random = Random(seed);
        let sites = self.sites();
        let site = &sites[random.below(sites.len())?];
        let mut steps = self.steps.clone();
        match site {
            Site::Factor(step, arg, at) => {
                let Raw::List(items) = &mut steps[*step].args[*arg] else { return None };
                let Raw::Int(value) = &mut items[*at] else { return None };
                *value = other(&mut random, *value)?;
            }
            Site::Order(step, at) => {
                let Some(Raw::List(items)) = steps[*step].args.first_mut() else { return None };
                items.swap(*at, at + 1);
            }
            Site::Mark(step) => drop(steps.remove(*step)),
            Site::Tile(step, from, to) => {
                let most = steps[*step].most_of(*to);
                let Some(Raw::List(factors)) = steps[*step].args.last_mut() else { return None };
                let [Raw::Int(a), Raw::Int(b)] = factors.get_disjoint_mut([*from, *to]).ok()?
                else {
                    return None;
                };
                let drawn = Some(random.divisor(*a));
                let fits = |part: &i64| b.checked_mul(*part).is_some_and(|all| all <= most);
                let part = drawn.filter(fits).or_else(|| least_part(*a).filter(fits))?;
                (*a, *b) = (*a / part, *b * part);
            }
            Site::Candidate(step, count) => {
                let Some(Raw::Int(decision)) = steps[*step].args.last_mut() else { return None };
                let others: Vec<i64> =
                    (0..*count as i64).filter(|other| other != decision).collect();
                *decision = others[random.below(others.len())?];
            }
            Site::Location(step) => {
                let Some(Raw::Int(decision)) = steps[*step].args.last_mut() else { return None };
                let most = decision.saturating_add(1).clamp(0, MAX_DEPTH);
                let others: Vec<i64> = (-2..=most).filter(|other| other != decision).collect();
                *decision = others[random.below(others.len())?];
            }
            Site::Plain(name) => {
                let primitive = primitives::find("unroll")?;
                steps.push(Step {
                    names: Vec::new(),
                    primitive,
                    args: vec![Raw::Name(name.clone())],
                });
            }
        }
        Some(Self { steps })
    }

    fn sites(&self) -> Vec<Site> {
        let mut sites = Vec::new();
        for (number, step) in self.steps.iter().enumerate() {
            if MARKS.contains(&step.primitive.name) {
                sites.push(Site::Mark(number));
            }
            sites.extend(step.sites_of_draw(number));
            for (arg, (param, raw)) in step.primitive.params.iter().zip(&step.args).enumerate() {
                let Raw::List(items) = raw else { continue };
                let ints = items.iter().enumerate().filter(|(_, raw)| matches!(raw, Raw::Int(_)));
                match param.kind {
                    Kind::Factors => {
                        sites.extend(ints.map(|(at, _)| Site::Factor(number, arg, at)))
                    }
                    Kind::Loops if step.primitive.name == "reorder" => {
                        sites.extend((1..items.len()).map(|at| Site::Order(number, at - 1)));
                    }
                    _ => {}
                }
            }
        }
        sites.extend(self.unmarked().map(Site::Plain));
        sites
    }

    /// The loops that a split made and nobody marked.
    fn unmarked(&self) -> impl Iterator<Item = String> {
        let is_marked = |name: &str| {
            let marks = self.steps.iter().filter(|step| MARKS.contains(&step.primitive.name));
            marks.flat_map(|step| &step.args).any(|arg| matches!(arg, Raw::Name(it) if it == name))
        };
        let splits = self.steps.iter().filter(|step| step.primitive.name == "split");
        splits.flat_map(|step| &step.names).filter(move |name| !is_marked(name)).cloned()
    }
}

impl Step {
    /// What may be drawn otherwise. What was not drawn yet is no decision.
    fn sites_of_draw(&self, number: usize) -> Vec<Site> {
        match (self.primitive.name, self.args.as_slice()) {
            ("sample_categorical", [Raw::List(candidates), .., Raw::Int(_)])
                if candidates.len() > 1 =>
            {
                vec![Site::Candidate(number, candidates.len())]
            }
            ("sample_compute_location", [.., Raw::Int(_)]) => vec![Site::Location(number)],
            ("sample_tile", [.., Raw::List(numbers)]) => {
                let last = self.args.len() - 1;
                (0..numbers.len()).map(|at| Site::Factor(number, last, at)).collect()
            }
            ("sample_perfect_tile", [.., Raw::List(factors)]) => {
                let value = |at: usize| match factors[at] {
                    Raw::Int(value) => value,
                    _ => 0,
                };
                let fits = |from: usize, to: usize| {
                    let part = least_part(value(from)).and_then(|part| part.checked_mul(value(to)));
                    from != to && part.is_some_and(|all| all <= self.most_of(to))
                };
                let pairs = (0..factors.len())
                    .flat_map(|from| (0..factors.len()).map(move |to| (from, to)));
                let pairs = pairs.filter(|&(from, to)| fits(from, to));
                pairs.map(|(from, to)| Site::Tile(number, from, to)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// How large a factor that is drawn may be.
    fn most_of(&self, at: usize) -> i64 {
        match self.args.as_slice() {
            [_, _, Raw::Int(most), Raw::List(factors)] if at + 1 == factors.len() => *most,
            _ => i64::MAX,
        }
    }
}

/// The least factor of a number, but for 1.
fn least_part(number: i64) -> Option<i64> {
    primes(number).first().map(|&(prime, _)| prime)
}

/// Another factor near this one.
fn other(random: &mut Random, value: i64) -> Option<i64> {
    let scaled = SCALES.iter().flat_map(|scale| [value.saturating_mul(*scale), value / scale]);
    let near = [value.saturating_add(1), value - 1];
    let all = scaled.chain(near);
    let all = all.filter(|&other| other != value && (1..=MAX_FACTOR).contains(&other));
    let all: Vec<i64> = all.collect();
    Some(all[random.below(all.len())?])
}
