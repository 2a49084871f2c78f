//! `opt` and `check`.

use std::path::PathBuf;

use clap::Args;

use super::Global;
use super::input::write_module_below;
use super::output::{Failure, print};
use super::run_passes::{Job, run_passes};
use tenon_compiler::diagnostics::count_of;
use tenon_compiler::io::Outputs;
use tenon_compiler::session::Dims;
use tenon_compiler::text::{WeightsPolicy, print_module, weights_path};

#[derive(Args)]
pub(super) struct OptArgs {
    #[command(flatten)]
    job: Job,
    /// Where the module goes; standard output when left out
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write large constants out in full on standard output
    #[arg(long)]
    full_constants: bool,
}

#[derive(Args)]
pub(super) struct CheckArgs {
    /// A module's text or an .onnx model
    file: PathBuf,
}

pub(super) fn check(global: &Global, args: &CheckArgs) -> Result<(), Failure> {
    let module = global.open_operators()?.read(&args.file, &Dims::new())?.module;
    if global.json {
        let phase = module.phase().to_owned();
        return super::output::print_json(
            &serde_json::json!({ "functions": module.len(), "phase": phase }),
        );
    }
    print(format!(
        "{}: {} in phase {}, well formed\n",
        args.file.display(),
        count_of(module.len(), "function"),
        module.phase()
    ))
}

pub(super) fn opt(global: &Global, args: &OptArgs) -> Result<(), Failure> {
    let session = global.open_session()?;
    let model = args.job.read(&session)?;
    for output in args.output.iter().flat_map(|output| [output.clone(), weights_path(output)]) {
        model.files.refuse(&output)?;
    }
    let (pipeline, passes) = args.job.pipeline(session.registry())?;
    let target = passes.target()?;
    let mut options = passes.options(&pipeline);
    options.code.ranges = args.job.ranges();
    let module = run_passes(&session, &model, &target, &options, &passes, None)?;
    match &args.output {
        Some(path) => {
            let outputs = Outputs::sparing(model.files);
            write_module_below("", &module, path, passes.print_sources, outputs)
        }
        None => {
            let mut policy = match args.full_constants {
                true => WeightsPolicy::inline(),
                false => WeightsPolicy::elided(64),
            };
            policy = policy.with_sources(passes.print_sources);
            print(print_module(&module, &mut policy))
        }
    }
}
