//! Buffers whose extents are integers.

use std::ops::Deref;

use tenon_plugin_api::ir::DType;
use tenon_plugin_api::program::{self, Program, Scalar, Stmt};

/// A buffer whose extents are integers.
#[derive(Clone)]
pub(crate) struct Buffer<'k> {
    buffer: program::Buffer<'k>,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<i64>,
}

impl<'k> Deref for Buffer<'k> {
    type Target = program::Buffer<'k>;

    fn deref(&self) -> &program::Buffer<'k> {
        &self.buffer
    }
}

/// The buffers of a program, all of whose extents are integers, and the vector registers of the target.
pub(crate) struct Fixed<'k> {
    pub(crate) inputs: Vec<Buffer<'k>>,
    pub(crate) outputs: Vec<Buffer<'k>>,
    /// How many f32 a register holds, a power of two.
    lanes: i64,
    /// How many registers there are.
    pub(crate) registers: i64,
}

impl<'k> Fixed<'k> {
    /// Those of a program; `None` where an extent is a symbol, or the registers of the target are not known.
    pub(crate) fn of(kernel: &'k Program) -> Option<Self> {
        let fixed = |buffers: Vec<program::Buffer<'k>>| -> Option<Vec<Buffer<'k>>> {
            let fixed = |buffer: program::Buffer<'k>| {
                let shape = buffer.shape().iter().map(|&dim| kernel.dim_value(dim));
                let shape = shape.collect::<Option<_>>()?;
                Some(Buffer { dtype: buffer.dtype(), shape, buffer })
            };
            buffers.into_iter().map(fixed).collect()
        };
        let target = kernel.target();
        let bits = target.int("vector_bits")?.max(32);
        let (inputs, outputs) = (fixed(kernel.inputs())?, fixed(kernel.outputs())?);
        let registers = target.int("vector_registers").unwrap_or(16).max(8);
        Some(Self { inputs, outputs, lanes: 1 << (bits / 32).ilog2(), registers })
    }

    /// How many elements a vector register holds when they are computed with: floats narrower than f32 are computed with as f32.
    pub(crate) fn lanes_of(&self, dtype: DType) -> i64 {
        let bits = if dtype.is_float() { dtype.bits().max(32) } else { dtype.bits().max(8) };
        (self.lanes * 32 / bits as i64).max(1)
    }
}

/// A sequence that is being written. What it names and makes is known until its end.
pub(crate) struct Block<'k>(program::Block<'k>);

impl<'k> Block<'k> {
    pub(crate) fn new(kernel: &'k Program) -> Self {
        Self(kernel.block())
    }

    /// Adds a statement.
    pub(crate) fn push(&mut self, stmt: Stmt) {
        self.0.push(stmt);
    }

    /// Names a scalar; a literal or a variable is its own name.
    pub(crate) fn bind(&mut self, name: &str, value: Scalar<'k>) -> Scalar<'k> {
        self.0.bind(name, value)
    }

    /// Makes a buffer that is small enough for registers or the nearest cache.
    pub(crate) fn local(&mut self, name: &str, dtype: DType, shape: &[i64]) -> Buffer<'k> {
        Buffer { buffer: self.0.local(name, dtype, shape), dtype, shape: shape.to_vec() }
    }

    /// Makes a buffer in memory.
    pub(crate) fn global(&mut self, name: &str, dtype: DType, shape: &[i64]) -> Buffer<'k> {
        Buffer { buffer: self.0.global(name, dtype, shape), dtype, shape: shape.to_vec() }
    }

    /// The sequence.
    pub(crate) fn finish(self) -> Stmt {
        self.0.finish()
    }
}
