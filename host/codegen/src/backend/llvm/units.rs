//! From units of work to objects, several at a time.
//!
//! A unit is whatever the caller makes one LLVM module of. Each is built in a context of its own,
//! so that units share nothing and threads do not wait for each other: build, verify, optimize,
//! emit. The results come in the order of the units.

use std::fmt;
use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};

use inkwell::{
    attributes::AttributeLoc,
    context::Context,
    module::Module,
    passes::PassBuilderOptions,
    targets::{FileType, TargetMachine},
};

use super::{
    LlvmError, fatal, intrinsics,
    machine::{machine, plain_machine},
};
use crate::backend::Emit;
use crate::target::Target;

/// LLVM recurses over large basic blocks; rayon's own two megabytes are not meant for that.
const STACK_BYTES: usize = 16 << 20;

/// Instructions of functions that call others beyond which what takes more than linear time is felt: some hundreds of calls.
const LARGE: usize = 1 << 13;
/// The same of any others: no loop that is written out for speed has so many.
const HUGE: usize = 1 << 14;

/// What LLVM does to a module between building and emission.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Pipeline {
    /// Nothing.
    None,
    /// Enough for code that comes vectorized and tiled.
    #[default]
    Lean,
    /// The same, for functions that do little else than call others. Code of large ones is made without optimization, as that of
    /// the largest modules always: LLVM's allocator of registers and its schedulers take more than linear time.
    Calls,
    /// LLVM's own `default<O1>` to `default<O3>`, for loops that it shall vectorize itself.
    Default(u8),
    /// In the language of `opt -passes=`.
    Passes(String),
}

/// The passes of [`Pipeline::Lean`]: accumulators go from the stack into registers, what is
/// computed twice is computed once and, where it can be, outside of the loop. No vectorizing, no
/// unrolling, no inlining but of what is marked so: the tensor program has done these.
pub const LEAN_PASSES: &str = "always-inline,function(sroa,early-cse<memssa>,simplifycfg,\
     instcombine<no-verify-fixpoint>,loop-mssa(loop-rotate,licm),gvn,\
     instcombine<no-verify-fixpoint>,simplifycfg),globaldce";

/// Those that take no more than linear time over functions of any size.
const FEW_PASSES: &str = "always-inline,function(sroa,early-cse),globaldce";

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pipeline::None => Ok(()),
            Pipeline::Lean | Pipeline::Calls => f.write_str(LEAN_PASSES),
            Pipeline::Default(level) => write!(f, "default<O{}>", level.min(&3)),
            Pipeline::Passes(passes) => f.write_str(passes),
        }
    }
}

/// How to compile.
#[derive(Debug, Clone, Default)]
pub struct CompileOptions {
    pub emit: Emit,
    pub pipeline: Pipeline,
    /// How many threads compile; 0 for one a processor.
    pub threads: usize,
}

/// Compiles every unit: `build` makes its module in the context it is given.
///
/// `build` runs on several threads. Its errors and ours come back as `E`, the first in the order
/// of the units. A module that LLVM's verifier refuses is an error with the verifier's text.
pub fn compile_units<U, B, E>(
    target: &Target,
    options: &CompileOptions,
    units: &[U],
    build: B,
) -> Result<Vec<Vec<u8>>, E>
where
    U: Sync,
    B: for<'cx> Fn(&'cx Context, &U) -> Result<Module<'cx>, E> + Sync,
    E: From<LlvmError> + Send,
{
    compile_units_by(target, options, units, |_| options.pipeline.clone(), build)
}

/// [`compile_units`] with a pipeline for each unit; that of the options is not used.
pub fn compile_units_by<U, P, B, E>(
    target: &Target,
    options: &CompileOptions,
    units: &[U],
    pipeline: P,
    build: B,
) -> Result<Vec<Vec<u8>>, E>
where
    U: Sync,
    P: Fn(&U) -> Pipeline + Sync,
    B: for<'cx> Fn(&'cx Context, &U) -> Result<Module<'cx>, E> + Sync,
    E: From<LlvmError> + Send,
{
    let compile = |machine: &TargetMachine, unit: &U| -> Result<Vec<u8>, E> {
        let cx = Context::create();
        let module = build(&cx, unit)?;
        let options = CompileOptions { pipeline: pipeline(unit), ..options.clone() };
        let is_plain = match options.pipeline {
            // Whoever names passes has these.
            Pipeline::None | Pipeline::Passes(_) => false,
            Pipeline::Calls => has_more(&module, LARGE),
            Pipeline::Lean | Pipeline::Default(_) => has_more(&module, HUGE),
        };
        let plain = is_plain.then(|| plain_machine(target.processor())).transpose()?;
        let machine = plain.as_ref().unwrap_or(machine);
        let options = match is_plain {
            true => CompileOptions { pipeline: Pipeline::Passes(FEW_PASSES.to_owned()), ..options },
            false => options,
        };
        let name = module.get_name().to_string_lossy().into_owned();
        Ok(fatal::within(&name, || compile_module(machine, &options, &module))?)
    };
    if units.len() < 2 || options.threads == 1 {
        let machine = machine(target.processor())?;
        return units.iter().map(|unit| compile(&machine, unit)).collect();
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .stack_size(STACK_BYTES)
        .build()
        .map_err(|error| LlvmError::Codegen {
            unit: "all".to_owned(),
            action: "start threads to compile",
            message: error.to_string(),
        })?;
    // A machine works out what its processor can do for its first unit, so each thread keeps one.
    let next = AtomicUsize::new(0);
    let made = pool.broadcast(|_| {
        let machine = machine(target.processor());
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < units.len());
        let of = |at: usize| match &machine {
            Ok(machine) => (at, compile(machine, &units[at])),
            Err(error) => (at, Err(error.clone().into())),
        };
        iter::from_fn(take).map(of).collect::<Vec<_>>()
    });
    let mut made: Vec<(usize, Result<Vec<u8>, E>)> = made.into_iter().flatten().collect();
    made.sort_unstable_by_key(|&(at, _)| at);
    made.into_iter().map(|(_, object)| object).collect()
}

/// Whether the functions of a module have more than so many instructions.
fn has_more(module: &Module<'_>, most: usize) -> bool {
    let blocks = module.get_functions().flat_map(|function| function.get_basic_block_iter());
    blocks.flat_map(|block| block.get_instructions()).nth(most).is_some()
}

/// Verifies, optimizes and emits one module on the calling thread.
pub fn compile_module(
    machine: &TargetMachine,
    options: &CompileOptions,
    module: &Module<'_>,
) -> Result<Vec<u8>, LlvmError> {
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    if options.emit == Emit::RawText {
        return Ok(module.print_to_string().to_bytes().to_vec());
    }
    verify(module)?;
    optimize(machine, &options.pipeline, module)?;
    let file_type = match options.emit {
        Emit::Text | Emit::RawText => {
            return Ok(module.print_to_string().to_bytes().to_vec());
        }
        Emit::Object => FileType::Object,
        Emit::Assembly => FileType::Assembly,
    };
    let buffer = machine
        .write_to_memory_buffer(module, file_type)
        .map_err(|error| codegen_error(module, "emit", error.to_string()))?;
    Ok(buffer.as_slice().to_vec())
}

/// Refuses what LLVM would abort on: a malformed module, an intrinsic outside the list.
pub fn verify(module: &Module<'_>) -> Result<(), LlvmError> {
    let invalid = |message| LlvmError::InvalidModule { unit: unit_name(module), message };
    module.verify().map_err(|error| invalid(error.to_string()))?;
    intrinsics::check(module).map_err(|error| invalid(error.to_string()))
}

fn optimize(
    machine: &TargetMachine,
    pipeline: &Pipeline,
    module: &Module<'_>,
) -> Result<(), LlvmError> {
    if *pipeline == Pipeline::None {
        return Ok(());
    }
    allow_unfinished_combining(module);
    let options = PassBuilderOptions::create();
    options.set_loop_vectorization(true);
    options.set_loop_unrolling(true);
    module
        .run_passes(&pipeline.to_string(), machine, options)
        .map_err(|error| codegen_error(module, "optimize", error.to_string()))
}

/// Named in a pipeline of one's own, `instcombine` ends the process when it has not reached a
/// fixpoint after one round, which is common and harmless. This attribute forbids it that.
fn allow_unfinished_combining(module: &Module<'_>) {
    for func in module.get_functions() {
        let cx = func.get_type().get_context();
        let attribute = cx.create_string_attribute("instcombine-no-verify-fixpoint", "");
        func.add_attribute(AttributeLoc::Function, attribute);
    }
}

fn codegen_error(module: &Module<'_>, action: &'static str, message: String) -> LlvmError {
    LlvmError::Codegen { unit: unit_name(module), action, message }
}

fn unit_name(module: &Module<'_>) -> String {
    module.get_name().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the option it ends the process on larger functions.
    #[test]
    fn the_lean_pipeline_lets_combining_stop_early() {
        let combining = LEAN_PASSES.matches("instcombine").count();
        assert_eq!(combining, LEAN_PASSES.matches("instcombine<no-verify-fixpoint>").count());
    }
}
