//! Traces that differ from another in one decision.
//!
//! ```text
//! [i_0, i_1] = split(i, [_, 16]); reorder([i_0, k, i_1]); vectorize(i_1)
//!   => [i_0, i_1] = split(i, [_, 8]); reorder([i_0, k, i_1]); vectorize(i_1)      another factor
//!   => [i_0, i_1] = split(i, [_, 16]); reorder([k, i_0, i_1]); vectorize(i_1)     two loops changed places
//!   => [i_0, i_1] = split(i, [_, 16]); reorder([i_0, k, i_1])                     one thing less
//!   => …; vectorize(i_1); unroll(k)                                               one thing more
//! ```
//!
//! Whether such a trace applies says whoever replays it: primitives check themselves. As the mutators of MetaSchedule (J. Shao et
//! al., "Tensor Program Optimization with Probabilistic Programs", 2022), but over what a trace says, whichever rule made it.

use crate::primitives;

use super::Kind;
use super::parse::{Raw, Script, Step};

/// Instructions that say how a loop runs and give nothing that others name.
const MARKS: [&str; 3] = ["unroll", "vectorize", "parallel"];
/// Factors that a factor is multiplied with, or divided by.
const SCALES: [i64; 2] = [2, 3];
/// No factor gets larger.
const MAX_FACTOR: i64 = 1 << 20;

/// A decision that may be another one.
enum Site {
    /// An integer among the factors of an instruction: instruction, argument, place in the list.
    Factor(usize, usize, usize),
    /// Two neighbours in the list of a `reorder`.
    Order(usize, usize),
    /// A mark that may be left out.
    Mark(usize),
    /// A loop that has none, and may be unrolled.
    Plain(String),
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
                *value = random.other(*value)?;
            }
            Site::Order(step, at) => {
                let Some(Raw::List(items)) = steps[*step].args.first_mut() else { return None };
                items.swap(*at, at + 1);
            }
            Site::Mark(step) => drop(steps.remove(*step)),
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

/// Random numbers (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014): the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `count`; nothing where there is none.
    fn below(&mut self, count: usize) -> Option<usize> {
        (count > 0).then(|| (self.next() % count as u64) as usize)
    }

    /// Another factor near this one.
    fn other(&mut self, value: i64) -> Option<i64> {
        let scaled = SCALES.iter().flat_map(|scale| [value.saturating_mul(*scale), value / scale]);
        let near = [value.saturating_add(1), value - 1];
        let all =
            scaled.chain(near).filter(|&other| other != value && (1..=MAX_FACTOR).contains(&other));
        let all: Vec<i64> = all.collect();
        Some(all[self.below(all.len())?])
    }
}
