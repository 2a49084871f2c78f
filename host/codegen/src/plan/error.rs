//! Why a graph function cannot be planned.

/// An error of planning, by who can act on it.
#[derive(Clone, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum PlanError {
    /// The module has no such function.
    #[error("the module has no function `{name}`; it has {}", list(.found))]
    NoEntry { name: String, found: Vec<String> },
    /// A range of a symbol that no function has.
    #[error("no input has the dimension `{name}`, of which a range is given; there is {}", list(.found))]
    NoSymbol { name: String, found: Vec<String> },
    /// Nobody said which function is meant.
    #[error(
        "the module has no function `main`, and it is not said which one is meant (`--function`); it has {}",
        list(.found)
    )]
    NoDefault { found: Vec<String> },
    /// The function holds something that code cannot be made of yet.
    #[error("function `{function}`, {place}: {problem}")]
    Binding { function: String, place: String, problem: Box<PlanProblem> },
}

impl PlanError {
    /// What does not hold of the module, where a pass would have established it.
    pub fn missing_fact(&self) -> Option<&'static str> {
        match self {
            PlanError::Binding { problem, .. } => match **problem {
                PlanProblem::Left { fact, .. } => Some(fact),
                PlanProblem::Callee(ref error) => error.missing_fact(),
                _ => None,
            },
            PlanError::NoEntry { .. }
            | PlanError::NoSymbol { .. }
            | PlanError::NoDefault { .. } => None,
        }
    }
}

/// What is wrong with a binding of the graph function.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PlanProblem {
    /// A function that is called has one.
    #[error("what it calls cannot be compiled: {0}")]
    Callee(Box<PlanError>),
    /// What a pass would have taken away; `fact` is what that establishes.
    #[error("{what} is left over: no pass has established `{fact}`")]
    Left { what: String, fact: &'static str },
    #[error("the operator `{op}` is left over; {help}")]
    Operator { op: String, help: &'static str },
    #[error("{what} cannot be compiled ahead of time; {help}")]
    Unsupported { what: String, help: &'static str },
    #[error("{problem}: {remedy}")]
    Symbolic { problem: String, remedy: String },
    #[error("{what} has the type {ty}, where a tensor of known shape is needed")]
    NotATensor { what: String, ty: String },
    #[error("there is no tensor program `{name}`")]
    NoProgram { name: String },
    #[error("`{program}` takes {expected} tensors, and {found} are given")]
    Count { program: String, expected: usize, found: usize },
    #[error("`{program}` takes {expected} as argument {index}, and {found} is given")]
    Argument { program: String, index: usize, expected: String, found: String },
    #[error("`{program}` writes argument {index}, which is {what}")]
    ReadOnly { program: String, index: usize, what: &'static str },
    #[error("arguments {a} and {b} of `{program}` overlap in memory, and one of them is written")]
    Overlap { program: String, a: usize, b: usize },
    #[error("a tensor of {bytes} bytes at offset {offset} does not fit into a storage of {size}")]
    DoesNotFit { bytes: u64, offset: u64, size: u64 },
    #[error("{0} bytes are more than any memory")]
    TooLarge(u128),
    #[error("the function is broken: {0}")]
    Malformed(String),
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => format!("`{}`", names.join("`, `")),
    }
}
