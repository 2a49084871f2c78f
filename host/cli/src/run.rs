//! `run`.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use half::{bf16, f16};

use super::Global;
use super::argument::{DimValue, numbers_and_ranges, parse_dim_or_range, parse_input};
use super::compile::{DEFAULT_PIPELINE, compiled_already};
use super::complete;
use super::kernel_times::{KernelTimes, Speed};
use super::output::{Failure, note, print, print_json};
use super::peak;
use super::progress::Progress;
use super::run_on_device::on_device;
use super::run_passes::{PassArgs, run_passes};
use tenon_compiler::diagnostics::count_of;
use tenon_compiler::executable::{CompileError, KernelRun, is_saved};
use tenon_compiler::io::{
    Array, ArrayView, InputFiles, NpyType, Outputs, read_npy, read_npz, write_npz_among,
};
use tenon_compiler::plan::default_function;
use tenon_compiler::runtime::dlpack::{TensorBuffer, TensorError, TensorRef};
use tenon_compiler::runtime::functions::{Library, OpenOptions};
use tenon_compiler::runtime::model::{Model, ModelError};
use tenon_compiler::runtime::parallel::ThreadPool;
use tenon_compiler::runtime::profile;
use tenon_compiler::runtime::signature::TensorSpec;
use tenon_compiler::runtime::{from_array, npy_type, to_array};
use tenon_compiler::target::Target;

#[derive(Args)]
pub(super) struct RunArgs {
    /// A compiled library, an executable that was saved, an .onnx model or a module's text
    model: PathBuf,
    /// An input from a file of one array
    #[arg(long = "input", value_name = "NAME=FILE.npy", value_parser = parse_input)]
    input: Vec<(String, PathBuf)>,
    /// Inputs by their names from an archive of arrays; other arrays in it are left alone
    #[arg(long, value_name = "FILE.npz")]
    inputs: Option<PathBuf>,
    /// Where the outputs go
    #[arg(long, value_name = "FILE.npz")]
    output: Option<PathBuf>,
    /// Threads that work on a run; 0 is one for each core
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    /// The most bytes that a run may have besides its inputs and outputs of known size; one that needs more fails
    #[arg(long, value_name = "BYTES")]
    memory_limit: Option<u64>,
    /// Run so often, and say how long it took
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) repeat: u32,
    /// Say how long a run took, and of a model or a text each kernel, with what it came from
    #[arg(long)]
    profile: bool,
    /// A pipeline's name or text, for a model that is not compiled yet
    #[arg(long, default_value = DEFAULT_PIPELINE, add = complete::pipeline())]
    pipeline: String,
    /// The function that runs: a graph function or a tensor program; by default `main`, or the only public one
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// The code of a library for several processors that runs, by the processor's name: `x86-64-v2`; by default the best that
    /// this machine can run
    #[arg(long, value_name = "NAME")]
    processor: Option<String>,
    /// The file with the weights of a library that does not hold them; by default the one beside it
    #[arg(long, value_name = "FILE")]
    weights_file: Option<PathBuf>,
    /// Bind a symbolic dimension, or say its range: n=1, n=1..512, n=1..
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = parse_dim_or_range)]
    dims: Vec<(String, DimValue)>,
    /// An object, an archive or a shared library that defines external functions which a model that is not compiled yet calls
    #[arg(long, value_name = "FILE")]
    link: Vec<PathBuf>,
    #[command(flatten)]
    passes: PassArgs,
}

/// What came of running a model.
pub(super) struct Ran {
    pub(super) outputs: Vec<(String, Array)>,
    /// Milliseconds of each run.
    pub(super) times: Vec<f64>,
    /// Threads that worked on it; none where it ran on a device.
    pub(super) threads: usize,
    /// The most bytes that the last run had besides inputs and outputs of known size; none where it ran on a device.
    pub(super) memory: Option<u64>,
    pub(super) kernels: KernelTimes,
}

pub(super) fn run(global: &Global, args: &RunArgs) -> Result<(), Failure> {
    let arrays = args.inputs.iter().chain(args.input.iter().map(|(_, path)| path));
    let arrays = InputFiles::new(arrays.cloned());
    if let Some(output) = &args.output {
        arrays.refuse(output)?;
    }
    let is_library = args.model.extension().is_some_and(|extension| extension == "so");
    let ran = match is_library {
        true => on_processor(args, open_library(args)?, Vec::new())?,
        false if is_saved(&args.model) => {
            on_processor(args, open_saved(global, args)?, Vec::new())?
        }
        false => run_model(global, args)?,
    };
    if let Some(path) = &args.output {
        // A model may list a value twice among its outputs.
        let mut names = HashSet::new();
        let outputs = ran.outputs.iter().filter(|(name, _)| names.insert(name));
        let views: Vec<(&str, ArrayView<'_>)> =
            outputs.map(|(name, array)| (name.as_str(), array.view())).collect();
        let mut written = Outputs::sparing(arrays);
        write_npz_among(&mut written, path, &views)?;
        written.publish()?;
    }
    tell(global, args, ran)
}

/// Says what came of it.
fn tell(global: &Global, args: &RunArgs, ran: Ran) -> Result<(), Failure> {
    let Ran { outputs, mut times, threads, memory, kernels } = ran;
    times.sort_by(f64::total_cmp);
    let (min, median) = (times[0], times[times.len() / 2]);
    if global.json {
        let outputs: Vec<_> = outputs
            .iter()
            .map(|(name, array)| {
                serde_json::json!({ "name": name, "dtype": array.dtype.name(), "shape": array.shape })
            })
            .collect();
        return print_json(&serde_json::json!({
            "runs": times.len(), "threads": threads, "min_ms": min, "median_ms": median,
            "memory": memory, "outputs": outputs, "kernels": kernels.to_json(),
        }));
    }
    if args.profile || args.repeat > 1 {
        let runs = times.len();
        let (runs, threads) = (count_of(runs, "run"), count_of(threads, "thread"));
        note(format!("{runs} on {threads}: min {min:.3} ms, median {median:.3} ms"));
        if let Some(memory) = memory {
            note(format!("{memory} bytes of memory at most, besides inputs and outputs"));
        }
        kernels.tell();
    }
    match &args.output {
        Some(_) => Ok(()),
        None => print(summary(&outputs)),
    }
}

/// Runs a compiled model on this machine's processor.
fn on_processor(args: &RunArgs, model: Model, kernels: Vec<KernelRun>) -> Result<Ran, Failure> {
    let inputs = inputs_for(args, model.inputs())?;
    let inputs: Vec<TensorRef<'_>> = inputs.iter().map(TensorBuffer::as_ref).collect();
    let pool = match NonZeroUsize::new(args.threads) {
        Some(threads) => ThreadPool::new(threads)?,
        None => ThreadPool::with_all_threads()?,
    };
    let mut context = model.context()?;
    context.set_memory_limit(args.memory_limit);
    let mut times = Vec::with_capacity(args.repeat as usize);
    for _ in 0..args.repeat {
        let start = Instant::now();
        context.run(&inputs, Some(&pool))?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let profile = profile::take();
    let speed = match kernels.is_empty() {
        true => Speed::default(),
        false => speed(&args.passes.target, &pool)?,
    };
    let kernels = KernelTimes::of(kernels, &profile, speed);
    let memory = Some(context.most_memory());
    let outputs = model.outputs().iter().zip(context.outputs());
    let outputs = outputs.map(|(spec, tensor)| Ok((spec.name.clone(), to_array(tensor, spec)?)));
    let outputs = outputs.collect::<Result<_, ModelError>>()?;
    Ok(Ran { outputs, times, threads: pool.threads(), memory, kernels })
}

fn refuse(args: &RunArgs, files: &InputFiles) -> Result<(), Failure> {
    args.output.iter().try_for_each(|path| files.refuse(path))?;
    Ok(())
}

/// Refuses what only a library can be asked.
fn refuse_options_of_libraries(args: &RunArgs, why: &str) -> Result<(), Failure> {
    if args.processor.is_some() {
        let text = format!("--processor is of a library that is for several processors, and {why}");
        return Err(Failure::new(text).help("name what it is compiled for: --target x86-64-v3"));
    }
    if args.weights_file.is_some() {
        let text =
            format!("--weights-file is of a library that does not hold its weights, and {why}");
        return Err(Failure::new(text).help("how weights of a model are stored says --weights"));
    }
    Ok(())
}

/// Refuses what says how something is compiled, where that is done.
fn refuse_options_of_models(args: &RunArgs) -> Result<(), Failure> {
    let given = [
        ("-D", !args.dims.is_empty()),
        ("--pipeline", args.pipeline != DEFAULT_PIPELINE),
        ("--link", !args.link.is_empty()),
    ];
    let given = given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name);
    match given.or_else(|| args.passes.first_given()) {
        Some(option) => Err(compiled_already(&args.model, option)),
        None => Ok(()),
    }
}

fn open_library(args: &RunArgs) -> Result<Model, Failure> {
    refuse_options_of_models(args)?;
    let weights = args.weights_file.iter();
    refuse(args, &InputFiles::new([&args.model].into_iter().chain(weights).cloned()))?;
    let (processor, weights) = (args.processor.clone(), args.weights_file.clone());
    let library = Library::open_with(&args.model, &OpenOptions { processor, weights })?;
    if let Some(path) = library.weights_path() {
        refuse(args, &InputFiles::new([path.to_owned()]))?;
    }
    Ok(match &args.function {
        Some(name) => library.function(name)?,
        None => library.main()?,
    })
}

/// The function of an executable that was saved.
fn open_saved(global: &Global, args: &RunArgs) -> Result<Model, Failure> {
    refuse(args, &InputFiles::new([args.model.clone()]))?;
    refuse_options_of_libraries(args, "it is an executable, and takes what is best here")?;
    refuse_options_of_models(args)?;
    let library = global.open_session()?.load(&args.model)?.load()?;
    Ok(match &args.function {
        Some(name) => library.function(name)?,
        None => library.main()?,
    })
}

/// Compiles a model in memory and runs it; its calls of kernels are known as well then, if they are asked for.
fn run_model(global: &Global, args: &RunArgs) -> Result<Ran, Failure> {
    let progress = Progress::new();
    let session = global.open_session()?;
    refuse_options_of_libraries(args, "this is a model")?;
    let target = args.passes.targets()?.here()?.clone();
    let (dims, ranges) = numbers_and_ranges(&args.dims);
    let model = session.read(&args.model, &dims)?;
    refuse(args, &model.files)?;
    let mut options = args.passes.options(&args.pipeline);
    options.code.is_profiled = args.profile;
    options.code.function.clone_from(&args.function);
    options.code.ranges = ranges;
    options.code.link.clone_from(&args.link);
    let module = run_passes(&session, &model, &target, &options, &args.passes, Some(&progress))?;
    if options.code.function.is_none() {
        // The others are not run.
        options.code.function = Some(default_function(&module).map_err(CompileError::Plan)?);
    }
    progress.say("generating code");
    if target.device().is_some() {
        let program = session.generate_for_device(&module, &target, &options)?;
        progress.done();
        return on_device(args, &program);
    }
    let executable = session.generate(&module, &target, &options)?;
    let model = executable.jit()?;
    progress.done();
    on_processor(args, model, executable.kernel_runs().to_vec())
}

/// The tensors that a model is given.
pub(super) fn inputs_for(
    args: &RunArgs,
    expected: &[TensorSpec],
) -> Result<Vec<TensorBuffer>, Failure> {
    let inputs = match_inputs(expected, given_inputs(args.inputs.as_deref(), &args.input)?)?;
    Ok(inputs.iter().map(from_array).collect::<Result<_, TensorError>>()?)
}

/// What the machine can on the threads of a pool.
fn speed(target: &str, pool: &ThreadPool) -> Result<Speed, Failure> {
    let target = Target::parse(target)?;
    let of_one = peak::operations_per_second(&target)?;
    // Rules take as many for granted where a target does not say.
    let units = if target.fma_units() > 0 { target.fma_units() } else { 2 };
    let per_cycle = f64::from(2 * target.lanes(4) * units);
    Ok(Speed { operations: of_one * pool.threads() as f64, cycles: of_one / per_cycle })
}

/// Arrays by name, of an archive and of files of one, with whether they were named on the command line.
pub(super) fn given_inputs(
    archive: Option<&Path>,
    single: &[(String, PathBuf)],
) -> Result<Vec<(String, Array, bool)>, Failure> {
    let mut given: Vec<(String, Array, bool)> = Vec::new();
    if let Some(path) = archive {
        given.extend(read_npz(path)?.into_iter().map(|(name, array)| (name, array, false)));
    }
    for (name, path) in single {
        given.retain(|(other, ..)| other != name);
        given.push((name.clone(), read_npy(path)?, true));
    }
    Ok(given)
}

/// The arrays in the order of the model's inputs. Every mismatch says what was expected; an array that
/// was named on the command line must be an input.
pub(super) fn match_inputs(
    expected: &[TensorSpec],
    mut given: Vec<(String, Array, bool)>,
) -> Result<Vec<Array>, Failure> {
    let signature = || expected.iter().map(TensorSpec::to_string).collect::<Vec<_>>().join(", ");
    if let Some((name, ..)) = given
        .iter()
        .find(|(name, _, named)| *named && !expected.iter().any(|input| input.name == *name))
    {
        return Err(Failure::new(format!("the model has no input `{name}`"))
            .help(format!("its inputs are {}", signature())));
    }
    let mut inputs = Vec::with_capacity(expected.len());
    for info in expected {
        let Some(at) = given.iter().position(|(name, ..)| *name == info.name) else {
            return Err(Failure::new(format!("input `{}` is missing", info.name))
                .help(format!("expected {}", signature())));
        };
        let (name, array, _) = given.swap_remove(at);
        let shape: Vec<i64> = array.shape.iter().map(|&extent| extent as i64).collect();
        if Some(array.dtype) != npy_type(info.dtype) || !info.takes(&shape) {
            return Err(Failure::new(format!(
                "input `{name}` is {}{:?}, but the model expects {info}",
                array.dtype.name(),
                array.shape
            )));
        }
        inputs.push(array);
    }
    Ok(inputs)
}

/// Names, types and the first values of outputs.
fn summary(outputs: &[(String, Array)]) -> String {
    outputs
        .iter()
        .map(|(name, array)| {
            format!("{name}: {}{:?} {}\n", array.dtype.name(), array.shape, first_values(array))
        })
        .collect()
}

fn first_values(array: &Array) -> String {
    let texts: Vec<String> = match array.dtype {
        NpyType::Bool => texts(array, |[byte]| (byte != 0).to_string()),
        NpyType::I8 => texts(array, |bytes| i8::from_le_bytes(bytes).to_string()),
        NpyType::I16 => texts(array, |bytes| i16::from_le_bytes(bytes).to_string()),
        NpyType::I32 => texts(array, |bytes| i32::from_le_bytes(bytes).to_string()),
        NpyType::I64 => texts(array, |bytes| i64::from_le_bytes(bytes).to_string()),
        NpyType::U8 => texts(array, |bytes| u8::from_le_bytes(bytes).to_string()),
        NpyType::U16 => texts(array, |bytes| u16::from_le_bytes(bytes).to_string()),
        NpyType::U32 => texts(array, |bytes| u32::from_le_bytes(bytes).to_string()),
        NpyType::U64 => texts(array, |bytes| u64::from_le_bytes(bytes).to_string()),
        NpyType::F16 => texts(array, |bytes| f16::from_le_bytes(bytes).to_string()),
        NpyType::BF16 => texts(array, |bytes| bf16::from_le_bytes(bytes).to_string()),
        NpyType::F32 => texts(array, |bytes| f32::from_le_bytes(bytes).to_string()),
        NpyType::F64 => texts(array, |bytes| f64::from_le_bytes(bytes).to_string()),
    };
    let more = if array.shape.iter().product::<usize>() > texts.len() { ", …" } else { "" };
    format!("[{}{more}]", texts.join(", "))
}

fn texts<const N: usize>(array: &Array, text: impl Fn([u8; N]) -> String) -> Vec<String> {
    array.data.as_chunks::<N>().0.iter().take(8).map(|&bytes| text(bytes)).collect()
}
