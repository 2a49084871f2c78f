//! What planned functions do: calls of programs with addresses, copies, and choices.

use std::collections::HashSet;

use super::circles::Circle;
use super::memory::TakenOutput;
use super::ranges::RangedSize;
use super::sizes::{Agreement, CheckNumber, Size, SizeStep};
use tenon_ir::{DType, NodeSource};
use tenon_runtime::signature::TensorSpec;

/// What the functions do that callers call, and the others that they need for that.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The functions that callers call.
    pub entries: Vec<Entry>,
    /// Symbols of the constants.
    pub constants: Vec<String>,
    /// Symbols of the kernels.
    pub kernels: Vec<String>,
    /// Those of them that have code of others, or call it: what they fail with is what the model's function fails with.
    pub external: HashSet<usize>,
    /// The functions that are called by others, each behind those that it calls, but for those of a circle.
    pub routines: Vec<Routine>,
    /// What is checked while it runs, a text each; a status says by the number, from 1 on, which one failed.
    pub checks: Vec<String>,
    /// Whether it takes note of the time between kernels.
    pub is_profiled: bool,
}

/// What a function does that callers call.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The symbol of the function.
    pub symbol: String,
    /// The symbol of the function that says how large its outputs and its workspace are.
    pub sizes_symbol: String,
    pub inputs: Vec<TensorSpec>,
    pub outputs: Vec<TensorSpec>,
    pub body: Body,
    /// What the extents of an input must be, beyond what its spec says.
    pub extents: Vec<GivenExtent>,
    /// The shapes of the outputs; of extents that are found, how large they are at most, or -1 where nobody knows.
    pub output_shapes: Vec<Vec<Size>>,
    /// Extents of outputs that are known when it is done.
    pub found: Vec<FoundExtent>,
    /// What must hold of the numbers.
    pub agreements: Vec<(Agreement, CheckNumber)>,
    /// Ranges that numbers of the call must lie in.
    pub ranges: Vec<RangedSize>,
    /// Inputs that are updated in place if the caller gives the same buffer as the output beside it. All else must be apart, which
    /// is checked where there is one.
    pub in_place: Vec<[usize; 2]>,
    /// Outputs that are inputs with something behind it.
    pub rooms: Vec<Room>,
    /// Bytes of the inputs and of the outputs.
    pub input_bytes: Vec<Size>,
    pub output_bytes: Vec<Size>,
    /// The outputs that are memory which the function takes, in their order.
    pub taken: Vec<TakenOutput>,
}

/// What a function does.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Numbers that are computed first, by their steps.
    pub steps: Vec<SizeStep>,
    /// What is done, in order.
    pub actions: Vec<Action>,
    /// Bytes of the workspace.
    pub workspace: Size,
    /// Where in the workspace what is called has its own.
    pub scratch: Size,
    /// How many pieces of memory it takes when their sizes are known.
    pub slots: usize,
    /// Whether it takes any, or calls what does.
    pub takes: bool,
}

/// A function that others call. It is given addresses: of what it reads, then of what it writes; then numbers.
#[derive(Clone, Debug)]
pub struct Routine {
    /// Its name in the module.
    pub name: String,
    /// How many tensors it reads and writes.
    pub inputs: usize,
    pub outputs: usize,
    /// How many numbers it is given.
    pub numbers: usize,
    pub body: Body,
    /// What it writes into memory that it takes: of these outputs it is given where to leave the address.
    pub taken: Vec<TakenOutput>,
    /// Where it calls itself, the functions over which it does.
    pub circle: Option<Circle>,
}

impl Code {
    /// All bodies, those of the entries last.
    pub fn bodies(&self) -> impl Iterator<Item = &Body> {
        let routines = self.routines.iter().map(|routine| &routine.body);
        routines.chain(self.entries.iter().map(|entry| &entry.body))
    }

    /// The same, to be changed.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Body> {
        let routines = self.routines.iter_mut().map(|routine| &mut routine.body);
        routines.chain(self.entries.iter_mut().map(|entry| &mut entry.body))
    }

    /// The calls of kernels, in the order in which they stand.
    pub fn kernel_calls(&self) -> impl Iterator<Item = (usize, &Call)> {
        let actions = self.bodies().flat_map(|body| &body.actions);
        actions.filter_map(|action| match action {
            Action::Call(call @ Call { callee: Callee::Kernel(kernel), .. }) => {
                Some((*kernel, call))
            }
            _ => None,
        })
    }
}

/// One thing that the function does.
#[derive(Clone, Debug)]
pub enum Action {
    Call(Call),
    Write(Write),
    Copy(Copy),
    /// What must hold for what stands behind it to be right.
    Agree(Agreement, CheckNumber),
    Find(Find),
    /// That the byte there must not be 0.
    Expect(Place, CheckNumber),
    Take(Take),
    /// Gives back what was taken, by its number.
    GiveBack(usize),
    /// What was taken is needed up to here.
    Keep(usize),
    /// What stands up to its [`Otherwise`](Action::Otherwise) is done if the byte there is not 0; what stands from there to
    /// its [`End`](Action::End), if it is.
    Choose(Place),
    Otherwise,
    End,
    Loop(Box<Loop>),
}

/// Memory that is taken, by its number among those of the function, and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Take {
    pub slot: usize,
    pub bytes: Size,
}

/// Calls of a routine, one for each trip. It is given the number of the trip, what is carried, and what it reads besides; it
/// gives whether to go on, what is carried, and rows.
#[derive(Clone, Debug)]
pub struct Loop {
    /// How many trips there are at most.
    pub limit: Limit,
    /// The byte that says whether there is a first trip, and the one that says whether there is another.
    pub go: Place,
    pub again: Place,
    /// Where the number of the trip stands.
    pub trip: Place,
    pub carried: Vec<Carried>,
    pub rows: Vec<Rows>,
    /// By its number in [`Code::routines`].
    pub routine: usize,
    pub args: Vec<LoopArgument>,
    /// What the symbols of the parameters stand for.
    pub symbols: Vec<Size>,
    /// What it is lent, where that is taken.
    pub lent: Option<Take>,
}

/// How many trips a loop makes at most.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    Number(Size),
    /// An i64 in memory.
    At(Place),
}

/// A tensor that each trip takes from the last one. Trips write to two places in turn; in the end it is at the first one.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// Where the first trip reads it.
    pub from: Place,
    pub here: Place,
    pub there: Place,
    /// Of what the first trip reads.
    pub bytes: Size,
    /// Whether each trip takes the memory for what it gives, in the numbers of these places.
    pub is_taken: bool,
}

/// Where trips write a row each.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub to: Place,
    /// Bytes of one.
    pub bytes: Size,
    /// Where nobody knows before how many there are: what is taken meanwhile for more of them.
    pub more: Option<Place>,
}

/// An argument of the routine of a loop.
#[derive(Clone, Copy, Debug)]
pub enum LoopArgument {
    Memory(Place),
    /// What is carried into a trip, by its number, and what is carried on.
    Current(usize),
    Next(usize),
    /// The row of the trip, by its number.
    Row(usize),
}

/// An extent that the caller gives, and what it must be.
#[derive(Clone, Copy, Debug)]
pub struct GivenExtent {
    pub input: usize,
    pub axis: usize,
    pub expected: Size,
}

/// An extent of an output that is found.
#[derive(Clone, Copy, Debug)]
pub struct FoundExtent {
    pub output: usize,
    pub axis: usize,
    pub extent: Size,
}

/// Where a number is found: an i64 among others.
#[derive(Clone, Copy, Debug)]
pub struct Find {
    pub from: Place,
    pub at: usize,
    pub size: Size,
}

/// A call of a kernel or a function.
#[derive(Clone, Debug)]
pub struct Call {
    pub callee: Callee,
    pub args: Vec<EntryArgument>,
    /// What the symbols of the parameters stand for, in their order.
    pub symbols: Vec<Size>,
    /// What the call came from.
    pub source: NodeSource,
    /// What it is lent, where that is taken.
    pub lent: Option<Take>,
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// By its number in [`Code::kernels`].
    Kernel(usize),
    /// By its number in [`Code::routines`].
    Routine(usize),
}

/// An argument of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EntryArgument {
    Memory(Place),
    /// Where the callee leaves the address of what it takes.
    Taken(Place),
    Scalar {
        dtype: DType,
        value: Size,
    },
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
    /// What was taken, by its number.
    Taken(usize),
}

/// Numbers to be written side by side, as i64.
#[derive(Clone, Debug)]
pub struct Write {
    pub to: Place,
    pub numbers: Vec<Size>,
}

/// An output that is an input with more along one axis, in rows that may have room for more still.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub input: usize,
    pub output: usize,
    pub axis: usize,
    /// How much there is along the axis in the input, and how much room each row of it has.
    pub past: Size,
    pub given: Size,
    /// How much room each row of the output has.
    pub room: Size,
    /// How many rows there are.
    pub count: Size,
    /// Bytes of both, with the room.
    pub input_bytes: Size,
    pub output_bytes: Size,
}

/// How rows that are copied lie.
#[derive(Clone, Copy, Debug)]
pub struct CopiedRows {
    pub count: Size,
    /// Bytes from one to the next.
    pub from_step: Size,
    pub to_step: Size,
}

/// Bytes to be copied.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    pub from: Place,
    pub to: Place,
    pub bytes: Size,
    /// Where these are the bytes of one row of several.
    pub rows: Option<CopiedRows>,
    /// Whether both may be one place, of which nothing is copied.
    pub unless_same: bool,
}

impl Copy {
    /// Of places that are apart.
    pub(super) fn new(from: Place, to: Place, bytes: Size) -> Copy {
        Copy { from, to, bytes, rows: None, unless_same: false }
    }
}
