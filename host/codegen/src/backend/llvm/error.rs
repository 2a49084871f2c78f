//! What can go wrong between a module and running code.

use crate::object::names_text;

/// An error of LLVM.
#[derive(Debug, Clone, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum LlvmError {
    /// LLVM knows no such target.
    #[error("LLVM makes no target machine for {triple}: {message}")]
    NoMachine { triple: String, message: String },

    /// LLVM refuses a module that we built: our mistake.
    #[error("unit `{unit}` is not a valid LLVM module: {message}")]
    InvalidModule { unit: String, message: String },

    /// LLVM failed on a valid module.
    #[error("LLVM could not {action} unit `{unit}`: {message}")]
    Codegen { unit: String, action: &'static str, message: String },

    /// The code calls what no runtime provides: our mistake.
    #[error("the code needs {}, which nothing provides; allowed are {}", names_text(.symbols), names_text(.allowed))]
    UndefinedSymbols { symbols: Vec<String>, allowed: Vec<String> },

    /// Nobody defines what the code calls.
    #[error(
        "nobody defines {}, which the code calls; `--link FILE` names an object, an archive or a shared library that does",
        names_text(.symbols)
    )]
    NotGiven { symbols: Vec<String> },

    /// A file of others cannot be linked.
    #[error("{message}")]
    LinkedFile { message: String },

    /// The in-process linker refused.
    #[error("could not {action}: {message}")]
    Jit { action: &'static str, message: String },

    /// A symbol was asked for that no object defines.
    #[error("no function `{name}` in the compiled code")]
    NoSuchFunction { name: String },

    /// A constant that lies askew cannot be copied.
    #[error("constant `{symbol}` cannot be copied: {message}")]
    Constant { symbol: String, message: String },
}
