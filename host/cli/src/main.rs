//! The `tenon` program: the command line.
//!
//! Exit codes: 0 done, 1 the input or a pass failed and a diagnostic said so, 2 wrong usage, 130 interrupted. What
//! was asked for goes to standard output, everything else to standard error.

mod argument;
mod bisect;
mod compare;
mod compile;
mod complete;
mod conformance;
mod explain;
mod input;
mod interrupt;
mod kernel_times;
mod new;
mod ops;
mod opt;
mod options;
mod output;
mod passes;
mod patience;
mod peak;
mod pipelines;
mod plugins;
mod progress;
mod quarantine;
mod reduce;
mod rules;
mod run;
mod run_on_device;
mod run_passes;
mod show;
mod targets;
mod trial;
mod tune;

#[cfg(feature = "static-llvm")]
use std::env;
use std::ffi::c_int;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::env::CompleteEnv;
use tenon_plugin_api::abi::guard::guard;

use output::{Failure, warn_of_plugins};
#[cfg(feature = "static-llvm")]
use tenon_compiler::object::inside;
use tenon_compiler::passes::serve_passes;
use tenon_compiler::registry::{
    Config, ConfigError, PROBE_COMMAND, Registry, WORKER_COMMAND, exit_at_once, prepare_last_words,
    probe_here,
};
use tenon_compiler::runtime::memory::keep_freed_memory;
use tenon_compiler::session::{Installation, Session};
use tenon_compiler::tune::TRIAL_COMMAND;

/// A tensor compiler whose every transformation is a plugin.
#[derive(Parser)]
#[command(name = "tenon", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Args)]
struct Global {
    /// A project's registry.toml, above those of the program, the system and the user; may be repeated
    #[arg(long, global = true, value_name = "FILE")]
    registry: Vec<PathBuf>,
    /// Print results and errors as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Compile a model into a native library
    Compile(compile::CompileArgs),
    /// Run a model or a compiled library
    Run(run::RunArgs),
    /// What a library says of itself: its function, types, symbols, memory
    Show(show::ShowArgs),
    /// Find out by measuring which schedules of a model's programs are fastest on this machine
    Tune(tune::TuneArgs),
    /// Run passes over a module and print it
    Opt(opt::OptArgs),
    /// Find the pass after which a command fails or a result is wrong
    Bisect(bisect::BisectArgs),
    /// Run what is compiled of a model beside a judge, and find the first kernel that is wrong
    Compare(compare::CompareArgs),
    /// Shrink a module while a command, or a pass, keeps failing
    Reduce(reduce::ReduceArgs),
    /// Parse a module, infer its types, and check that it is well formed
    Check(opt::CheckArgs),
    /// The passes that plugins offer
    #[command(subcommand)]
    Passes(passes::PassesCommand),
    /// The operators that plugins offer
    #[command(subcommand)]
    Ops(ops::OpsCommand),
    /// What plugins know of operators besides: gradients, layouts, imports
    #[command(subcommand)]
    Rules(rules::RulesCommand),
    /// What code can be made for
    #[command(subcommand)]
    Targets(targets::TargetsCommand),
    /// The plugins that the registry leads to
    #[command(subcommand)]
    Plugins(plugins::PluginsCommand),
    /// The named pipelines, and what a pipeline would run
    #[command(subcommand)]
    Pipeline(pipelines::PipelineCommand),
    /// Open a library for a host that never saw it; not for people
    #[command(name = PROBE_COMMAND, hide = true)]
    PluginProbe {
        library: PathBuf,
        /// Bytes of memory that it may take
        memory: u64,
    },
    /// The options of passes and of Tenon itself
    #[command(subcommand)]
    Options(options::OptionsCommand),
    /// Run passes of a library for a host that keeps it out of its process; not for people
    #[command(name = WORKER_COMMAND, hide = true)]
    PluginWorker {
        library: PathBuf,
        /// The digest of the library
        sha256: String,
        /// Threads that share the work; one a processor when left out
        threads: Option<usize>,
    },
    /// Take times of schedules for a host that stays out of their way; not for people
    #[command(name = TRIAL_COMMAND, hide = true)]
    TuneTrials { target: String, threads: NonZeroUsize },
}

/// Set when the user asks the program to stop.
static CANCELLED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// What plugins call that call `_exit`: the program's own function stands before that of the C library.
// SAFETY: it does what the function of that name does in every C library.
#[unsafe(no_mangle)]
extern "C" fn _exit(code: c_int) -> ! {
    exit_at_once(code)
}

/// Runs the program with the process's arguments.
fn main() -> ExitCode {
    keep_freed_memory();
    #[cfg(feature = "static-llvm")]
    if env::args_os().nth(1).is_some_and(|word| word == inside::WORD) {
        return inside::link(env::args_os().skip(2));
    }
    CompleteEnv::with_factory(Cli::command).complete();
    let cli = Cli::parse();
    match &cli.command {
        Command::PluginProbe { library, memory } => return probe_here(library, *memory),
        Command::PluginWorker { library, sha256, threads } => {
            return serve_passes(library, sha256, *threads);
        }
        Command::TuneTrials { target, threads } => {
            return tune::trials(&cli.global, target, *threads);
        }
        _ => {}
    }
    prepare_last_words();
    interrupt::prepare(CANCELLED.clone());
    let is_json = cli.global.json;
    let done = guard(|| dispatch(&cli)).unwrap_or_else(|panic| {
        Err(Failure::new(format!("internal error: {panic}"))
            .help("this is a bug in Tenon: please report it with the input that caused it"))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::report(&failure, is_json);
            ExitCode::from(if interrupt::is_interrupted() { interrupt::EXIT_CODE } else { 1 })
        }
    }
}

fn dispatch(cli: &Cli) -> Result<(), Failure> {
    match &cli.command {
        Command::Compile(args) => compile::compile(&cli.global, args),
        Command::Run(args) => run::run(&cli.global, args),
        Command::Show(args) => show::show(&cli.global, args),
        Command::Tune(args) => tune::tune(&cli.global, args),
        Command::Opt(args) => opt::opt(&cli.global, args),
        Command::Bisect(args) => bisect::bisect(&cli.global, args),
        Command::Compare(args) => compare::compare(&cli.global, args),
        Command::Reduce(args) => reduce::reduce(&cli.global, args),
        Command::Check(args) => opt::check(&cli.global, args),
        Command::Passes(command) => passes::passes(&cli.global, command),
        Command::Ops(command) => ops::ops(&cli.global, command),
        Command::Rules(command) => rules::rules(&cli.global, command),
        Command::Targets(command) => targets::targets(&cli.global, command),
        Command::Plugins(command) => plugins::plugins(&cli.global, command),
        Command::Pipeline(command) => pipelines::pipeline(&cli.global, command),
        Command::PluginProbe { .. } | Command::PluginWorker { .. } | Command::TuneTrials { .. } => {
            unreachable!("they answer to a program, and not to people")
        }
        Command::Options(command) => options::options(&cli.global, command),
    }
}

/// This program's own file. The kernel's name leads to it even where a new build stands at its path.
fn this_program() -> Result<PathBuf, Failure> {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() { Ok(link) } else { Ok(std::env::current_exe()?) }
}

/// The folders of the libraries that belong to this program.
fn own_folders() -> Vec<PathBuf> {
    std::env::current_exe().map_or_else(|_| Vec::new(), |exe| Installation::at(exe).libraries)
}

/// What the files of a registry say, with the libraries that belong to this program.
fn config_of(files: &[PathBuf]) -> Result<Config, ConfigError> {
    Ok(Config { own: own_folders(), ..Config::load(files)? })
}

/// A session with what the files of a registry say, which Ctrl-C stops.
fn session_of(config: Config) -> Result<Session, Failure> {
    let installation =
        Installation { libraries: own_folders(), ..Installation::at(this_program()?) };
    let session = Session::of_config(&installation, config)?.cancelled_by(CANCELLED.clone());
    warn_of_plugins(session.registry());
    Ok(session)
}

impl Global {
    /// What the registry's files say.
    fn config(&self) -> Result<Config, ConfigError> {
        config_of(&self.registry)
    }

    /// The same, or that there are no files.
    fn config_if_any(&self) -> Result<Config, ConfigError> {
        match self.config() {
            Err(ConfigError::NotFound { .. }) => {
                Ok(Config { own: own_folders(), ..Config::default() })
            }
            config => config,
        }
    }

    /// The session of a command that runs no pass, and does without files.
    fn open_operators(&self) -> Result<Session, Failure> {
        session_of(self.config_if_any()?)
    }

    /// The session that the command works with.
    fn open_session(&self) -> Result<Session, Failure> {
        session_of(self.config()?)
    }

    /// The registry of a command that only looks at it.
    fn open_registry(&self) -> Result<Registry, Failure> {
        Ok(self.open_session()?.into_registry())
    }
}
