//! What is asked of the process that takes times, and what it answers: a line of JSON each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// A program is told of: a function of a module's text, which of its inputs are constants of the model, and the bytes
    /// of all constants there.
    Prepare { task: usize, text: String, function: String, constants: Vec<usize>, bytes: usize },
    /// How a candidate would run.
    Look { task: usize, candidate: Candidate },
    /// How long a schedule takes.
    Measure { task: usize, trace: String },
    /// How long two take, one beside the other.
    Pair { task: usize, first: String, second: String },
}

/// A way to schedule a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Candidate {
    /// As the rules choose.
    Default,
    /// As they choose with these values of knobs.
    Knobs(BTreeMap<String, i64>),
    /// As a trace says, but for one decision, which the seed names.
    Mutant { trace: String, seed: u64 },
}

/// What is answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The program is known, and who judges it.
    Prepared { judge: String },
    /// A candidate has this schedule.
    Looked(Looked),
    /// A candidate has none: no rule takes it, or a primitive refuses it.
    Refused { why: String },
    /// Milliseconds of a run.
    Measured { ms: f64 },
    /// Of two.
    Paired { first: f64, second: f64 },
    /// It has no code, or computes something else.
    Failed { why: String },
}

/// The schedule of a candidate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Looked {
    /// Empty where nothing is to be done.
    pub(super) trace: String,
    pub(super) rule: String,
    pub(super) knobs: BTreeMap<String, i64>,
    /// Cycles that the rule predicts.
    pub(super) cycles: Option<i64>,
}
