//! A line of the database.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::DIGEST_LEN;

/// The version that is written; lines of a greater one are passed over.
pub(crate) const VERSION: u32 = 1;

/// What a program is known by. Digests of 32 hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Keys {
    /// Of the plain program, apart from names and the contents of constants.
    pub program: String,
    /// Of the block that costs most: its loops with their extents, and how it moves through memory. Programs that compute the same
    /// and do something else with it afterwards have it in common.
    pub anchor: String,
    /// The same, with extents rounded up to powers of two.
    pub sizes: String,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The version of its form.
    pub v: u32,
    /// Of what program.
    #[serde(flatten)]
    pub keys: Keys,
    /// The digest of what matters of the target: architecture, processor, features, caches, threads.
    pub target: String,
    /// What was found.
    #[serde(flatten)]
    pub found: Found,
}

/// What was found of a schedule of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "found", rename_all = "lowercase")]
pub enum Found {
    /// It was the fastest so far.
    Best(Best),
    /// It takes so many milliseconds.
    Tried {
        /// The digest of its trace.
        schedule: String,
        /// Milliseconds of a run.
        ms: f64,
    },
    /// It has no code, comes to no end, or computes something else.
    Failed {
        /// The digest of its trace.
        schedule: String,
        /// Why, in a line.
        why: String,
    },
}

/// The fastest schedule so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The digest of its trace.
    pub schedule: String,
    /// What the program computes, as its attribute `op_name` says.
    pub op: String,
    /// The rule that made it, with the module that it stands in; a rule of this name may be another one in another version.
    pub rule: String,
    /// What was asked of the rule. Empty where the trace is not one of a rule.
    pub knobs: BTreeMap<String, i64>,
    /// The trace.
    pub trace: String,
    /// Milliseconds of a run.
    pub ms: f64,
    /// Milliseconds of a run of what the rules choose by themselves, measured beside it.
    pub default_ms: f64,
    /// What it was compared with before its time counted: `evaluator`, or `plain code`.
    pub judge: String,
    /// The processor, for people.
    pub cpu: String,
    /// The version of Tenon.
    pub tenon: String,
}

impl Line {
    /// A line of today's form.
    pub fn new(keys: &Keys, target: &str, found: Found) -> Self {
        Self { v: VERSION, keys: keys.clone(), target: target.to_owned(), found }
    }

    /// The digest of the trace that it is about.
    pub fn schedule(&self) -> &str {
        match &self.found {
            Found::Best(best) => &best.schedule,
            Found::Tried { schedule, .. } | Found::Failed { schedule, .. } => schedule,
        }
    }

    /// As it stands in a file, with the end of the line.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// What a line of a file says; nothing where it is none, or of a newer form.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let line: Self = serde_json::from_slice(text).ok()?;
        let Keys { program, anchor, sizes } = &line.keys;
        let is_well_formed = line.v == VERSION
            && [program, anchor, sizes, &line.target]
                .iter()
                .all(|key| key.is_empty() || key.len() == DIGEST_LEN)
            && match &line.found {
                Found::Best(best) => is_time(best.ms) && is_time(best.default_ms),
                Found::Tried { ms, .. } => is_time(*ms),
                _ => true,
            };
        is_well_formed.then_some(line)
    }
}

/// Whether it is a time that something can take.
fn is_time(ms: f64) -> bool {
    ms.is_finite() && ms > 0.0
}
