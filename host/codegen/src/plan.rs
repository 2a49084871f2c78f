//! Reads a planned graph function: what is called, with which addresses.
//!
//! ```ir
//! %storage = memory.alloc_storage() { size = 1024 }                a place in the workspace
//! %a: f32[256] = memory.alloc_tensor(%storage) { offset = 0, … }   an address in it
//! ^0 = @exp(%x, %a)                                                a call
//! %b: f32[2, 128] = memory.view(%a) { … }                          the same address
//! %c: f32[256] = call_tir(@log, %a) { out = f32[256] }             an address of its own, and a call
//! ```
//!
//! Of a choice each branch writes what it gives to where the choice has it ([`blocks`]).
//!
//! A parameter that is a shape is given as a tensor of its extents, which are numbers of the plan like the extents of tensors.
//! A shape is a list of numbers that follow from the extents of the inputs; `vm.shape_to_tensor` of one is a tensor that the
//! function writes.
//!
//! A result is written to the caller's memory where that is possible: its storage becomes the output.
//! Inputs, constants and what is returned twice are copied at the end. A copy of an input to an output need not be one
//! ([`in_place`]).
//!
//! A loop calls a function for each trip ([`loops`]).
//! A graph function that is called becomes a routine: a function of the code that is given addresses and numbers
//! ([`functions`]); it may call itself ([`circles`]).
//!
//! `blocks` goes through the bindings, `values` knows what a node stands for, `symbols` what extents stand for, `calls` checks the calls
//! of programs, `memory` places storages, and `addresses` turns it all into what the entry function does.

mod addresses;
mod blocks;
mod calls;
mod circles;
mod entry;
mod error;
mod functions;
mod in_place;
mod loops;
mod memory;
mod public;
mod ranges;
mod rooms;
mod sizes;
mod symbols;
mod taken;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

use tenon_ir::op_names::{
    ALLOC_TENSOR, BIND_DIMS, CALL_PURE, CALL_TIR, EXPECT, EXPECT_FIT, LOOP, MAKE_CLOSURE,
    MEMORY_ALLOC_STORAGE, MEMORY_ALLOC_TENSOR, MEMORY_COPY, MEMORY_KILL, MEMORY_PART, MEMORY_ROOM,
    MEMORY_VIEW, vm,
};
use tenon_ir::{
    Args, Attrs, BodyView, Constant, Context, Cx, Expr, Function, Module, NodeSource, Symbol,
    TermView, Type, TypeView, View,
};

use loops::PlannedLoop;
use memory::{Home, Memory, PlannedTensor};
use tenon_runtime::signature::TensorSpec;
use values::MOST_TENSORS;

pub use circles::Circle;
pub use entry::{
    Action, Base, Body, Call, Callee, Carried, Code, CopiedRows, Copy, Entry, EntryArgument, Find,
    FoundExtent, GivenExtent, Limit, Loop, LoopArgument, Place, Room, Routine, Rows, Take, Write,
};
pub use error::{PlanError, PlanProblem};
pub use memory::TakenOutput;
pub use public::{default_function, functions_of};
pub use ranges::{DimRange, DimRanges, RangedSize, check_ranges, largest};
pub use sizes::{Agreement, CheckNumber, LARGEST_EXTENT, Size, SizeStep};
pub use sizes::{Bindings, Sizes};

type Step<T> = Result<T, PlanProblem>;

/// What is to be compiled.
#[derive(Debug)]
pub struct Plan {
    /// What is done; its kernels have no symbols yet, its workspaces only hold tensors, and it has no steps.
    pub code: Code,
    /// The numbers that each of its bodies computes first, those of the entries last.
    pub sizes: Vec<Sizes>,
    /// The programs that are called, by their numbers.
    pub programs: Vec<(String, Arc<Function>)>,
    /// The constants that are read, by their numbers.
    pub constants: Vec<Arc<Constant>>,
}

/// The plan of functions by their names, each a graph function, or a tensor program that is called once. What they have in
/// common is there once. `ranges` are those of their symbols.
pub fn plan(module: &Module, names: &[String], ranges: &DimRanges) -> Result<Plan, PlanError> {
    let mut shared = Shared::default();
    let (mut entries, mut own_sizes) = (Vec::new(), Vec::new());
    let (mut used, mut known) = (Vec::new(), Vec::new());
    for name in names {
        let Some(function) = module.get_str(name) else {
            return Err(PlanError::NoEntry { name: name.clone(), found: public::all(module) });
        };
        let symbol = module.cx().symbol(name);
        functions::add_routines(module, symbol, &mut shared);
        let mut planner = Planner::new(module, function, shared);
        let entry = match function.is_prim() {
            true => planner.run_program(symbol),
            false => planner.run(),
        };
        let mut entry = entry.map_err(|problem| planner.error(name, problem))?;
        entry.ranges = planner.ranged(ranges);
        used.extend(entry.ranges.iter().cloned());
        known.extend(planner.symbol_names());
        entries.push(entry);
        own_sizes.push(planner.sizes);
        shared = planner.shared;
    }
    ranges::check(ranges, &used, known)?;
    let Shared { programs, constants, routines, checks, .. } = shared;
    let (routines, mut sizes): (Vec<Routine>, Vec<Sizes>) = routines.into_iter().unzip();
    sizes.extend(own_sizes);
    let code = Code { entries, routines, checks, ..Code::default() };
    Ok(Plan { code, sizes, programs, constants })
}

/// What a node stands for.
#[derive(Clone, Copy, Debug)]
enum Value {
    /// By its number.
    Tensor(usize),
    Storage(Home),
    /// By its number.
    Tuple(usize),
    /// A function, by its number among [`Planner::closures`].
    Closure(usize),
}

#[derive(Clone, Copy, Debug)]
struct Tensor {
    memory: PlannedTensor,
    ty: Type,
}

/// An argument of a call before addresses are known.
#[derive(Clone, Copy)]
enum Arg {
    Tensor(usize),
    /// One that the callee takes.
    Taken(usize),
    Scalar(Size),
}

/// A call before addresses are known.
struct PlannedCall {
    callee: Callee,
    args: Vec<Arg>,
    /// What the symbols of the parameters stand for.
    symbols: Vec<Size>,
    source: NodeSource,
}

/// An [`Action`] before addresses are known; tensors by their numbers.
enum PlannedAction {
    Call(PlannedCall),
    Write(usize, Vec<Size>),
    /// From one to the other.
    Copy(usize, usize),
    /// The same of rows, `bytes` of each.
    CopyRows {
        from: usize,
        to: usize,
        bytes: Size,
        rows: CopiedRows,
    },
    /// To an output.
    Result(usize, usize),
    Agree(Agreement, CheckNumber),
    /// That a number is an element of a tensor.
    Find {
        from: usize,
        at: usize,
        size: Size,
    },
    Expect(usize, CheckNumber),
    /// The memory of a storage, by its number.
    Take(usize),
    /// So many bytes for a tensor whose type says nothing of them.
    TakeFor(usize, Size),
    /// What was taken for a tensor is needed up to here.
    Keep(usize),
    Choose(usize),
    Otherwise,
    End,
    Loop(Box<PlannedLoop>),
}

struct Planner<'a> {
    module: &'a Module,
    function: &'a Function,
    body: BodyView<'a>,
    /// What is being read, for messages.
    place: String,
    /// The value that is bound there.
    at: Option<Expr>,
    values: Vec<Option<Value>>,
    tensors: Vec<Tensor>,
    tuples: Vec<Vec<Value>>,
    memory: Memory,
    sizes: Sizes,
    /// What the symbols of the function stand for.
    symbols: Bindings,
    /// What the extents of inputs must be.
    extents: Vec<GivenExtent>,
    agreements: Vec<(Agreement, CheckNumber)>,
    /// What has room, by the number of its storage.
    rooms: HashMap<usize, Room, FxBuildHasher>,
    /// How many branches are around what is read.
    depth: usize,
    actions: Vec<PlannedAction>,
    closures: Vec<Closure>,
    shared: Shared,
}

/// A function with values for its last parameters.
#[derive(Clone)]
struct Closure {
    function: Symbol,
    captured: Vec<(Value, Type)>,
}

/// What all functions of a plan have in common.
#[derive(Default)]
struct Shared {
    programs: Vec<(String, Arc<Function>)>,
    program_numbers: HashMap<Symbol, usize, FxBuildHasher>,
    constants: Vec<Arc<Constant>>,
    constant_numbers: HashMap<*const Constant, usize, FxBuildHasher>,
    routines: Vec<(Routine, Sizes)>,
    /// The number of each function that is planned, or why it is not.
    routine_numbers: HashMap<Symbol, Result<usize, PlanError>, FxBuildHasher>,
    /// What is checked while it runs, a text each, and the number of each text.
    checks: Vec<String>,
    check_numbers: HashMap<String, u32, FxBuildHasher>,
}

impl<'a> Planner<'a> {
    fn new(module: &'a Module, function: &'a Function, shared: Shared) -> Planner<'a> {
        let body = function.view();
        Planner {
            module,
            function,
            body,
            place: "its parameters".to_owned(),
            at: None,
            values: vec![None; body.len()],
            tensors: Vec::new(),
            tuples: Vec::new(),
            memory: Memory::default(),
            sizes: Sizes::default(),
            symbols: Bindings::default(),
            extents: Vec::new(),
            agreements: Vec::new(),
            rooms: HashMap::default(),
            depth: 0,
            actions: Vec::new(),
            closures: Vec::new(),
            shared,
        }
    }

    /// The error that `problem` is, at the place that is being read.
    fn error(&self, name: &str, problem: PlanProblem) -> PlanError {
        let from = self.at.and_then(|at| self.function.source_text(at));
        let from = from.map_or(String::new(), |from| format!(", from {from}"));
        PlanError::Binding {
            function: name.to_owned(),
            place: format!("{}{from}", self.place),
            problem: Box::new(problem),
        }
    }

    fn run(&mut self) -> Step<Entry> {
        let View::Function { params, body: result, .. } = self.body.view(self.body.root()) else {
            return malformed("it is no graph function");
        };
        let params: Vec<Expr> = params.iter().collect();
        let inputs = self.inputs(&params)?;
        let result = self.body_of(result)?;
        let results = self.flatten(result)?;
        self.finish(inputs, &results)
    }

    /// A program as a function: it takes what the program reads and gives what that writes.
    fn run_program(&mut self, name: Symbol) -> Step<Entry> {
        let View::PrimFunc { params, outputs, .. } = self.body.view(self.body.root()) else {
            return malformed("it is no tensor program");
        };
        let params: Vec<Expr> = params.iter().collect();
        let (read, written) = params.split_at(params.len() - outputs);
        let inputs = self.inputs(read)?;
        let mut results = Vec::with_capacity(outputs);
        for &param in written {
            let ty = self.type_of(param, &format!("parameter `{}`", self.name_of(param)))?;
            results.push(self.fresh_tensor(ty)?);
        }
        // The tensors of the inputs come first.
        let args = (0..read.len()).chain(results.iter().copied()).map(Arg::Tensor).collect();
        self.call_program(name, args)?;
        let mut entry = self.finish(inputs, &results)?;
        for (output, &param) in entry.outputs.iter_mut().zip(written) {
            output.name = self.name_of(param);
        }
        Ok(entry)
    }

    /// What the parameters are, as tensors that the caller gives, by their numbers.
    fn inputs(&mut self, params: &[Expr]) -> Step<Vec<TensorSpec>> {
        let terms = self.body.terms();
        let mut inputs = Vec::with_capacity(params.len());
        let mut types = Vec::with_capacity(params.len());
        for (name, ty) in params.iter().flat_map(|&param| self.parts(param)) {
            inputs.push(match ty.map(|ty| (ty, terms.ty(ty))) {
                Some((_, TypeView::Shape(Some(dims)))) => self.spec_of_sizes(name, dims),
                Some((ty, TypeView::Tensor { dims: Some(_), .. })) => self.spec(name, ty)?,
                _ => {
                    let ty = ty.map_or("unknown".to_owned(), |ty| terms.type_text(ty));
                    return Err(PlanProblem::NotATensor {
                        what: format!("parameter `{name}`"),
                        ty,
                    });
                }
            });
            types.extend(ty);
        }
        self.bind_symbols(&types)?;
        let is_tensor = |(index, &ty): (usize, &Type)| terms.tensor(ty).map(|_| index);
        let mut tensors = types.iter().enumerate().filter_map(is_tensor);
        for &param in params {
            let Some(ty) = self.body.ty(param) else { return malformed("a parameter has no type") };
            let value = self.build(ty, &mut |planner, ty| match tensors.next() {
                Some(index) => planner.tensor(Home::Input(index), 0, ty),
                None => malformed("a parameter has more tensors than its type"),
            })?;
            self.values[param.index()] = Some(value);
        }
        Ok(inputs)
    }

    /// What a parameter is made of: itself, or the fields of a tuple, with their names and types.
    fn parts(&self, param: Expr) -> Vec<(String, Option<Type>)> {
        let mut parts = Vec::new();
        let mut pending = vec![(self.name_of(param), self.body.ty(param))];
        while let Some((name, ty)) = pending.pop() {
            match ty.map(|ty| self.body.terms().ty(ty)) {
                Some(TypeView::Tuple(fields)) if parts.len() + pending.len() < MOST_TENSORS => {
                    let field = |(at, &ty): (usize, &Type)| (format!("{name}.{at}"), Some(ty));
                    pending.extend(fields.iter().enumerate().map(field).rev());
                }
                _ => parts.push((name, ty)),
            }
        }
        parts
    }

    /// What a binding's value stands for, after it has been noted what is to be done for it.
    fn bound(&mut self, var: Expr, expr: Expr) -> Step<Value> {
        if self.is_known_shape(expr) {
            return Ok(self.tuple(Vec::new()));
        }
        match self.body.view(expr) {
            View::Call { callee, args, attrs } => {
                let ty = self.body.ty(expr).or(self.body.ty(var));
                self.call(callee, args, attrs, ty)
            }
            View::Constant(_)
            | View::Var { .. }
            | View::Tuple(_)
            | View::TupleGetItem { .. }
            | View::Global { .. } => self.resolve(expr),
            View::Function { .. } => left("a closure", "closed"),
            View::Let(_) => left("a nested `let`", "block_form"),
            View::Shape { .. } | View::Prim { .. } => unsupported("a shape at run time", FOLD),
            _ => unsupported(&format!("a {}", self.body.kind(expr).name()), FOLD),
        }
    }

    fn call(
        &mut self,
        callee: Expr,
        args: Args<'a>,
        attrs: Attrs,
        result: Option<Type>,
    ) -> Step<Value> {
        let terms = self.body.terms();
        let attrs = terms.attrs(attrs);
        let ty = |key| match attrs.get(key) {
            Some(TermView::Type(ty)) => Ok(ty),
            _ => malformed(format!("the attribute `{key}` is no type")),
        };
        let name = match self.body.view(callee) {
            View::Op { name } => terms.str(name),
            View::Global { name } if !self.is_graph(name) => {
                let args = self.arguments(args)?;
                self.call_program(name, args)?;
                return Ok(self.tuple(Vec::new()));
            }
            View::Extern { name } => {
                let what = format!("a call of the external function `{}`", terms.str(name));
                return unsupported(&what, "only functions of the module can be called");
            }
            _ => return self.call_value(callee, args, result),
        };
        match name {
            MEMORY_ALLOC_STORAGE => {
                let size = self.storage_size(args, attrs.int("size"))?;
                let align = attrs.int("align").and_then(|align| u64::try_from(align).ok());
                Ok(Value::Storage(self.storage(size, align.unwrap_or(1))))
            }
            MEMORY_ALLOC_TENSOR => {
                let Some(storage) = args.get(0) else { return malformed("a tensor in no storage") };
                let Value::Storage(home) = self.resolve(storage)? else {
                    return malformed("a tensor is made in something that is no storage");
                };
                let offset = u64::try_from(attrs.int("offset").unwrap_or(0));
                let Ok(offset) = offset else { return malformed("an offset is negative") };
                Ok(Value::Tensor(self.tensor(home, offset, ty("ty")?)?))
            }
            ALLOC_TENSOR => Ok(Value::Tensor(self.fresh_tensor(ty("ty")?)?)),
            MEMORY_VIEW => self.view(args, ty("ty")?),
            MEMORY_PART => self.part(args, attrs.int("offset").unwrap_or(0), ty("ty")?),
            EXPECT => match args.get(0).map(|truth| self.resolve(truth)).transpose()? {
                Some(Value::Tensor(truth)) => {
                    let check = self.check(None);
                    self.actions.push(PlannedAction::Expect(truth, check));
                    Ok(self.tuple(Vec::new()))
                }
                _ => malformed("what is expected is no tensor"),
            },
            EXPECT_FIT => self.expect_fit(args, attrs.bool("may_be_one").unwrap_or(false)),
            MEMORY_COPY => self.copy(args),
            MEMORY_ROOM => self.room(args, ty("ty")?),
            MEMORY_KILL => Ok(self.tuple(Vec::new())),
            MAKE_CLOSURE => self.closure(args),
            BIND_DIMS => self.bind_dims(args, ty("ty")?, ty("most").ok()),
            LOOP => self.repeat(args, ty("out")?),
            CALL_PURE => match args.get(0) {
                Some(callee) => self.call_value(callee, args.skip(1), result),
                None => malformed("a call of nothing"),
            },
            CALL_TIR => self.call_tir(args, ty("out")?),
            vm::SHAPE_TO_TENSOR => match args.get(0) {
                Some(shape) => self.numbers(shape),
                None => malformed("a tensor of no shape"),
            },
            name => Err(left_operator(self.module.cx(), name)),
        }
    }

    /// Bytes of a storage: an argument, or an attribute where they are known.
    fn storage_size(&mut self, args: Args<'a>, attr: Option<i64>) -> Step<Size> {
        if let Some(size) = args.get(0) {
            return match self.body.view(size) {
                View::Prim { dim } => self.size(dim),
                _ => unsupported("a storage whose size is a value", FOLD),
            };
        }
        match attr.filter(|&size| size >= 0) {
            Some(size) => Ok(Size::Known(size)),
            None => malformed("a storage has no size"),
        }
    }

    fn call_tir(&mut self, args: Args<'a>, out: Type) -> Step<Value> {
        let callee = args.get(0).map(|callee| self.body.view(callee));
        let Some(View::Global { name }) = callee else {
            return malformed("call_tir of something that is no function of the module");
        };
        let mut arguments = self.arguments(args.skip(1))?;
        let fields = match self.body.terms().ty(out) {
            TypeView::Tuple(fields) => fields.to_vec(),
            _ => vec![out],
        };
        let mut results = Vec::with_capacity(fields.len());
        for field in fields {
            let tensor = self.fresh_tensor(field)?;
            arguments.push(Arg::Tensor(tensor));
            results.push(Value::Tensor(tensor));
        }
        self.call_program(name, arguments)?;
        match (self.body.terms().ty(out), results.as_slice()) {
            (TypeView::Tuple(_), _) => Ok(self.tuple(results)),
            (_, &[result]) => Ok(result),
            _ => malformed("a result that is no tensor"),
        }
    }
}

const FOLD: &str = "only what is known at compile time can be left out, by folding constants";

fn malformed<T>(what: impl Into<String>) -> Step<T> {
    Err(PlanProblem::Malformed(what.into()))
}

fn unsupported<T>(what: &str, help: &'static str) -> Step<T> {
    Err(PlanProblem::Unsupported { what: what.to_owned(), help })
}

fn left<T>(what: &str, fact: &'static str) -> Step<T> {
    Err(PlanProblem::Left { what: what.to_owned(), fact })
}

/// Why an operator is a problem.
fn left_operator(cx: &Cx, name: &str) -> PlanProblem {
    let left = |fact| PlanProblem::Left { what: format!("the operator `{name}`"), fact };
    let help = match cx.operators().find(name) {
        Some(_) if tenon_ir::ops::is_view(cx, name) => return left("explicit_memory"),
        Some(_) if tenon_ir::ops::has_program(cx, name) => return left("legal"),
        None => "no such operator is known, so no pass can make a tensor program of it",
        Some(_) if name.starts_with("vm.") => {
            "it is for executors of another kind, of which docs/vm.md tells"
        }
        Some(_) => "it cannot be made a tensor program; a pass must replace it first",
    };
    PlanProblem::Operator { op: name.to_owned(), help }
}
