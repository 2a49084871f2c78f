//! Statements in order, with names for scalars and small buffers.

use crate::ir::{Build, BuildPrim, DType};

use super::{Buffer, Program, Scalar, Stmt};

/// A sequence that is being written. What it names and makes is known until its end.
pub struct Block<'p> {
    program: &'p Program,
    stmts: Vec<Stmt>,
}

impl<'p> Block<'p> {
    pub(super) fn new(program: &'p Program) -> Self {
        Self { program, stmts: Vec::new() }
    }

    /// The program it belongs to.
    pub fn program(&self) -> &'p Program {
        self.program
    }

    /// Adds a statement.
    pub fn push(&mut self, stmt: Stmt) {
        self.stmts.push(stmt);
    }

    /// Names a scalar; a literal or a variable is its own name.
    pub fn bind(&mut self, name: &str, value: Scalar<'p>) -> Scalar<'p> {
        let program = self.program;
        if program.writer.borrow().body().operands(value.expr).is_empty() {
            return value;
        }
        let var = program.scalar(|writer| {
            let ty = writer.body().ty(value.expr);
            writer.var(name, ty)
        });
        self.push(program.stmt(|writer| writer.let_stmt(var.expr, value.expr)));
        var
    }

    /// Makes a buffer that is small enough for registers or the nearest cache.
    pub fn local(&mut self, name: &str, dtype: DType, shape: &[i64]) -> Buffer<'p> {
        self.alloc(name, dtype, shape, "local")
    }

    /// Makes a buffer in memory.
    pub fn global(&mut self, name: &str, dtype: DType, shape: &[i64]) -> Buffer<'p> {
        self.alloc(name, dtype, shape, "")
    }

    fn alloc(&mut self, name: &str, dtype: DType, shape: &[i64], scope: &str) -> Buffer<'p> {
        let buffer = self.program.new_buffer(name, dtype, shape, scope);
        self.push(self.program.stmt(|writer| writer.alloc(buffer.expr)));
        buffer
    }

    /// The sequence.
    pub fn finish(self) -> Stmt {
        self.program.seq(&self.stmts)
    }
}
