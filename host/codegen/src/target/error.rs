//! What is wrong with the text of a target, and what would be right.

use super::Architecture;
use crate::backend::BackendError;

/// An error of the text of a target.
#[derive(Debug, thiserror::Error)]
#[error("target `{target}`: {problem}")]
#[allow(missing_docs, reason = "the message says what the fields are")]
pub struct TargetError {
    pub target: String,
    pub problem: Box<TargetProblem>,
}

impl TargetError {
    pub(super) fn new(target: &str, problem: TargetProblem) -> TargetError {
        TargetError { target: target.to_owned(), problem: Box::new(problem) }
    }
}

/// What is wrong with it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the variants are")]
pub enum TargetProblem {
    #[error("it is empty; write `native`, a name that `tenon targets list` shows, or a triple")]
    Empty,
    #[error(
        "there is no target `{name}`; `tenon targets list` shows those that have names, and a triple begins with {} and names a system, such as `linux-gnu`{near}",
        architectures()
    )]
    NoTarget { name: String, near: String },
    #[error("there is no key `{key}`; the keys are {keys}{near}")]
    NoKey { key: String, near: String, keys: String },
    #[error("`{0}` is no `key=value` and no `+feature`")]
    NoPart(String),
    #[error("vector-width={0} is none of 128, 256, 512")]
    NoWidth(String),
    #[error("float={0} is none of strict, contract")]
    NoFloatMode(String),
    #[error("{key}={value} is no size; sizes are written `48K`, `2M`")]
    NoSize { key: String, value: String },
    #[error("{key}={value} is no number of {key}")]
    NoCount { key: String, value: String },
    #[error("vector-width={bits} is wider than the {has} bits of `{cpu}`")]
    WiderThanProcessor { bits: u32, has: u32, cpu: String },
    #[error("this program was built without a code generator for {0}")]
    NoBackend(Architecture),
    #[error("cpu=native is this machine's, which is {0}")]
    NotThisMachine(String),
    #[error("{architecture} has no processor `{name}`{near}")]
    NoProcessor { architecture: Architecture, name: String, near: String },
    #[error("{architecture} has no feature `{name}`{near}")]
    NoFeature { architecture: Architecture, name: String, near: String },
    #[error("feature `{0}` needs a `+` or a `-` in front")]
    NoSign(String),
    #[error("one target is expected here; a library or an object alone is for several")]
    Several,
    #[error("one library is for {0} processors at most")]
    TooMany(usize),
    #[error("it is named twice")]
    Twice,
    #[error("it is for another system than {0}, and one library is for one")]
    OtherSystem(String),
    #[error(
        "what a processor can do is found out on x86-64 alone; compile a library of its own for {0}"
    )]
    NoChoice(Architecture),
    #[error(
        "whether a processor has `{0}` is not known how to find out when a library is loaded; leave it out: features=-{0}"
    )]
    NotAsked(String),
    #[error("this machine can run none of them")]
    NoneRunsHere,
    #[error(transparent)]
    Backend(#[from] BackendError),
}

fn architectures() -> String {
    let [others @ .., last] = Architecture::ALL.map(Architecture::name);
    format!("{} or {last}", others.join(", "))
}
