//! The reference evaluation of tensor programs.
//!
//! A program is first compiled ([`compile`]) to a flat list of instructions ([`code`]) over numbered
//! registers, then interpreted ([`run`]). Integers are kept in i64 and brought
//! back to their type after each operation, floats in f64 and rounded to theirs. Every access is checked.
//!
//! All loops run serially, but those over threads of a program that is bound to them: each thread is a coroutine there
//! ([`threads`]), and memory remembers who touched it, so that races are found ([`shadow`]).

mod code;
mod compile;
mod error;
mod expr;
mod flatten;
mod memory;
mod run;
mod scalar;
mod shadow;
mod threads;

pub use error::ProgramError;

use tenon_ir::{Dim, Symbol, Type};

use code::{Instr, Reg};

/// A tensor program, ready to run.
#[derive(Debug)]
pub(super) struct Program {
    code: Vec<Instr>,
    /// For each instruction the number of its statement.
    origins: Vec<u32>,
    stmts: Vec<Stmt>,
    /// The registers at the start, with literals in their places.
    ints: Vec<i64>,
    floats: Vec<f64>,
    /// Registers that hold a dimension.
    dims: Vec<(Reg, Dim)>,
    /// The registers of indices, for the accesses that refer to them.
    indices: Vec<Index>,
    params: Vec<Param>,
    /// How many of the last parameters are written.
    outputs: usize,
    buffers: Vec<Buffer>,
}

/// One index of an access.
#[derive(Clone, Copy, Debug)]
struct Index {
    reg: Reg,
    is_vector: bool,
}

/// What a parameter is.
#[derive(Clone, Copy, Debug)]
enum Param {
    /// The buffer of this number.
    Buffer(u32),
    /// A scalar in an integer register.
    Int(Reg),
    /// A scalar in a float register.
    Float(Reg),
}

/// A buffer that a program accesses.
#[derive(Clone, Debug)]
struct Buffer {
    name: Symbol,
    ty: Type,
    /// Whether it is in the memory that the threads of a block share.
    is_shared: bool,
    /// The contents, if they are known at compile time.
    constant: Option<crate::Tensor>,
}

/// A statement, for messages.
#[derive(Clone, Copy, Debug)]
struct Stmt {
    what: &'static str,
    name: Symbol,
    node: u32,
}
