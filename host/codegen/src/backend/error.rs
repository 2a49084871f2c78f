//! What keeps a tensor program from becoming code.

use std::error::Error;

/// An error of a code generator, by who can act on it.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The program, and what is wrong with it.
    #[error("tensor program `{program}`{}: {problem}", from_text(.came_from))]
    Program { program: String, came_from: Option<String>, problem: Problem },
    /// There is no code generator.
    #[error("this program was built without a code generator")]
    Absent,
    /// The code generator failed, for a reason of its own.
    #[error(transparent)]
    Generator(Box<dyn Error + Send + Sync>),
}

impl BackendError {
    /// The program that it is about.
    pub fn program(&self) -> Option<&str> {
        match self {
            Self::Program { program, .. } => Some(program),
            Self::Absent | Self::Generator(_) => None,
        }
    }

    /// The error, once it is known what the program came from.
    pub fn with_source(self, source: Option<String>) -> Self {
        match self {
            Self::Program { program, problem, .. } => {
                Self::Program { program, came_from: source, problem }
            }
            error => error,
        }
    }
}

/// Where it stands in a text or a model, behind the name of a program.
pub fn from_text(came_from: &Option<String>) -> String {
    came_from.as_ref().map_or(String::new(), |from| format!(", from {from}"))
}

/// What is wrong with a tensor program, by who can act on it.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// What a pass would have taken away, which the user adds to the pipeline; `fact` is what that establishes.
    #[error("{what} is left over: no pass has established `{fact}`")]
    Left { what: String, fact: &'static str },
    /// A dimension is not known; the user gives it a value.
    #[error("{what} has the symbolic shape {shape}; give its dimensions values, as in -D n=1")]
    Symbolic { what: String, shape: String },
    /// The code generator does not do this.
    #[error("{what} cannot be compiled: {reason}")]
    Unsupported { what: String, reason: String },
    /// The program breaks a rule of the IR: a mistake of the pass that made it.
    #[error("the program is broken: {0}")]
    Malformed(String),
    /// Our mistake in the use of the code generator.
    #[error("the code generator refuses an instruction: {0}")]
    Instruction(String),
}

impl Problem {
    /// The error, once it is known which program is meant.
    pub fn of(self, program: &str) -> BackendError {
        BackendError::Program { program: program.to_owned(), came_from: None, problem: self }
    }

    /// That the program is broken.
    pub fn malformed<T>(what: impl Into<String>) -> Result<T, Problem> {
        Err(Problem::Malformed(what.into()))
    }

    /// That there is no code for something.
    pub fn unsupported<T>(
        what: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<T, Problem> {
        Err(Problem::Unsupported { what: what.into(), reason: reason.into() })
    }
}
