//! What can go wrong between a module and running code.

use std::path::PathBuf;

/// An error of the LLVM back end, by who can act on it.
#[derive(Debug, thiserror::Error)]
pub enum LlvmError {
    /// The target string is wrong.
    #[error("target `{target}`: {problem}")]
    Target { target: String, problem: TargetProblem },

    /// LLVM refuses a module that we built: our mistake.
    #[error("unit `{unit}` is not a valid LLVM module: {message}")]
    InvalidModule { unit: String, message: String },

    /// LLVM failed on a valid module.
    #[error("LLVM could not {action} unit `{unit}`: {message}")]
    Codegen { unit: String, action: &'static str, message: String },

    /// The module calls what no runtime provides: our mistake, found before the user's loader does.
    #[error("unit `{unit}` needs {}, which nothing provides; allowed are {}", list(.symbols), list(.allowed))]
    UndefinedSymbols { unit: String, symbols: Vec<String>, allowed: Vec<String> },

    /// The in-process linker refused.
    #[error("could not {action}: {message}")]
    Jit { action: &'static str, message: String },

    /// A symbol was asked for that no object defines.
    #[error("no function `{name}` in the compiled code")]
    NoSuchFunction { name: String },

    /// There is no linker on this machine.
    #[error("no linker found; looked for {}. Install one, for example: apt-get install lld-22", list(.searched))]
    NoLinker { searched: Vec<String> },

    /// The linker ran and failed.
    #[error("{} failed with {status}:\n{output}", .linker.display())]
    Link { linker: PathBuf, status: String, output: String },

    /// A name or a size that does not fit the object format.
    #[error("constants object: {0}")]
    Constants(String),

    /// The operating system said no.
    #[error("{action} {}: {source}", .path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

/// What is wrong with a target, and what would be right.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the variants are")]
pub enum TargetProblem {
    #[error("is empty; write `llvm`, `cpu` or a triple")]
    Empty,
    #[error("there is no key `{0}`; the keys are `cpu`, `features`, `vector-width`")]
    NoKey(String),
    #[error("`{0}` is no `key=value` and no `+feature`")]
    NoPart(String),
    #[error("vector-width={0} is none of 128, 256, 512")]
    NoWidth(String),
    #[error("vector-width={bits} is wider than the {has} bits of `{cpu}`")]
    WiderThanProcessor { bits: u32, has: u32, cpu: String },
    #[error("there is no code generator for `{0}`; there is x86_64 and aarch64")]
    NoArchitecture(String),
    #[error("cpu=native is this machine's, which is {0}")]
    NotThisMachine(String),
    #[error("LLVM knows no processor `{name}`{near}")]
    NoProcessor { name: String, near: String },
    #[error("LLVM knows no feature `{name}`{near}")]
    NoFeature { name: String, near: String },
    #[error("feature `{0}` needs a `+` or a `-` in front")]
    NoSign(String),
    #[error("LLVM makes no target machine for it")]
    NoMachine,
    #[error("{0}")]
    Llvm(String),
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
