//! Traces: what was done to a program, as a value that prints, parses and replays.
//!
//! ```text
//! c = block("C")
//! [i, j] = loops(c)
//! [i_0, i_1] = split(i, [_, 16], tail = cut)
//! parallel(i_0); vectorize(i_1)
//! ```
//!
//! An instruction is a primitive with its arguments, and gives names to the loops and blocks that it makes. Arguments stand in
//! the order of the primitive's parameters or are named; those that have a default may be left out. Semicolons and line ends
//! separate instructions. `split@1(…)` says the version of a primitive for which the trace was written; without it, it is 1.

mod map;
mod mutate;
mod parse;
mod primitive;
mod print;

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::refusal::{Refusal, Result};
use crate::schedule::{Block, Loop, Schedule};

pub(crate) use map::IndexMap;
pub use parse::{Script, TraceError};
pub(crate) use primitive::At;
pub(crate) use primitive::distinct;
pub(crate) use primitive::{Args, Kind, Param, Value};
pub use primitive::{Handle, Number, Place, Primitive};

/// A primitive that was applied.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub(crate) primitive: &'static Primitive,
    pub(crate) args: Args,
    pub(crate) results: Vec<Handle>,
}

/// The primitives that were applied to a program, in order, with the names of their results.
#[derive(Clone, Default, Debug)]
pub struct Trace {
    steps: Vec<(Instruction, Vec<String>)>,
    names: HashMap<Handle, String>,
    taken: HashMap<String, u32>,
}

impl Trace {
    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether an instruction changed anything.
    pub(crate) fn has_changed(&self) -> bool {
        self.steps.iter().any(|(step, _)| !crate::primitives::is_finder(step.primitive))
    }

    /// Adds an instruction. What has a name keeps it; names that something else has get a number.
    pub(crate) fn push(&mut self, instruction: Instruction, names: Vec<String>) {
        let mut own = Vec::new();
        for (&result, name) in instruction.results.iter().zip(&names) {
            let name = match self.names.get(&result) {
                Some(name) => name.clone(),
                None => self.fresh(name),
            };
            self.names.insert(result, name.clone());
            own.push(name);
        }
        self.steps.push((instruction, own));
    }

    /// The instructions without those that find what nobody uses, or what has a name already.
    fn needed(&self) -> Vec<&(Instruction, Vec<String>)> {
        let mut finds: HashMap<Handle, usize> = HashMap::new();
        for (at, (step, _)) in self.steps.iter().enumerate() {
            for &result in &step.results {
                finds.entry(result).or_insert(at);
            }
        }
        let mut used: HashSet<Handle> = HashSet::new();
        let mut needed: Vec<&(Instruction, Vec<String>)> = Vec::new();
        for (at, step) in self.steps.iter().enumerate().rev() {
            let (instruction, _) = step;
            let is_first = |result: &Handle| finds[result] == at && used.contains(result);
            let is_finder = crate::primitives::is_finder(instruction.primitive);
            if !is_finder || instruction.results.iter().any(is_first) {
                used.extend(instruction.args.handles());
                needed.push(step);
            }
        }
        needed.reverse();
        needed
    }

    fn fresh(&mut self, name: &str) -> String {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut name: String = name.chars().map(|c| if is_letter(c) { c } else { '_' }).collect();
        if name.is_empty() || name == "_" || name.starts_with(|c: char| c.is_ascii_digit()) {
            name.insert(0, 'x');
        }
        let count = self.taken.entry(name.clone()).or_insert(0);
        *count += 1;
        if *count == 1 {
            return name;
        }
        let numbered = format!("{name}_n{count}");
        self.taken.insert(numbered.clone(), 1);
        numbered
    }
}

impl Schedule {
    /// Applies the instructions of a script, in order, up to the first that is refused.
    pub fn replay(&mut self, script: &Script) -> Result<()> {
        let mut known: HashMap<&str, Handle> = HashMap::new();
        for step in script.steps() {
            let primitive = step.primitive();
            let args = step.resolve(&known).map_err(|reason| Refusal {
                primitive: primitive.name,
                reason,
                place: None,
            })?;
            let results = self.apply(primitive, args, step.given_names())?;
            let names = step.names(results.len()).map_err(|reason| Refusal {
                primitive: primitive.name,
                reason,
                place: None,
            })?;
            known.extend(names.iter().map(String::as_str).zip(results));
        }
        Ok(())
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (instruction, names)) in self.needed().into_iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            print::instruction(f, instruction, names, &self.names)?;
        }
        Ok(())
    }
}

impl From<Loop> for Handle {
    fn from(handle: Loop) -> Self {
        Handle::Loop(handle)
    }
}

impl From<Block> for Handle {
    fn from(handle: Block) -> Self {
        Handle::Block(handle)
    }
}
