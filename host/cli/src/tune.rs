//! `tune`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::Global;
use super::argument::{DimValue, numbers_and_ranges, parse_dim_or_range, parse_duration};
use super::output::{Failure, note, print, print_json, table};
use super::progress::Progress;
use super::run_passes::PassArgs;
use super::{own_folders, this_program};
use tenon_compiler::diagnostics::count_of;
use tenon_compiler::executable::CompileError;
use tenon_compiler::io::InputFiles;
use tenon_compiler::plan::check_ranges;
use tenon_compiler::session::Installation;
use tenon_compiler::target::Target;
use tenon_compiler::tune::{
    Budget, Event, NetworkTimes, Outcome, Strategy, TaskReport, Tuning, compare_network,
    serve_trials,
};

#[derive(Args)]
pub(super) struct TuneArgs {
    /// An .onnx model or a module's text
    model: PathBuf,
    /// Where what is found is kept, a line each; what stands there already is taken up
    #[arg(long, value_name = "FILE")]
    db: PathBuf,
    /// Measure so many schedules at most
    #[arg(long, value_name = "N")]
    trials: Option<usize>,
    /// Measure for so long at most: 90s, 10m, 2h; without a limit, until nothing new is found
    #[arg(long, value_name = "T", value_parser = parse_duration)]
    time: Option<Duration>,
    /// Threads that work on a run; 0 is one for each core
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    /// Measure what is drawn, rather than what rules predict to be fast
    #[arg(long)]
    random: bool,
    /// Draw other candidates than without it
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Tune the programs alone that are known by these keys, as --list tells them
    #[arg(long, value_delimiter = ',', value_name = "KEYS")]
    only: Vec<String>,
    /// Say which programs would be tuned, and measure none
    #[arg(long)]
    list: bool,
    /// Measure on the workers of a Ray cluster: its address, or `auto`; with the package for Python that `python3` has
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["random", "seed", "list"])]
    ray: Option<String>,
    /// Bind a symbolic dimension, or say its range, 1..512: programs of what stays open are not tuned
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = parse_dim_or_range)]
    dims: Vec<(String, DimValue)>,
    #[command(flatten)]
    passes: PassArgs,
}

pub(super) fn tune(global: &Global, args: &TuneArgs) -> Result<(), Failure> {
    if let Some(address) = &args.ray {
        return on_cluster(args, address);
    }
    let session = global.open_session()?;
    let target = args.passes.target()?;
    let (dims, ranges) = numbers_and_ranges(&args.dims);
    let model = session.read(&args.model, &dims)?;
    check_ranges(&model.module, &ranges).map_err(CompileError::Plan)?;
    model.files.refuse(&args.db)?;
    InputFiles::new([args.model.clone()]).refuse(&args.db)?;
    let installation =
        Installation { libraries: own_folders(), ..Installation::at(this_program()?) };
    let threads = threads(args.threads);
    let mut options = args.passes.options("default");
    options.code.ranges = ranges;
    let budget = Budget { trials: args.trials, time: args.time };
    let strategy = if args.random { Strategy::Random } else { Strategy::Model };
    let tuning = Tuning::new(&session, &installation, &global.registry, &target, threads, &args.db);
    let tuning = tuning.within(budget).by(strategy).seeded(args.seed);
    let mut tuning = tuning.only(args.only.clone());
    if args.list {
        return list(global, &tuning.list(&model, &options)?);
    }
    let mut screen =
        Screen { progress: Progress::new(), sums: String::new(), is_quiet: global.json };
    let outcome = tuning.run(&model, &options, &mut |event| screen.tell(event));
    screen.progress.done();
    let outcome = outcome?;
    let network = match (outcome.is_stopped, args.only.is_empty()) {
        (true, _) => Err("it was stopped".to_owned()),
        (_, false) => Err("only some of its programs were tuned".to_owned()),
        _ => compare_network(&session, &model, &target, &options, threads, &args.db),
    };
    tell(global, &outcome, &network)
}

/// Lets the package for Python do it, which knows Ray.
fn on_cluster(args: &TuneArgs, address: &str) -> Result<(), Failure> {
    if !args.dims.is_empty() {
        let text = "--ray takes a model without -D: `tenon opt` binds dimensions";
        return Err(Failure::new(text));
    }
    let mut python = Command::new("python3");
    python.args(["-m", "tenon.cluster"]).arg(&args.model).arg("--db").arg(&args.db);
    python.args(["--address", address, "--target", &args.passes.target]);
    python.args(["--threads", &args.threads.max(1).to_string()]);
    if let Some(trials) = args.trials {
        python.args(["--trials", &trials.to_string()]);
    }
    if let Some(time) = args.time {
        python.args(["--time", &time.as_secs_f64().to_string()]);
    }
    if !args.only.is_empty() {
        python.arg("--only").args(&args.only);
    }
    let help = "--ray needs a `python3` that has the packages tenon and ray";
    let ran = python.status();
    let ran = ran.map_err(|error| Failure::new(format!("python3: {error}")).help(help))?;
    match ran.success() {
        true => Ok(()),
        false => Err(Failure::new("the tuning on a cluster failed").help(help)),
    }
}

/// The process that takes times. Whoever started it is told all there is to tell through a pipe.
pub(super) fn trials(global: &Global, target: &str, threads: NonZeroUsize) -> ExitCode {
    let (Ok(session), Ok(target)) = (global.open_session(), Target::parse(target)) else {
        return ExitCode::FAILURE;
    };
    serve_trials(&session, &target, threads)
}

fn threads(wanted: usize) -> NonZeroUsize {
    let all = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    NonZeroUsize::new(wanted).unwrap_or_else(all)
}

/// What is seen while it goes on.
struct Screen {
    progress: Progress,
    sums: String,
    is_quiet: bool,
}

impl Screen {
    fn tell(&mut self, event: Event<'_>) {
        match event {
            Event::Begins { tasks, skipped } if !self.is_quiet => {
                note(format!("{} to tune", count_of(tasks, "program")));
                skipped.iter().for_each(|(name, why)| note(format!("  not @{name}: {why}")));
            }
            Event::Begins { .. } => {}
            Event::At { task, op } => self.progress.say(format!("{}@{task} ({op})", self.sums)),
            Event::Progress { trials, before, now } => {
                let gained = 100.0 * (1.0 - now / before.max(f64::MIN_POSITIVE));
                self.sums = format!(
                    "{}, {before:.3} => {now:.3} ms (-{gained:.1} %)  ",
                    count_of(trials, "trial")
                );
            }
            Event::Better { task, op, before, now, knobs } if !self.is_quiet => {
                let text = format!("  @{task} ({op}): {before:.4} => {now:.4} ms, {knobs}");
                self.progress.above(&text);
            }
            Event::Better { .. } => {}
        }
    }
}

/// Says which programs would be tuned.
fn list(global: &Global, outcome: &Outcome) -> Result<(), Failure> {
    if global.json {
        return print_json(outcome);
    }
    let row = |task: &TaskReport| {
        let TaskReport { key, weight, name, op, .. } = task;
        vec![key.clone(), weight.to_string(), format!("@{name}"), op.clone()]
    };
    print(table(&outcome.tasks.iter().map(row).collect::<Vec<_>>()))
}

/// Says what came of it.
fn tell(
    global: &Global,
    outcome: &Outcome,
    network: &Result<NetworkTimes, String>,
) -> Result<(), Failure> {
    if global.json {
        let network = match network {
            Ok(times) => json!({ "default_ms": times.default, "tuned_ms": times.tuned }),
            Err(why) => json!({ "why_not": why }),
        };
        let mut told = serde_json::to_value(outcome)?;
        told["model"] = network;
        return print_json(&told);
    }
    let rows = outcome.tasks.iter().map(task_row);
    let head = ["ms", "tuned", "calls", "trials", "failed", "refused", "program", ""];
    let head = head.map(str::to_owned).to_vec();
    print(table(&[head].into_iter().chain(rows).collect::<Vec<_>>()))?;
    match network {
        Ok(NetworkTimes { default, tuned }) => note(format!(
            "the model: {default:.3} => {tuned:.3} ms, {:.3} of what it took",
            tuned / default
        )),
        Err(why) => note(format!("the model as a whole was not measured: {why}")),
    }
    Ok(())
}

fn task_row(task: &TaskReport) -> Vec<String> {
    let ms = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| format!("{ms:.4}"));
    vec![
        ms(task.default_ms),
        ms(task.best_ms),
        task.weight.to_string(),
        task.tried.to_string(),
        task.failed.to_string(),
        task.refused.to_string(),
        format!("@{}", task.name),
        task.why_not.clone().unwrap_or_else(|| task.op.clone()),
    ]
}
