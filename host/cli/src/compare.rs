//! `compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::Global;
use super::argument::{parse_dim, parse_input, parse_part};
use super::output::{Failure, note, print, print_json, warn_of_plugins};
use super::progress::Progress;
use super::run::{given_inputs, match_inputs};
use super::run_passes::PassArgs;
use tenon_compiler::compare::{
    CompareError, Comparison, Compiled, Error, Fault, First, Judge, Question, value_of,
};
use tenon_compiler::diagnostics::count_of;
use tenon_compiler::passes::Validate;

#[derive(Args)]
pub(super) struct CompareArgs {
    /// An .onnx model or a module's text
    model: PathBuf,
    /// An input from a file of one array
    #[arg(long = "input", value_name = "NAME=FILE.npy", value_parser = parse_input)]
    input: Vec<(String, PathBuf)>,
    /// Inputs by their names from an archive of arrays; other arrays in it are left alone
    #[arg(long, value_name = "FILE.npz")]
    inputs: Option<PathBuf>,
    /// Who says what is right
    #[arg(long, value_enum, default_value_t = With::Evaluator)]
    with: With,
    /// The Python that has ONNX Runtime
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
    /// The largest difference that is none, as a part of the largest magnitude of a tensor; by default 0.001, 0.02 of what was
    /// rounded to f16 on the way, and 0.05 of what was to bf16 or to bytes on a scale, as weights are by `--weights`
    #[arg(long, value_name = "PART", value_parser = parse_part)]
    tolerance: Option<f64>,
    /// Bind a symbolic dimension
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = parse_dim)]
    dims: Vec<(String, i64)>,
    #[command(flatten)]
    passes: PassArgs,
}

/// Who says what is right.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum With {
    /// The reference evaluator
    Evaluator,
    /// ONNX Runtime, without its optimizations
    Onnxruntime,
}

pub(super) fn compare(global: &Global, args: &CompareArgs) -> Result<(), Failure> {
    let is_onnx = args.model.extension().is_some_and(|extension| extension == "onnx");
    if args.with == With::Onnxruntime && !is_onnx {
        let file = args.model.display();
        return Err(Failure::new(format!("ONNX Runtime cannot read {file}"))
            .help("the reference evaluator can: --with evaluator"));
    }
    let progress = Progress::new();
    let session = global.open_session()?;
    let target = args.passes.target()?;
    let model = session.read(&args.model, &args.dims.iter().cloned().collect())?;
    let options = args.passes.options("default");
    let question = Question {
        session: &session,
        model: &model,
        target: &target,
        options: &options,
        tolerance: args.tolerance,
    };
    progress.say("compiling");
    let compiled = Compiled::new(question);
    warn_of_plugins(session.registry());
    let compiled = compiled.map_err(failure)?;
    let names: Vec<String> = compiled.inputs().iter().map(|input| input.name.clone()).collect();
    let given = given_inputs(args.inputs.as_deref(), &args.input)?;
    let inputs = match_inputs(compiled.inputs(), given)?.into_iter().map(value_of);
    let Some(inputs) = inputs.collect() else {
        return Err(Failure::new("an input has elements of a type that no module has"));
    };
    let judge = match args.with {
        With::Evaluator => Judge::Evaluator(Validate::limits(&session.settings(&options)?)),
        With::Onnxruntime => {
            Judge::OnnxRuntime { python: &args.python, model: &args.model, names: &names }
        }
    };
    progress.say("running both");
    let found = compiled.compare(inputs, &judge);
    progress.done();
    tell(global, &found.map_err(failure)?)
}

fn failure(error: CompareError) -> Failure {
    match error {
        CompareError::Session(error) => error.into(),
        error => error.into(),
    }
}

/// Says what came of it; what is wrong is a failure.
fn tell(global: &Global, found: &Comparison) -> Result<(), Failure> {
    if global.json {
        print_json(&as_json(found))?;
    }
    let Some(&wrong) = found.wrong.first() else {
        return if global.json { Ok(()) } else { print(agreement(found)) };
    };
    let (name, error) = &found.outputs[wrong];
    let mut message = format!("output `{name}` differs: {}", text_of(error));
    if found.wrong.len() > 1 {
        message.push_str(&format!("; so do {} more", count_of(found.wrong.len() - 1, "output")));
    }
    let Some(first) = &found.first else {
        let of = count_of(found.kernels, "kernel");
        let text =
            format!("no kernel is known to be wrong: {} of {of} were compared", found.compared);
        return Err(Failure::new(message).help(text));
    };
    note(format!("first wrong at {}: {}", first.node, text_of(&first.error)));
    note(format!("  kernel     @{}, of {}", first.kernel, first.came_from));
    let (why, help) = explained(first);
    note(format!("  at fault   {why}"));
    Err(Failure::new(message).help(help))
}

fn explained(first: &First) -> (&'static str, &'static str) {
    match first.fault {
        Fault::Program => (
            "its program, which computes these numbers when it is evaluated too: a pass made it",
            "`tenon opt MODEL -p default --validate` looks for the pass",
        ),
        Fault::Code => (
            "its schedule or its code: its program computes what is right when it is evaluated",
            "`--disable` or `--config` of a schedule's rule, or another `--target`, tells them apart",
        ),
        Fault::Unknown => (
            "not known: what it reads was not seen",
            "`tenon opt MODEL -p default --validate=compiled` looks at the whole",
        ),
    }
}

fn agreement(found: &Comparison) -> String {
    let worst = |errors: &mut dyn Iterator<Item = &(String, Error)>| {
        let largest = errors.max_by(|(_, a), (_, b)| a.relative.total_cmp(&b.relative));
        largest.map_or(String::new(), |(name, error)| {
            format!("; the largest error is {:.1e}, of {name}", error.relative)
        })
    };
    let verb = if found.outputs.len() == 1 { "agrees" } else { "agree" };
    format!(
        "{} {verb}{}\n{} of {} were compared with nodes of the model{}\n",
        count_of(found.outputs.len(), "output"),
        worst(&mut found.outputs.iter()),
        found.compared,
        count_of(found.kernels, "kernel"),
        worst(&mut found.largest.iter()),
    )
}

fn text_of(error: &Error) -> String {
    if error.of == 0 {
        return "it has another shape".to_owned();
    }
    let Error { relative, index, expected, found, of } = error;
    format!(
        "element {index} of {of} is {found}, and should be {expected}, which is {relative:.1e} of the largest"
    )
}

fn as_json(found: &Comparison) -> serde_json::Value {
    let error = |error: &Error| {
        json!({
            "relative": error.relative, "element": error.index, "of": error.of,
            "expected": error.expected, "found": error.found,
        })
    };
    let named = |(name, off): &(String, Error)| json!({ "name": name, "error": error(off) });
    let first = found.first.as_ref().map(|first| {
        let fault = match first.fault {
            Fault::Program => "program",
            Fault::Code => "code",
            Fault::Unknown => "unknown",
        };
        json!({
            "node": first.node, "kernel": first.kernel, "came_from": first.came_from,
            "error": error(&first.error), "fault": fault,
        })
    });
    json!({
        "agrees": found.wrong.is_empty(),
        "outputs": found.outputs.iter().map(named).collect::<Vec<_>>(),
        "first": first, "kernels": found.kernels, "compared": found.compared,
        "largest": found.largest.as_ref().map(named),
    })
}
