//! What a planned function does: calls of programs with addresses, copies, and choices.

use super::sizes::{Agreement, Size, SizeStep};
use crate::ir::{DType, NodeSource};
use crate::runtime::signature::TensorSpec;

/// The symbol of the function.
pub const ENTRY_SYMBOL: &str = "tenon_main";

/// The symbol of the function that says how large its outputs and its workspace are.
pub const SIZES_SYMBOL: &str = "tenon_sizes";

/// What the function does.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub inputs: Vec<TensorSpec>,
    pub outputs: Vec<TensorSpec>,
    /// Numbers that are computed first, by their steps.
    pub steps: Vec<SizeStep>,
    /// What the extents of an input must be, beyond what its spec says.
    pub extents: Vec<GivenExtent>,
    /// The shapes of the outputs.
    pub output_shapes: Vec<Vec<Size>>,
    /// What must hold of the numbers.
    pub agreements: Vec<Agreement>,
    /// Symbols of the constants.
    pub constants: Vec<String>,
    /// Symbols of the kernels.
    pub kernels: Vec<String>,
    /// What is done, in order.
    pub actions: Vec<Action>,
    /// Bytes of the workspace.
    pub workspace: Size,
    /// Where in the workspace the kernels have their own buffers.
    pub scratch: Size,
    /// Whether it takes note of the time between kernels.
    pub is_profiled: bool,
}

impl Entry {
    /// The calls of kernels, in the order in which they stand.
    pub fn calls(&self) -> impl Iterator<Item = &KernelCall> {
        self.actions.iter().filter_map(|action| match action {
            Action::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// One thing that the function does.
#[derive(Clone, Debug)]
pub enum Action {
    Call(KernelCall),
    Write(Write),
    Copy(Copy),
    /// What must hold for what stands behind it to be right.
    Agree(Agreement),
    /// What stands up to its [`Otherwise`](Action::Otherwise) is done if the byte there is not 0; what stands from there to
    /// its [`End`](Action::End), if it is.
    Choose(Place),
    Otherwise,
    End,
}

/// An extent that the caller gives, and what it must be.
#[derive(Clone, Copy, Debug)]
pub struct GivenExtent {
    pub input: usize,
    pub axis: usize,
    pub expected: Size,
}

/// A call of a kernel.
#[derive(Clone, Debug)]
pub struct KernelCall {
    /// Its number in [`Entry::kernels`].
    pub kernel: usize,
    pub args: Vec<EntryArgument>,
    /// What the symbols of the kernel's parameters stand for, in their order.
    pub symbols: Vec<Size>,
    /// What the call came from.
    pub source: NodeSource,
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EntryArgument {
    Memory(Place),
    Scalar { dtype: DType, value: Size },
}

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub base: Base,
    /// Bytes behind it.
    pub offset: Size,
}

/// What an address is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    Input(usize),
    Output(usize),
    Constant(usize),
    Workspace,
}

/// Numbers to be written side by side, as i64.
#[derive(Clone, Debug)]
pub struct Write {
    pub to: Place,
    pub numbers: Vec<Size>,
}

/// Bytes to be copied.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    pub from: Place,
    pub to: Place,
    pub bytes: Size,
}
