//! What a code generator is given to do.

use tenon_plugin_api::rule::TensorIntrinsic;

use crate::plan::Code;
use tenon_ir::{Bytes, Context, Dim, Function, Symbol, symbols_of};
use tenon_runtime::cpu::CpuNeed;
use tenon_runtime::functions::LIBRARY_INFO;
use tenon_runtime::weights::WeightsInfo;

/// The symbol of the table in which code finds its constants: how far each is behind what [`WEIGHTS`] says.
pub const CONSTANTS: &str = "tenon_constants";

/// The symbol of the address from which constants are counted: 0, unless they lie in a file that is mapped. All code of a library has
/// one.
pub const WEIGHTS: &str = "tenon_weights";

/// A piece of work: each becomes an object of its own.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// The functions that callers call, and those that they need.
    Code(&'a Code),
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

/// What a library exports around the functions of the model.
#[derive(Clone, Copy, Debug)]
pub struct Front<'a> {
    pub prefix: &'a str,
    pub functions: &'a [FrontFunction],
    /// Whether the first function is the one that is meant where nobody names one.
    pub has_default: bool,
    /// What it says of itself, as JSON.
    pub info: &'a str,
    /// Whether it is the library, and not one of several objects in a program, and has the name that all libraries share.
    pub is_library: bool,
    /// The processors that there is code for, the best first; none where every one runs the code, and nothing is asked.
    pub processors: &'a [FrontProcessor],
    /// The tables of constants.
    pub constants: &'a [ConstantTable],
    /// The file that has the constants, where the library has not.
    pub weights: Option<&'a WeightsInfo>,
}

/// Code for one processor, to be loaded into a process.
#[derive(Clone, Copy, Debug)]
pub struct Loadable<'a> {
    /// The symbols of each function, and of the one that says its sizes.
    pub names: &'a [[&'a str; 2]],
    pub objects: &'a [&'a [u8]],
    /// The symbol of the table of its constants: [`CONSTANTS`], with a suffix where there is code for several processors.
    pub table: &'a str,
    /// The constants by their symbols, in the order of the table.
    pub constants: &'a [(&'a str, Bytes)],
}

/// The table in which the code for a processor finds its constants.
#[derive(Clone, Debug)]
pub struct ConstantTable {
    /// The symbol of the table.
    pub symbol: String,
    pub places: ConstantPlaces,
}

impl ConstantTable {
    /// Whether it has anything.
    pub fn has_any(&self) -> bool {
        match &self.places {
            ConstantPlaces::Symbols(symbols) => !symbols.is_empty(),
            ConstantPlaces::Offsets(offsets) => !offsets.is_empty(),
        }
    }
}

/// Where constants are.
#[derive(Clone, Debug)]
pub enum ConstantPlaces {
    /// In the library, under these symbols.
    Symbols(Vec<String>),
    /// So far behind the beginning of a file.
    Offsets(Vec<u64>),
}

/// A processor that a library has code for.
#[derive(Clone, Debug)]
pub struct FrontProcessor {
    /// Its target as a text.
    pub target: String,
    /// What it has to have for the code.
    pub needs: Vec<CpuNeed>,
}

/// The symbols that the code has for a function, and for what says its sizes.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FrontCode {
    pub run: String,
    pub sizes: String,
}

/// A function that a library exports.
#[derive(Clone, Debug)]
pub struct FrontFunction {
    /// Its name in the module.
    pub name: String,
    /// What its names in C begin with.
    pub prefix: String,
    /// Its code: for each processor, or one.
    pub code: Vec<FrontCode>,
    /// A digest of what inputs and outputs are.
    pub interface: String,
    /// Where it is the same for all inputs.
    pub workspace: Option<u64>,
    /// Whether it takes memory while it runs, so that its code has one more parameter.
    pub takes: bool,
}

impl FrontFunction {
    /// Its names in C.
    pub fn exports(&self) -> impl Iterator<Item = String> {
        let exact = format!("run_{}", self.interface);
        let named =
            ["run", &exact, "run_until", "sizes"].map(|name| format!("{}_{name}", self.prefix));
        let size = self.workspace.map(|_| format!("{}_workspace_size", self.prefix));
        let taking = self.takes.then(|| format!("{}_run_in", self.prefix));
        named.into_iter().chain(size).chain(taking)
    }
}

impl Front<'_> {
    /// The symbols that the library exports besides those of its functions.
    pub fn own_exports(&self) -> impl Iterator<Item = String> {
        let shared = self.is_library.then(|| LIBRARY_INFO.to_owned());
        let weights = self.weights.map(|_| ["set_weights", "weights"]);
        let own = ["info"].into_iter().chain(weights.into_iter().flatten());
        own.map(|name| format!("{}_{name}", self.prefix)).chain(shared)
    }

    /// The symbols that the library exports.
    pub fn exports(&self) -> Vec<String> {
        let functions = self.functions.iter().flat_map(FrontFunction::exports);
        functions.chain(self.own_exports()).collect()
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
