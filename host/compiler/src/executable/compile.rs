//! Compiles a planned module into objects.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;

use tenon_plugin_api::program::TARGET;
use tenon_plugin_api::rule::TensorIntrinsic;

use crate::backend::{
    Backend, BackendError, CONSTANTS, Compilation, Emit, FrontCode, Kernel, Loadable, Work,
    backend_for,
};
use crate::external::ExternalCode;
use crate::ir::{Bytes, Constant, Context, Cx, Expr, Function, Module, NodeSource, View};
use crate::object::externals::{Externals, GivenFunction};
use crate::plan::{
    Action, Body, Call, Callee, Code, DimRanges, Entry, functions_of, largest, plan,
};
use crate::runtime::{
    functions::Library,
    model::Model,
    signature::{LibraryInfo, ProcessorInfo, Signature},
};
use crate::target::{Target, asked_features, platform};

use super::error::CompileError;
use super::identical::Distinct;
use super::intrinsics::intrinsics_of;
use super::scheduled::Scheduled;
use super::scratch::{Lent, lend};
use super::sources::symbol_part;

/// How to compile.
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// The only function that is compiled: a graph function or a tensor program. Where none is named, all are that are not
    /// private.
    pub function: Option<String>,
    /// Ranges of symbols, which each call has to keep.
    pub ranges: DimRanges,
    /// How many threads compile; 0 for one a processor.
    pub threads: usize,
    /// Whether the code takes note of the time between kernels. It runs in this process only.
    pub is_profiled: bool,
    /// A program `tenon` that has a linker inside; without it, one is looked for when something is linked.
    pub linker: Option<PathBuf>,
    /// Objects, archives and shared libraries that define external functions which the module calls.
    pub link: Vec<PathBuf>,
}

/// A compiled module: its code, and what is known about its functions.
#[derive(Debug)]
pub struct Executable {
    pub(super) info: LibraryInfo,
    /// What the names of each function in C begin with, where the module says that.
    pub(super) given: Vec<Option<String>>,
    /// The code: for one target, or for each of several processors, the best first.
    pub(super) code: Vec<MachineCode>,
    pub(super) linker: Option<PathBuf>,
    /// What it calls and others define.
    pub(super) externals: Externals,
    /// What the names of its functions begin with, where the module says that.
    pub(super) prefix: Option<String>,
}

/// The code of a module for a target.
#[derive(Debug)]
pub(super) struct MachineCode {
    pub(super) target: Target,
    /// The symbols of each function, and of the one that says its sizes.
    pub(super) names: Vec<FrontCode>,
    /// The symbol of the table of its constants.
    pub(super) table: String,
    pub(super) objects: Vec<Unit>,
    /// Constants by their symbols.
    pub(super) constants: Vec<(String, Bytes)>,
    pub(super) runs: Vec<KernelRun>,
}

/// A call of a kernel by the model's function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRun {
    /// The kernel's symbol.
    pub symbol: String,
    /// What the call came from; empty where that is not known.
    pub came_from: String,
    /// How the kernel's program was scheduled, if a rule did it.
    pub scheduled: Option<Arc<Scheduled>>,
}

/// What has become of one piece of work.
pub struct Unit {
    /// The name of the tensor program, or of the entry function.
    pub name: String,
    /// An object, or text.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unit({}, {} bytes)", self.name, self.bytes.len())
    }
}

impl Deref for Unit {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Executable {
    /// Compiles the function `options.function` of `module`, or all that are not private, and what they call.
    pub fn compile(
        module: &Module,
        target: &Target,
        options: &CompileOptions,
    ) -> Result<Executable, CompileError> {
        let job = Job::new(module, target, options)?;
        let mut objects = job.emit(target, options, Emit::Object)?;
        let runs = if options.is_profiled { job.runs(module.cx()) } else { Vec::new() };
        let Job { code, constants, external, names, functions, has_default, .. } = job;
        let externals = Externals { names, files: options.link.clone(), given: Vec::new() };
        externals.kinds()?;
        objects.extend(external.into_iter().map(|(name, object)| {
            let bytes = object.data.to_vec();
            Unit { name, bytes }
        }));
        let attrs = module.cx().terms().attrs(module.attrs);
        // As TVM writes it, it ends with what stands before the name.
        let prefix = attrs.str("system_lib_prefix");
        let given = functions.iter();
        let given =
            given.map(|name| given_symbol(module, name, prefix.unwrap_or_default())).collect();
        let names = code.entries.iter().map(|entry| FrontCode {
            run: entry.symbol.clone(),
            sizes: entry.sizes_symbol.clone(),
        });
        let names = names.collect();
        let prefix = prefix.map(|name| name.strip_suffix('_').unwrap_or(name).to_owned());
        let checks: Arc<[String]> = code.checks.into();
        let signatures = code.entries.into_iter().zip(functions).map(|(entry, name)| {
            let checks = Arc::clone(&checks);
            Signature { checks, ..signature(entry, name, target) }
        });
        let signatures = signatures.collect();
        let processors = processor_of(target).into_iter().collect();
        let info = LibraryInfo { functions: signatures, has_default, processors, weights: None };
        let constants = constants.iter().map(|constant| constant.data.clone());
        let constants = code.constants.into_iter().zip(constants).collect();
        let (target, linker) = (target.clone(), options.linker.clone());
        let table = CONSTANTS.to_owned();
        let code = vec![MachineCode { target, names, table, objects, constants, runs }];
        Ok(Executable { info, given, code, linker, externals, prefix })
    }

    /// The external functions that it calls, by their symbols.
    pub fn externals(&self) -> &[String] {
        &self.externals.names
    }

    /// Gives it a function of this process: code that [`Executable::load`] or [`Executable::jit`] puts into the process calls it
    /// where the module calls the external function `name`, before any that files define. A library that is exported has it of
    /// whoever opens that.
    ///
    /// # Safety
    /// It must be an `extern "C"` function of the type that docs/running.md says of external functions, for each call of it in the
    /// module, and must stay where it is as long as the code may run. Several threads may call it at once.
    pub unsafe fn provide(&mut self, name: &str, function: NonNull<c_void>) {
        let address = function.as_ptr().expose_provenance();
        self.externals.given.push(GivenFunction { name: name.to_owned(), address });
    }

    /// The same, linked by the linker inside of a program, if one is named.
    pub(crate) fn linked_by(self, linker: Option<PathBuf>) -> Executable {
        Executable { linker, ..self }
    }

    /// Inputs, outputs and memory of the function that is meant where nobody names one, or else of the first.
    pub fn signature(&self) -> &Signature {
        &self.info.functions[0]
    }

    /// Inputs, outputs and memory of all functions, that which is meant where nobody names one first.
    pub fn functions(&self) -> &[Signature] {
        &self.info.functions
    }

    /// The objects, of several processors those for the best.
    pub fn objects(&self) -> &[Unit] {
        &self.code[0].objects
    }

    /// The calls of kernels in order, where it was compiled to be profiled.
    pub fn kernel_runs(&self) -> &[KernelRun] {
        &self.code[0].runs
    }

    /// Loads it into this process, and gives the function that is meant where nobody names one: `main`, or the only one.
    pub fn jit(&self) -> Result<Model, CompileError> {
        Ok(self.load()?.main()?)
    }

    /// Loads it into this process, with all functions; of several processors for that of this machine. The constants stay where
    /// the module has them.
    pub fn load(&self) -> Result<Library, CompileError> {
        let MachineCode { target, names, table, objects, constants, .. } = self.here()?;
        let constants: Vec<_> =
            constants.iter().map(|(symbol, bytes)| (symbol.as_str(), bytes.clone())).collect();
        let objects: Vec<&[u8]> = objects.iter().map(|unit| &unit.bytes[..]).collect();
        let names: Vec<[&str; 2]> = names.iter().map(|it| [&*it.run, &*it.sizes]).collect();
        let code = Loadable { names: &names, objects: &objects, table, constants: &constants };
        let backend = backend_for(target.architecture());
        Ok(backend.load(self.info.clone(), &code, &self.externals)?)
    }
}

/// The units of `module` in another form than objects: the code generator's own, assembly.
pub fn emit(
    module: &Module,
    target: &Target,
    options: &CompileOptions,
    form: Emit,
) -> Result<Vec<Unit>, CompileError> {
    Job::new(module, target, options)?.emit(target, options, form)
}

/// The code generator for a target.
pub(super) fn of(target: &Target) -> &'static dyn Backend {
    backend_for(target.architecture())
}

/// All that is to be compiled.
pub(super) struct Job {
    /// The functions that callers call.
    functions: Vec<String>,
    /// Whether the first is the one that is meant where nobody names one.
    has_default: bool,
    pub(super) code: Code,
    pub(super) kernels: Vec<KernelUnit>,
    pub(super) constants: Vec<Arc<Constant>>,
    /// Objects that code generators made, each with the name of the first program that is in it.
    external: Vec<(String, Arc<Constant>)>,
    /// Functions that others define, by their symbols.
    names: Vec<String>,
}

/// A kernel to be compiled.
pub(super) struct KernelUnit {
    name: String,
    symbol: String,
    function: Arc<Function>,
    /// What it says that its code is for, where it does.
    target: Option<Target>,
    intrinsics: Vec<TensorIntrinsic>,
    /// What the first call of it came from.
    source: NodeSource,
}

impl KernelUnit {
    pub(super) fn kernel(&self) -> Kernel<'_> {
        let KernelUnit { name, symbol, function, intrinsics, .. } = self;
        Kernel { name, symbol, function, intrinsics }
    }

    /// It with the intrinsics that its loops name.
    fn with_intrinsics(self) -> Result<Self, BackendError> {
        let found = intrinsics_of(&self.name, &self.function);
        let intrinsics = found.map_err(|error| self.named(error))?;
        Ok(Self { intrinsics, ..self })
    }

    /// An error about it.
    pub(super) fn named(&self, error: BackendError) -> BackendError {
        let cx = self.function.cx();
        error.with_source(Some(cx.source_text(self.source)).filter(|text| !text.is_empty()))
    }
}

impl Job {
    pub(super) fn new(
        module: &Module,
        target: &Target,
        options: &CompileOptions,
    ) -> Result<Job, CompileError> {
        let (functions, has_default) = match &options.function {
            Some(name) => (vec![name.clone()], true),
            None => functions_of(module)?,
        };
        let plan = plan(module, &functions, &options.ranges)?;
        let mut code = plan.code;
        code.is_profiled = options.is_profiled;
        for (number, (entry, name)) in code.entries.iter_mut().zip(&functions).enumerate() {
            [entry.symbol, entry.sizes_symbol] = ["tenon_main", "tenon_sizes"].map(|symbol| {
                if number == 0 {
                    symbol.to_owned()
                } else {
                    format!("{symbol}{number}.{}", plain(name))
                }
            });
        }
        let first_sources = first_sources(&code, plan.programs.len());
        let mut distinct = Distinct::default();
        let mut kernels = Vec::new();
        let mut numbers = Vec::with_capacity(plan.programs.len());
        let mut sizes = plan.sizes;
        // Nothing for a vendor's kernel.
        let mut lent: Vec<Lent> = Vec::new();
        let mut external: Vec<(String, Arc<Constant>)> = Vec::new();
        let mut external_bytes: HashSet<Arc<[u8]>> = HashSet::new();
        let mut external_names = Vec::new();
        for ((name, function), source) in plan.programs.into_iter().zip(first_sources) {
            let (number, is_new) = distinct.number(&function);
            numbers.push(number);
            if let Some(made) = ExternalCode::of(&function).filter(|_| is_new) {
                code.external.insert(number);
                code.kernels.push(made.symbol.to_owned());
                lent.push(Lent::default());
                if external_bytes.insert(made.object.data[..].into()) {
                    external.push((name, Arc::clone(made.object)));
                }
            } else if is_new {
                let called = called(&function);
                if !called.is_empty() {
                    code.external.insert(number);
                    external_names.extend(called);
                }
                let symbol = symbol_of(module.cx(), &name, number, source);
                code.kernels.push(symbol.clone());
                let own = own_target(&name, &function, target)?;
                let intrinsics = Vec::new();
                let unit = KernelUnit { name, symbol, function, target: own, intrinsics, source };
                let unit = unit.with_intrinsics()?;
                let scratch = of(target).scratch(&unit.kernel());
                let scratch = scratch.map_err(|error| unit.named(error))?;
                lent.push(Lent { scratch, symbols: unit.kernel().symbols() });
                kernels.push(unit);
            }
        }
        for action in code.bodies_mut().flat_map(|body| &mut body.actions) {
            if let Action::Call(Call { callee: Callee::Kernel(kernel), .. }) = action {
                *kernel = numbers[*kernel];
            }
        }
        lend(module.cx(), &mut code, &mut sizes, &lent);
        code.note_what_takes();
        for (body, sizes) in code.bodies_mut().zip(sizes) {
            body.steps = sizes.into_steps();
        }
        code.constants = constant_symbols(module, &plan.constants);
        let constants = plan.constants;
        external_names.sort();
        external_names.dedup();
        let names = external_names;
        Ok(Job { functions, has_default, code, kernels, constants, external, names })
    }

    /// The calls of kernels in order.
    fn runs(&self, cx: &Cx) -> Vec<KernelRun> {
        let told = self.kernels.iter().filter_map(|kernel| {
            Some((kernel.symbol.as_str(), Arc::new(Scheduled::of(&kernel.function)?)))
        });
        let told: HashMap<&str, Arc<Scheduled>> = told.collect();
        let run = |(kernel, call): (usize, &Call)| {
            let symbol = self.code.kernels[kernel].clone();
            let scheduled = told.get(symbol.as_str()).cloned();
            KernelRun { symbol, came_from: cx.source_text(call.source), scheduled }
        };
        self.code.kernel_calls().map(run).collect()
    }

    pub(super) fn emit(
        &self,
        target: &Target,
        options: &CompileOptions,
        form: Emit,
    ) -> Result<Vec<Unit>, CompileError> {
        // The entry first: of a large model it is the longest.
        let kernels = self.kernels.iter().map(|kernel| Work::Kernel(kernel.kernel()));
        let entry = of(target).has_entry().then_some(Work::Code(&self.code));
        let work: Vec<Work<'_>> = entry.into_iter().chain(kernels).collect();
        let how = Compilation { emit: form, threads: options.threads };
        let own = self.kernels.iter().map(|kernel| kernel.target.as_ref().unwrap_or(target));
        let targets: Vec<&Target> = entry.map(|_| target).into_iter().chain(own).collect();
        let outputs = by_target(&targets, &work, how).map_err(|error| self.with_source(error))?;
        let kernels = self.kernels.iter().map(|kernel| kernel.name.clone());
        let names = entry.map(|_| self.functions[0].clone()).into_iter().chain(kernels);
        Ok(names.zip(outputs).map(|(name, bytes)| Unit { name, bytes }).collect())
    }

    /// An error, with what the program came from that it is about.
    fn with_source(&self, error: BackendError) -> BackendError {
        let kernel =
            self.kernels.iter().find(|kernel| Some(kernel.name.as_str()) == error.program());
        match kernel {
            Some(kernel) => kernel.named(error),
            None => error,
        }
    }
}

/// What a processor needs for code of a target, unless every one has it.
fn processor_of(target: &Target) -> Option<ProcessorInfo> {
    let features: Vec<String> = asked_features(target).into_iter().map(str::to_owned).collect();
    let is_any = features.is_empty();
    (!is_any).then(|| ProcessorInfo { target: target.to_string(), features })
}

/// What is told of a function.
fn signature(entry: Entry, function: String, target: &Target) -> Signature {
    let Body { steps, workspace, .. } = &entry.body;
    let size = workspace.known();
    let most = largest(steps, *workspace, &entry.ranges).filter(|_| size.is_none());
    Signature {
        tenon: env!("CARGO_PKG_VERSION").to_owned(),
        function,
        symbol: String::new(),
        target: target.to_string(),
        workspace_size: size.map(|bytes| bytes as u64),
        most_workspace: most.map(|bytes| bytes as u64),
        ranges: entry
            .ranges
            .iter()
            .map(|it| (it.name.clone(), (it.range.least, it.range.most)))
            .collect(),
        inputs: entry.inputs,
        outputs: entry.outputs,
        arena: entry.body.takes,
        taken: entry.taken.iter().map(|it| it.output).collect(),
        found: entry.found.iter().map(|it| [it.output, it.axis]).collect(),
        in_place: entry.in_place,
        grows: entry.rooms.iter().map(|it| [it.input, it.output, it.axis]).collect(),
        checks: Arc::default(),
    }
}

/// What the names of a function in C begin with, where its attribute `global_symbol` says it: a text that no pass would have
/// put there, which is the function's name, of a program behind the module's prefix.
fn given_symbol(module: &Module, name: &str, prefix: &str) -> Option<String> {
    let function = module.get_str(name)?.view();
    let symbol = function.terms().attrs(function.attrs(function.root())).str("global_symbol")?;
    let is_own = symbol == name || symbol.strip_prefix(prefix) == Some(name);
    (!is_own).then(|| symbol.to_owned())
}

/// The external functions that a program calls.
fn called(function: &Function) -> Vec<String> {
    let body = function.view();
    let name = |expr| match body.view(expr) {
        View::Extern { name } => Some(body.terms().str(name).to_owned()),
        _ => None,
    };
    body.post_order().filter_map(name).collect()
}

/// What a program says that its code is for: a processor that a library for `target` can have code for as well.
fn own_target(
    name: &str,
    function: &Function,
    target: &Target,
) -> Result<Option<Target>, CompileError> {
    let body = function.view();
    let attrs = body.terms().attrs(body.attrs(body.root()));
    let Some(text) = attrs.str(TARGET) else { return Ok(None) };
    let own = Target::parse(text)?;
    if platform(own.triple()) != platform(target.triple()) {
        return Err(CompileError::OtherMachine {
            program: name.to_owned(),
            came_from: function.source_text(Expr(0)),
            own: own.triple().to_owned(),
            target: target.triple().to_owned(),
        });
    }
    Ok(Some(own))
}

/// Does every piece of work, those for one target in one go; the results come in the order of the work.
fn by_target(
    targets: &[&Target],
    work: &[Work<'_>],
    how: Compilation,
) -> Result<Vec<Vec<u8>>, BackendError> {
    let mut distinct: Vec<&Target> = Vec::new();
    for &target in targets {
        if !distinct.contains(&target) {
            distinct.push(target);
        }
    }
    let mut outputs = vec![Vec::new(); work.len()];
    for target in distinct {
        let places: Vec<usize> = (0..work.len()).filter(|&at| targets[at] == target).collect();
        let own: Vec<Work<'_>> = places.iter().map(|&at| work[at]).collect();
        for (at, output) in places.into_iter().zip(of(target).compile(target, &own, how)?) {
            outputs[at] = output;
        }
    }
    Ok(outputs)
}

/// For each program what the first of its calls came from.
fn first_sources(code: &Code, programs: usize) -> Vec<NodeSource> {
    let mut first = vec![NodeSource::NONE; programs];
    for (kernel, call) in code.kernel_calls() {
        let own = &mut first[kernel];
        *own = if own.is_none() { call.source } else { *own };
    }
    first
}

/// A symbol that is unique, and still says what it is and what it came from.
fn symbol_of(cx: &Cx, name: &str, number: usize, source: NodeSource) -> String {
    let name = plain(name);
    match symbol_part(cx, source) {
        Some(source) => format!("kernel{number}.{name}.{source}"),
        None => format!("kernel{number}.{name}"),
    }
}

fn constant_symbols(module: &Module, constants: &[Arc<Constant>]) -> Vec<String> {
    let terms = module.cx().terms();
    let symbol = |(index, constant): (usize, &Arc<Constant>)| match terms.str(constant.name) {
        "" => format!("constant{index}"),
        name => format!("constant{index}.{}", plain(name)),
    };
    constants.iter().enumerate().map(symbol).collect()
}

/// The characters of a name that every tool takes in a symbol.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}
