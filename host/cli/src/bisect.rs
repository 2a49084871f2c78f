//! `bisect`: the pass after which something goes wrong.

use std::path::PathBuf;

use clap::Args;

use super::Global;
use super::output::{Failure, print, print_json, warn_of_plugins};
use super::progress::Progress;
use super::run_passes::{Job, PassArgs, reproducer_place, run_plan};
use super::trial::Trial;
use tenon_compiler::diagnostics::count_of;
use tenon_compiler::ir::Module;
use tenon_compiler::passes::{Record, Snapshot};
use tenon_compiler::session::{Model, write_reproducer};
use tenon_compiler::validate::Reference;

#[derive(Args)]
pub(super) struct BisectArgs {
    #[command(flatten)]
    job: Job,
    /// Where the module before that pass goes
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A command that succeeds on a good module, whose path stands for `{}`. Without one a module is good that
    /// computes what the first one does
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn bisect(global: &Global, args: &BisectArgs) -> Result<(), Failure> {
    let session = global.open_session()?;
    let Model { module, files, .. } = args.job.read(&session)?;
    if let Some(output) = &args.output {
        files.refuse(output)?;
    }
    let (pipeline, passes) = args.job.pipeline(session.registry())?;
    let target = passes.target()?;
    let mut options = passes.options(&pipeline);
    options.reproducer = reproducer_place(args.output.clone());
    let plan = session.plan(&options)?;
    let record = Record::of_all();
    let mut cx = session.pass_context(&module, &target, &options)?;
    cx.instruments.insert(0, Box::new(record.clone()));
    let progress = Progress::new();
    progress.say("running the passes");
    let outcome = run_plan(&session, &plan, &module, &mut cx);
    warn_of_plugins(session.registry());
    let snapshots = record.after();

    let (bad, before, what) = match outcome {
        Err(error) if error.is_cancelled() => {
            progress.done();
            return Err(Failure::from_diagnostic(error.to_diagnostic()));
        }
        Err(error) => {
            progress.done();
            let Some(failed) = error.stopped_at().or_else(|| record.before()) else {
                return Err(Failure::from_diagnostic(error.to_diagnostic()));
            };
            (failed.clone(), failed.module, error.to_string())
        }
        Ok(_) => {
            let first = first_bad(&module, &snapshots, args, &passes, &progress);
            progress.done();
            let first = first?;
            let before = match first.checked_sub(1) {
                Some(previous) => snapshots[previous].module.clone(),
                None => module,
            };
            let bad = snapshots[first].clone();
            let what = format!("wrong after pass `{}`", bad.pass);
            (bad, before, what)
        }
    };
    let failed = Snapshot { module: before, ..bad };
    let above = session.reproducer(&plan, &target, &options, failed.step, what.clone());
    let path = write_reproducer(&above, &failed, &options.reproducer, &files)?;
    if global.json {
        return print_json(&serde_json::json!({
            "pass": failed.pass,
            "step": failed.step + 1,
            "steps": plan.steps.len(),
            "what": what,
            "reproducer": path,
        }));
    }
    let mut text =
        format!("step {} of {}: {}\n{what}\n", failed.step + 1, plan.steps.len(), failed.pass);
    match path {
        Some(path) => text.push_str(&format!("the module before it: {}\n", path.display())),
        None => text.push_str("--output FILE writes the module before it\n"),
    }
    print(text)
}

/// The number of the first snapshot that is not good, found by halving: from then on none is.
fn first_bad(
    module: &Module,
    snapshots: &[Snapshot],
    args: &BisectArgs,
    passes: &PassArgs,
    progress: &Progress,
) -> Result<usize, Failure> {
    let judge = Judge::new(module, args, passes)?;
    if !judge.is_good(module)? {
        return Err(Failure::new("the command fails before any pass runs")
            .help("the command must succeed on a good module"));
    }
    let last = match snapshots.last() {
        Some(last) if !judge.is_good(&last.module)? => snapshots.len() - 1,
        _ => return Err(Failure::new("nothing is wrong after the last pass")),
    };
    // Everything up to `good` is, and `bad` is not.
    let (mut good, mut bad) = (0, last);
    while good < bad {
        let middle = (good + bad) / 2;
        progress.say(format!(
            "{} left: trying {}",
            count_of(bad - good, "pass"),
            snapshots[middle].pass
        ));
        match judge.is_good(&snapshots[middle].module)? {
            true => good = middle + 1,
            false => bad = middle,
        }
    }
    Ok(bad)
}

/// What says whether a module is good.
enum Judge<'a> {
    Command(Trial<'a>),
    Results(Reference),
}

impl<'a> Judge<'a> {
    fn new(module: &Module, args: &'a BisectArgs, passes: &PassArgs) -> Result<Self, Failure> {
        if !args.command.is_empty() {
            return Ok(Judge::Command(Trial::new(&args.command)?));
        }
        let reference = Reference::new(module, passes.seed());
        match reference.is_empty() {
            true => Err(Failure::new("no function of the module can be evaluated")
                .help("say when a module is good: tenon bisect FILE -- COMMAND {}")),
            false => Ok(Judge::Results(reference)),
        }
    }

    fn is_good(&self, module: &Module) -> Result<bool, Failure> {
        match self {
            Judge::Command(trial) => Ok(trial.run(module)?.is_success),
            Judge::Results(reference) => Ok(reference.advance(module).is_ok()),
        }
    }
}
