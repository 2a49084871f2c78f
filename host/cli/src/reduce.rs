//! `reduce`: a smaller module that fails in the same way.

use std::path::PathBuf;

use clap::Args;

use super::Global;
use super::input::{read_reproducer, write_module_below};
use super::output::{Failure, print};
use super::progress::Progress;
use super::run_passes::{Job, run_plan};
use super::trial::Trial;
use tenon_compiler::diagnostics::count_of;
use tenon_compiler::io::Outputs;
use tenon_compiler::ir::Module;
use tenon_compiler::passes::{PassError, Plan};
use tenon_compiler::session::{Model, Options, Session};
use tenon_compiler::target::Target;

#[derive(Args)]
pub(super) struct ReduceArgs {
    #[command(flatten)]
    job: Job,
    /// Where the smaller module goes
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// What the failing command or pass must say
    #[arg(long, value_name = "TEXT")]
    expect: Option<String>,
    /// A command that fails on the module, whose path stands for `{}`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn reduce(global: &Global, args: &ReduceArgs) -> Result<(), Failure> {
    let session = global.open_session()?;
    let Model { module, files, .. } = args.job.read(&session)?;
    files.refuse(&args.output)?;
    let judge = Judge::new(session, args, &module)?;
    if !judge.fails(&module)? {
        let what = if args.expect.is_some() { " and says that" } else { "" };
        return Err(Failure::new(format!("nothing fails{what}, so there is nothing to keep")));
    }
    let progress = Progress::new();
    let mut problem = None;
    let mut tried = 0;
    let reduced = tenon_compiler::reduce::reduce(
        &module,
        |candidate| match judge.fails(candidate) {
            Ok(fails) => fails,
            Err(failure) => {
                problem.get_or_insert(failure);
                false
            }
        },
        |step| {
            tried = step.tried;
            progress.say(format!(
                "{}, {} after {}",
                count_of(step.functions, "function"),
                count_of(step.nodes, "node"),
                count_of(step.tried, "trial")
            ));
        },
    );
    progress.done();
    if let Some(problem) = problem {
        return Err(problem);
    }
    let comments = read_reproducer(&args.job.file).map_or(String::new(), |each| each.to_comments());
    let (to, has_sources) = (&args.output, args.job.prints_sources());
    write_module_below(&comments, &reduced, to, has_sources, Outputs::sparing(files))?;
    let nodes = |module: &Module| -> usize {
        module.iter().map(|(_, function)| function.view().len()).sum()
    };
    print(format!(
        "{}: {} of {} functions, {} of {} nodes, after {tried} trials\n",
        args.output.display(),
        reduced.len(),
        module.len(),
        nodes(&reduced),
        nodes(&module)
    ))
}

/// What says whether a module fails.
enum Judge<'a> {
    Command { trial: Trial<'a>, expect: Option<&'a str> },
    Passes(Box<FailingPass<'a>>),
}

/// A pipeline that fails in one of its passes.
struct FailingPass<'a> {
    session: Session,
    plan: Plan,
    target: Target,
    options: Options,
    expect: Option<&'a str>,
    /// The pass that failed first.
    pass: Option<String>,
}

impl<'a> Judge<'a> {
    fn new(session: Session, args: &'a ReduceArgs, module: &Module) -> Result<Self, Failure> {
        let expect = args.expect.as_deref();
        if !args.command.is_empty() {
            return Ok(Judge::Command { trial: Trial::new(&args.command)?, expect });
        }
        let (pipeline, passes) = args.job.pipeline(session.registry())?;
        let (target, options) = (passes.target()?, passes.options(&pipeline));
        let plan = session.plan(&options)?;
        let mut failing = FailingPass { session, plan, target, options, expect, pass: None };
        failing.pass = failing.run(module)?.and_then(|error| error.pass().map(str::to_owned));
        Ok(Judge::Passes(Box::new(failing)))
    }

    fn fails(&self, module: &Module) -> Result<bool, Failure> {
        match self {
            Judge::Command { trial, expect } => {
                let ended = trial.run(module)?;
                Ok(!ended.is_success && expect.is_none_or(|text| ended.output.contains(text)))
            }
            Judge::Passes(failing) => Ok(failing.run(module)?.is_some_and(|error| {
                error.pass() == failing.pass.as_deref()
                    && failing.expect.is_none_or(|text| error.to_string().contains(text))
            })),
        }
    }
}

impl FailingPass<'_> {
    fn run(&self, module: &Module) -> Result<Option<PassError>, Failure> {
        let mut cx = self.session.pass_context(module, &self.target, &self.options)?;
        match run_plan(&self.session, &self.plan, module, &mut cx).err() {
            Some(error) if error.is_cancelled() => {
                Err(Failure::from_diagnostic(error.to_diagnostic()))
            }
            error => Ok(error),
        }
    }
}
