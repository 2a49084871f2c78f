//! Random graphs over all operators that the registry has, compiled by the default pipeline: every result is what the
//! operators' reference evaluations give.
//!
//! Operators join by what they say of themselves, those of plugins too. A seed is a graph. `TENON_CAMPAIGN=FOLDER` goes on
//! where the last campaign in that folder ended, for `TENON_GRAPHS` graphs more, and keeps each that fails there: what it
//! says, the module, and what `reduce` makes of it. A graph that ends the process is kept by the next campaign.

#[path = "support/compiled.rs"]
mod compiled;
#[path = "support/evaluated.rs"]
mod evaluated;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use half::{bf16, f16};
use libtest_mimic::{Arguments, Failed, Trial};
use tenon_compiler::eval::Tensor;
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::{Context, DType, Dim, Module, TypeView, View};
use tenon_compiler::reduce::reduce;
use tenon_compiler::runtime::model::Model;
use tenon_compiler::testing::{Drawn, Run, numbers_of, random_calls};
use tenon_compiler::text::{WeightsPolicy, print_module};

use evaluated::evaluated;

/// Graphs of a trial, and trials.
const GRAPHS: u64 = 50;
const TRIALS: u64 = 4;
/// Calls of a graph, at most.
const CALLS: usize = 12;
/// Operators whose results come of differences of numbers of a size, which roundings of those move.
const CANCELLING: [(&str, f64); 2] = [("linalg.det", 256.0), ("nn.gelu", 1.0)];
/// How far a result may be off beside what its twins say, as a part of itself.
const RELATIVE: f64 = 1e-4;
/// Operators of which a graph has to be drawn in all of the seeds above, at least.
const OPERATORS: usize = 85;

fn main() -> ExitCode {
    if let Some(folder) = env::var_os("TENON_CAMPAIGN") {
        return campaign(Path::new(&folder));
    }
    let trials = (0..TRIALS).map(|trial| {
        Trial::test(format!("seeds_from_{}", trial * GRAPHS), move || {
            (trial * GRAPHS..(trial + 1) * GRAPHS).try_for_each(check)
        })
    });
    let mut trials: Vec<Trial> = trials.collect();
    trials.push(Trial::test("operators_are_drawn", are_drawn));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn check(seed: u64) -> Result<(), Failed> {
    let Some(drawn) = random_calls(&compiled::cx(), seed, CALLS, &CANCELLING) else {
        return Ok(());
    };
    judge(&drawn)
        .map_err(|problem| format!("seed {seed}: {problem}\n{}", text(&drawn.module)).into())
}

/// Most operators are called somewhere; one that never is cannot be drawn, which may be a mistake of the generator.
fn are_drawn() -> Result<(), Failed> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..TRIALS * GRAPHS {
        let drawn = random_calls(&compiled::cx(), seed, CALLS, &CANCELLING);
        drawn
            .iter()
            .flat_map(|it| &it.operators)
            .for_each(|name| *counts.entry(name).or_default() += 1);
    }
    match counts.len() >= OPERATORS {
        true => Ok(()),
        false => Err(format!("{} operators are called: {counts:?}", counts.len()).into()),
    }
}

/// Whether what is compiled of a graph gives its results, for all sizes that are tried.
fn judge(drawn: &Drawn) -> Result<(), String> {
    let module = infer_module(&drawn.module).map_err(|errors| format!("no types: {errors:?}"))?;
    let judge_all = || {
        let model = compiled::compile(&module)?;
        drawn.runs.iter().enumerate().try_for_each(|(number, run)| {
            judge_run(&model, run).map_err(|problem| match number {
                0 => problem,
                _ => format!("{problem} (of size {number})"),
            })
        })
    };
    caught(judge_all)
}

fn judge_run(model: &Model, run: &Run) -> Result<(), String> {
    let results = compiled::run(model, &run.inputs)?;
    if results.len() != run.results.len() {
        return Err(format!("{} results for {}", results.len(), run.results.len()));
    }
    for (index, (have, (want, off))) in results.iter().zip(&run.results).enumerate() {
        compare(have, want, *off).map_err(|problem| format!("result {index}: {problem}"))?;
    }
    Ok(())
}

/// What compiled code gives.
fn run(module: &Module, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    caught(|| compiled::run(&compiled::compile(module)?, inputs))
}

/// A panic is an error.
fn caught<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("it panics".to_owned()))
}

fn compare(have: &Tensor, want: &Tensor, off: f64) -> Result<(), String> {
    if (have.dtype(), have.shape()) != (want.dtype(), want.shape()) {
        let text = |tensor: &Tensor| format!("{}{:?}", tensor.dtype(), tensor.shape());
        return Err(format!("it is {}, expected {}", text(have), text(want)));
    }
    let (Some(found), Some(wanted)) = (numbers_of(have), numbers_of(want)) else {
        let is_same = have.bytes()[..] == want.bytes()[..];
        return is_same.then_some(()).ok_or_else(|| format!("{} differ", have.dtype()));
    };
    let largest = wanted.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    let relative = match have.dtype() {
        DType::BF16 => 1.6e-2,
        DType::F16 => 4e-3,
        _ => RELATIVE,
    };
    let allowed = 4.0 * off + relative * largest + 1e-6;
    let wrong = found.iter().zip(&wanted).position(|(a, b)| {
        a != b
            && !(a.is_nan() && b.is_nan())
            && (a - b).abs().partial_cmp(&allowed) != Some(std::cmp::Ordering::Less)
    });
    match wrong {
        None => Ok(()),
        Some(at) => Err(format!("element {at} is {}, expected {}", found[at], wanted[at])),
    }
}

fn text(module: &Module) -> String {
    print_module(module, &mut WeightsPolicy::inline())
}

/// Goes on with a campaign.
fn campaign(folder: &Path) -> ExitCode {
    let wanted = env::var("TENON_GRAPHS").ok().and_then(|text| text.parse().ok());
    let wanted: u64 = wanted.unwrap_or(u64::MAX);
    let failed = folder.join("failed");
    fs::create_dir_all(&failed).expect("the folder can be made");
    std::panic::set_hook(Box::new(|_| {}));
    let mut state = State::read(folder.join("state"));
    if state.is_running {
        keep(&failed, state.next, "it ended the process");
        state.failures += 1;
        state.next += 1;
    }
    let end = state.next.saturating_add(wanted);
    while state.next < end {
        state.is_running = true;
        state.write();
        if let Some(drawn) = random_calls(&compiled::cx(), state.next, CALLS, &CANCELLING) {
            state.graphs += 1;
            state.calls += drawn.operators.len() as u64;
            if let Err(problem) = judge(&drawn) {
                state.failures += 1;
                keep(&failed, state.next, &problem);
                let path = failed.join(format!("{}.small.ir", state.next));
                fs::write(path, text(&reduced(&drawn, &problem))).expect("it can be written");
                println!("seed {}: {problem}", state.next);
            }
        }
        state.next += 1;
        state.is_running = false;
        if state.next.is_multiple_of(1000) {
            println!("{}", state.counts());
        }
    }
    state.write();
    println!("{}", state.counts());
    if state.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Writes the graph of a seed and what is wrong with it.
fn keep(failed: &Path, seed: u64, problem: &str) {
    let drawn = random_calls(&compiled::cx(), seed, CALLS, &CANCELLING);
    let module = drawn.map(|it| text(&it.module)).unwrap_or_default();
    let mut whole = String::new();
    for line in problem.lines() {
        let _ = writeln!(whole, "// {line}");
    }
    fs::write(failed.join(format!("{seed}.ir")), whole + &module).expect("it can be written");
}

/// A smaller module that is wrong as well: that cannot be compiled in the same way, or differs from the evaluator.
fn reduced(drawn: &Drawn, problem: &str) -> Module {
    let Ok(module) = infer_module(&drawn.module) else { return drawn.module.clone() };
    let is_wrong = problem.starts_with("result ");
    let words = |text: &str| text.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
    let fails = |candidate: &Module| {
        let Some(inputs) = ones(candidate) else { return false };
        let Ok(expected) = evaluated(candidate, &inputs) else { return false };
        match run(candidate, &inputs) {
            Err(found) => !is_wrong && words(&found) == words(problem),
            Ok(found) if is_wrong => {
                let off = |(a, b): (&Tensor, &Tensor)| compare(a, b, 1e-3).is_err();
                found.len() == expected.len() && found.iter().zip(&expected).any(off)
            }
            Ok(_) => false,
        }
    };
    reduce(&module, fails, |_| {})
}

/// Small numbers for the parameters of `main`.
fn ones(module: &Module) -> Option<Vec<Tensor>> {
    let main = module.get(module.cx().symbol("main"))?;
    let body = main.view();
    let View::Function { params, .. } = body.view(body.root()) else { return None };
    let terms = module.cx().terms();
    let tensor = |(number, param)| {
        let TypeView::Tensor { dtype, dims: Some(dims) } = terms.ty(body.ty(param)?) else {
            return None;
        };
        // What is open is of another extent than most.
        let extent = |&dim: &Dim| terms.dim_value(dim).unwrap_or(7) as usize;
        let shape: Vec<usize> = dims.iter().map(extent).collect();
        let count: usize = shape.iter().product();
        let value = |index: usize| ((index * 7 + number) % 5) as f64 / 2.0;
        Some(match dtype {
            DType::F64 => Tensor::from_vec(shape, (0..count).map(value).collect()),
            DType::F32 => Tensor::from_vec(shape, (0..count).map(|i| value(i) as f32).collect()),
            DType::F16 => {
                Tensor::from_vec(shape, (0..count).map(|i| f16::from_f64(value(i))).collect())
            }
            DType::BF16 => {
                Tensor::from_vec(shape, (0..count).map(|i| bf16::from_f64(value(i))).collect())
            }
            DType::I64 => Tensor::from_vec(shape, (0..count).map(|i| value(i) as i64).collect()),
            DType::I32 => Tensor::from_vec(shape, (0..count).map(|i| value(i) as i32).collect()),
            DType::I8 => Tensor::from_vec(shape, (0..count).map(|i| value(i) as i8).collect()),
            DType::U8 => Tensor::from_vec(shape, (0..count).map(|i| value(i) as u8).collect()),
            DType::BOOL => {
                let truths = (0..count).map(|i| (value(i) > 0.5) as u8).collect();
                Tensor::from_vec_as(DType::BOOL, shape, truths)
            }
            _ => return None,
        })
    };
    params.iter().enumerate().map(tensor).collect()
}

/// How far a campaign is, in a file that is replaced as a whole.
struct State {
    path: PathBuf,
    next: u64,
    graphs: u64,
    calls: u64,
    failures: u64,
    /// Whether the seed was begun and not ended.
    is_running: bool,
}

impl State {
    fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|it| it.parse().ok()).collect();
        let at = |place: usize| numbers.get(place).copied().unwrap_or(0);
        let (next, graphs, calls, failures) = (at(0), at(1), at(2), at(3));
        Self { path, next, graphs, calls, failures, is_running: at(4) == 1 }
    }

    fn write(&self) {
        let numbers =
            [self.next, self.graphs, self.calls, self.failures, u64::from(self.is_running)];
        let text: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let fresh = self.path.with_extension("new");
        fs::write(&fresh, text.join(" ")).expect("the state can be written");
        fs::rename(fresh, &self.path).expect("the state can be replaced");
    }

    fn counts(&self) -> String {
        format!("{} graphs of {} calls; {} fail", self.graphs, self.calls, self.failures)
    }
}
