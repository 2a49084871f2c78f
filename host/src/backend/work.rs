//! What a code generator is given to do.

use tenon_plugin_api::rule::TensorIntrinsic;

use crate::ir::{Context, Dim, Function, Symbol, symbols_of};
use crate::plan::Entry;
use crate::runtime::model::LIBRARY_INFO;

/// A piece of work: each becomes an object of its own.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// The function that runs a whole model.
    Entry(&'a Entry),
    /// A tensor program.
    Kernel(Kernel<'a>),
    /// What a library exports.
    Front(Front<'a>),
    /// Constants by their symbols, where objects have a format that nobody but the code generator writes.
    Constants(&'a [(&'a str, &'a [u8])]),
}

/// A program to be compiled.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'a> {
    /// Its name in messages.
    pub name: &'a str,
    /// The symbol it gets.
    pub symbol: &'a str,
    /// A tensor program.
    pub function: &'a Function,
    /// The intrinsics that its loops name.
    pub intrinsics: &'a [TensorIntrinsic],
}

impl Kernel<'_> {
    /// The symbols of its parameters' types, in the order in which they are met. A call gives the value of each, as
    /// `i64`, behind the arguments.
    pub fn symbols(&self) -> Vec<Symbol> {
        let (body, terms) = (self.function.view(), self.function.cx().terms());
        let types = self.function.params().into_iter().filter_map(|param| body.ty(param));
        symbols_of(terms, types)
    }
}

/// What the caller of a program must lend it: one block that begins on a boundary of 64 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scratch {
    /// Bytes at the beginning, a multiple of 64.
    pub bytes: u64,
    /// Bytes of the regions behind it, in the symbols of the program; each begins on a boundary of 64 bytes.
    pub regions: Vec<Dim>,
}

/// A program on a device: the symbol that starts it, and how many threads run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub symbol: String,
    pub shape: LaunchShape,
}

/// How many threads run a program on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Bytes that the threads of a block share.
    pub shared_bytes: u64,
}

/// What a library exports around the function of the model.
#[derive(Clone, Copy, Debug)]
pub struct Front<'a> {
    pub prefix: &'a str,
    /// A digest of what inputs and outputs are.
    pub interface: &'a str,
    /// Where it is the same for all inputs.
    pub workspace: Option<u64>,
    /// The signature as JSON.
    pub info: &'a str,
    /// Whether it is the library, and not one of several objects in a program, and has the name that all libraries share.
    pub is_library: bool,
}

impl Front<'_> {
    /// The symbols that the library exports.
    pub fn exports(&self) -> Vec<String> {
        let exact = format!("run_{}", self.interface);
        let size = self.workspace.map(|_| "workspace_size");
        let named = ["run", &exact, "sizes", "info"].into_iter().chain(size);
        let named = named.map(|name| format!("{}_{name}", self.prefix));
        let shared = self.is_library.then(|| LIBRARY_INFO.to_owned());
        named.chain(shared).collect()
    }
}

/// How to compile.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compilation {
    /// What is made.
    pub emit: Emit,
    /// How many threads compile; 0 for one a processor.
    pub threads: usize,
}

/// What comes out of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Emit {
    /// A relocatable object file.
    #[default]
    Object,
    /// The processor's assembly as text.
    Assembly,
    /// The text that the code generator works with, as it was optimized.
    Text,
    /// The same, as it was built.
    RawText,
}
