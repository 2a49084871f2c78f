//! `compile`.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::Global;
use super::argument::{DimValue, numbers_and_ranges, parse_dim_or_range};
use super::complete;
use super::explain;
use super::input::write_module_below;
use super::output::{Failure, note, print, print_json};
use super::progress::Progress;
use super::run_passes::{PassArgs, run_passes};
use tenon_compiler::backend;
use tenon_compiler::executable::{
    Executable, ExportOptions, LinkForm, header_path, is_saved, library_weights_path,
};
use tenon_compiler::io::{FileError, InputFiles, Outputs, is_stream};
use tenon_compiler::ir::Module;
use tenon_compiler::session::{Cached, FileJob, Model, Observer, Options, Session};
use tenon_compiler::target::{Target, Targets};
use tenon_compiler::text::weights_path;

/// The pipeline that runs where none is named.
pub(super) const DEFAULT_PIPELINE: &str = "default";

#[derive(Args)]
pub(super) struct CompileArgs {
    /// An .onnx model, a module's text, or an executable that was saved
    model: PathBuf,
    /// Where the result goes; by default beside the working directory's name of the model
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A pipeline's name or text
    #[arg(long, default_value = DEFAULT_PIPELINE, add = complete::pipeline())]
    pipeline: String,
    /// The only function that is compiled: a graph function or a tensor program; by default all that are not private
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// What the names of its functions begin with; by default what the module says, or the file's name
    #[arg(long, value_name = "NAME")]
    prefix: Option<String>,
    /// Bind a symbolic dimension, or say its range: n=1, n=1..512, n=1..
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = parse_dim_or_range)]
    dims: Vec<(String, DimValue)>,
    /// A folder of what was compiled before: a library or an object that is there is not compiled again
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Put the constants of a library or an object into a file beside it, which it maps: by default of its name, ending in
    /// `.weights`
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    weights_file: Option<OsString>,
    /// What to produce
    #[arg(long, value_enum, default_value_t = Emit::So)]
    emit: Emit,
    /// An object, an archive or a shared library that defines external functions which the module calls
    #[arg(long, value_name = "FILE")]
    link: Vec<PathBuf>,
    #[command(flatten)]
    passes: PassArgs,
}

/// What `compile` produces.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// The module's text after the pipeline
    Ir,
    /// LLVM's text
    Llvm,
    /// Assembly
    Asm,
    /// Kernels for a device of NVIDIA's, as text
    Ptx,
    /// A relocatable object that needs no other, and its C header
    Obj,
    /// A shared library and its C header
    So,
    /// All that these are made of, to make them, to run, and to show
    Exec,
}

impl Emit {
    fn extension(self) -> &'static str {
        match self {
            Emit::Ir => "ir",
            Emit::Llvm => "ll",
            Emit::Asm => "s",
            Emit::Ptx => "ptx",
            Emit::Obj => "o",
            Emit::So => "so",
            Emit::Exec => "exec",
        }
    }

    /// What is linked, where something is.
    fn form(self) -> Option<LinkForm> {
        match self {
            Emit::Obj => Some(LinkForm::Object),
            Emit::So => Some(LinkForm::Library),
            Emit::Ir | Emit::Llvm | Emit::Asm | Emit::Ptx | Emit::Exec => None,
        }
    }

    /// Whether it is a text, which is for one target.
    fn is_text(self) -> bool {
        match self {
            Emit::Ir | Emit::Llvm | Emit::Asm | Emit::Ptx => true,
            Emit::Obj | Emit::So | Emit::Exec => false,
        }
    }

    /// What is written when the result goes to `output`, besides a file of weights.
    fn outputs(self, output: &Path) -> Vec<PathBuf> {
        let beside = match self {
            Emit::Ir => (!is_stream(output)).then(|| weights_path(output)),
            Emit::Llvm | Emit::Asm | Emit::Ptx | Emit::Exec => None,
            Emit::Obj | Emit::So => header_path(output),
        };
        std::iter::once(output.to_owned()).chain(beside).collect()
    }
}

pub(super) fn compile(global: &Global, args: &CompileArgs) -> Result<(), Failure> {
    let start = Instant::now();
    let progress = Progress::new();
    let session = global.open_session()?;
    let targets = args.passes.targets()?;
    let form = args.emit.form();
    if args.emit.is_text() {
        let target = targets.one()?;
        if args.emit == Emit::Ptx && target.device().is_none() {
            let kind = target.kind();
            let text = format!("--emit ptx is for devices, and `{target}` is a {kind}");
            return Err(Failure::new(text).help("name one: --target nvptx"));
        }
    }
    let (dims, ranges) = numbers_and_ranges(&args.dims);
    let output = match &args.output {
        Some(path) => path.clone(),
        None => default_output(&args.model, args.emit),
    };
    let weights = weights_file(args, &output)?;
    if is_saved(&args.model) {
        export_saved(&session, args, weights.as_deref(), &output)?;
        return tell(global, args, &output, start, false, None);
    }
    let weights = weights.as_deref();
    let mut options = args.passes.options(&args.pipeline);
    options.code.function.clone_from(&args.function);
    options.code.ranges = ranges;
    options.code.link.clone_from(&args.link);
    let job = form.map(|form| FileJob {
        model: &args.model,
        dims: &dims,
        targets: &targets,
        output: &output,
        form,
        prefix: args.prefix.as_deref(),
        weights,
    });
    let export = job.map(|job| job.export_options());
    // Whoever wants to see how it is compiled has it compiled.
    let job = job.filter(|_| !args.passes.shows_passes());
    let mut place = None;
    if let (Some(job), Some(cache)) = (&job, &args.cache) {
        options.cache = Some(cache.clone());
        match session.fetch(job, &options, &mut Told)? {
            Cached::Written => return tell(global, args, &output, start, true, None),
            Cached::Missing(missing) => place = missing,
        }
    }
    progress.say(format!("reading {}", args.model.display()));
    let model = session.read(&args.model, &dims)?;
    for path in args.emit.outputs(&output).iter().map(PathBuf::as_path).chain(weights) {
        model.files.refuse(path)?;
    }
    let run =
        Run { session: &session, model: &model, options: &options, args, progress: &progress };
    let written = match &export {
        Some(export) => run.link(&targets, export, &output),
        None if args.emit == Emit::Exec => run.save(&targets, &output),
        None => run.write(targets.one()?, &output),
    };
    progress.done();
    let schedules = written?;
    if let (Some(job), Some(place)) = (&job, place) {
        place.keep(job, &model.files, &mut Told);
    }
    tell(global, args, &output, start, false, schedules)
}

/// An option that says how to compile, of what is compiled.
pub(super) fn compiled_already(model: &Path, option: &str) -> Failure {
    let text = format!("{} is compiled already, and {option} says how", model.display());
    Failure::new(text).help("give it to the `tenon compile` that makes it")
}

/// Writes what an executable becomes that was saved: nothing is compiled, so all that says how is a mistake.
fn export_saved(
    session: &Session,
    args: &CompileArgs,
    weights: Option<&Path>,
    output: &Path,
) -> Result<(), Failure> {
    let refused = [
        ("-D", !args.dims.is_empty()),
        ("--function", args.function.is_some()),
        ("--cache", args.cache.is_some()),
        ("--pipeline", args.pipeline != DEFAULT_PIPELINE),
        ("--emit of a text", args.emit.is_text()),
    ];
    let refused = refused.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name);
    if let Some(option) = refused.or_else(|| args.passes.first_given()) {
        return Err(compiled_already(&args.model, option));
    }
    let executable = session.load(&args.model)?;
    let outputs = Outputs::sparing(InputFiles::new([args.model.clone()]));
    match args.emit.form() {
        None => executable.save(output, outputs)?,
        Some(form) => {
            let options = ExportOptions { form, prefix: args.prefix.as_deref(), weights };
            executable.export_with(output, &options, outputs)?;
        }
    }
    Ok(())
}

/// Where the constants go, if that is a file of their own.
fn weights_file(args: &CompileArgs, output: &Path) -> Result<Option<PathBuf>, Failure> {
    let Some(named) = &args.weights_file else { return Ok(None) };
    if args.emit.form().is_none() {
        let text = "--weights-file is for what is linked: a library or an object";
        return Err(Failure::new(text).help("--emit so, or --emit obj"));
    }
    if !named.is_empty() {
        return Ok(Some(PathBuf::from(named)));
    }
    let beside = library_weights_path(output).ok_or_else(|| {
        let text = format!("nothing lies beside {}, so the weights need a name", output.display());
        Failure::new(text).help("name the file: --weights-file=model.weights")
    });
    beside.map(Some)
}

/// What is said of the cache.
struct Told;

impl Observer for Told {
    fn warns(&mut self, warning: &str) {
        note(format!("note: {warning}"));
    }
}

/// Says where the result is, and how programs were scheduled, where that is asked for.
fn tell(
    global: &Global,
    args: &CompileArgs,
    output: &Path,
    start: Instant,
    was_cached: bool,
    schedules: Option<Value>,
) -> Result<(), Failure> {
    let seconds = start.elapsed().as_secs_f64();
    if args.passes.time_passes {
        note(format!("{seconds:8.3} s in all"));
    }
    match global.json {
        true => {
            let mut told = serde_json::json!({ "output": output, "seconds": seconds });
            if args.cache.is_some() {
                told["was_cached"] = was_cached.into();
            }
            if let Some(schedules) = schedules {
                told["schedules"] = schedules;
            }
            print_json(&told)
        }
        // The result itself may have gone to standard output.
        false if is_stream(output) => {
            note(format!("{} ({seconds:.2} s)", output.display()));
            Ok(())
        }
        false => {
            let cached = if was_cached { ", compiled before" } else { "" };
            print(format!("{} ({seconds:.2} s{cached})\n", output.display()))
        }
    }
}

/// A model that is compiled.
struct Run<'a> {
    session: &'a Session,
    model: &'a Model,
    options: &'a Options,
    args: &'a CompileArgs,
    progress: &'a Progress,
}

impl Run<'_> {
    /// The module behind the passes for a target.
    fn lower(&self, target: &Target) -> Result<Module, Failure> {
        let Run { session, model, options, args, progress } = self;
        let module = run_passes(session, model, target, options, &args.passes, Some(progress))?;
        self.progress.say("generating code");
        Ok(module)
    }

    /// Writes a library or an object. How programs were scheduled comes back, where that is asked for: for the best target.
    fn link(
        &self,
        targets: &Targets,
        export: &ExportOptions<'_>,
        output: &Path,
    ) -> Result<Option<Value>, Failure> {
        let (executable, schedules) = self.executable(targets)?;
        executable.export_with(output, export, Outputs::sparing(self.model.files.clone()))?;
        Ok(schedules)
    }

    /// Writes the executable itself.
    fn save(&self, targets: &Targets, output: &Path) -> Result<Option<Value>, Failure> {
        let (executable, schedules) = self.executable(targets)?;
        executable.save(output, Outputs::sparing(self.model.files.clone()))?;
        Ok(schedules)
    }

    /// The code for all targets, and how programs were scheduled.
    fn executable(&self, targets: &Targets) -> Result<(Executable, Option<Value>), Failure> {
        let mut all = Vec::new();
        let mut schedules = None;
        for target in targets.all() {
            let module = self.lower(target)?;
            all.push(self.session.generate(&module, target, self.options)?);
            schedules = schedules.or_else(|| self.schedules(&module));
        }
        Ok((self.session.join(all)?, schedules))
    }

    /// Writes a text.
    fn write(&self, target: &Target, output: &Path) -> Result<Option<Value>, Failure> {
        let Run { session, model, options, args, .. } = self;
        let module = self.lower(target)?;
        let mut outputs = Outputs::sparing(model.files.clone());
        let schedules = self.schedules(&module);
        let form = match args.emit {
            Emit::Ir => {
                let has_sources = args.passes.print_sources;
                write_module_below("", &module, output, has_sources, outputs)?;
                return Ok(schedules);
            }
            Emit::Llvm => backend::Emit::Text,
            Emit::Asm | Emit::Ptx | Emit::So | Emit::Obj | Emit::Exec => backend::Emit::Assembly,
        };
        let units = session.emit(&module, target, options, form)?;
        outputs.write(output, |out| {
            units
                .iter()
                .try_for_each(|unit| out.write_all(&unit.bytes))
                .map_err(|cause| FileError::Write { path: output.to_owned(), cause })
        })?;
        outputs.publish()?;
        Ok(schedules)
    }

    fn schedules(&self, module: &Module) -> Option<Value> {
        self.args.passes.explain_schedules.map(|_| explain::json(module))
    }
}

/// The model's file name with the kind's extension, in the working directory.
fn default_output(model: &Path, emit: Emit) -> PathBuf {
    let name = model.file_stem().unwrap_or_default();
    PathBuf::from(name).with_extension(emit.extension())
}
