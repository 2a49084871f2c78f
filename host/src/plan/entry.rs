//! What a planned function does: calls of programs with addresses, and copies.

use crate::ir::DType;
use crate::runtime::signature::TensorSpec;

/// The symbol of the function.
pub const ENTRY_SYMBOL: &str = "tenon_main";

/// What the function does.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub inputs: Vec<TensorSpec>,
    pub outputs: Vec<TensorSpec>,
    /// Symbols of the constants.
    pub constants: Vec<String>,
    /// Symbols of the kernels.
    pub kernels: Vec<String>,
    pub calls: Vec<KernelCall>,
    /// Done after the calls, in order.
    pub copies: Vec<Copy>,
    /// Bytes of the workspace.
    pub workspace: u64,
    /// Where in the workspace the kernels have their own buffers.
    pub scratch: u64,
    /// Whether it takes note of the time between kernels.
    pub is_profiled: bool,
}

/// A call of a kernel.
#[derive(Clone, Debug)]
pub struct KernelCall {
    /// Its number in [`Entry::kernels`].
    pub kernel: usize,
    pub args: Vec<EntryArgument>,
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EntryArgument {
    Memory(Place),
    Scalar { dtype: DType, value: i64 },
}

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub base: Base,
    /// Bytes behind it.
    pub offset: u64,
}

/// What an address is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    Input(usize),
    Output(usize),
    Constant(usize),
    Workspace,
}

/// Bytes to be copied.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    pub from: Place,
    pub to: Place,
    pub bytes: u64,
}
