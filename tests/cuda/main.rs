//! Programs for CUDA: what rules make of them computes the same, has the barriers that it needs and no others, and becomes PTX that
//! NVIDIA's assembler takes, and is run through the driver.
//!
//! Nothing here needs a GPU: the reference evaluator runs the threads. The assembler is `ptxas`, which `TENON_PTXAS` names, or in
//! PATH, or in the wheel that `scripts/setup-python.sh --cuda` installs; without it that is said.

use tenon_operators as _;
mod launch;
#[path = "../models/program.rs"]
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use tenon_compiler::diagnostics::Source;
use tenon_compiler::eval::{Evaluator, Tensor, Value};
use tenon_compiler::ir::{Context, Module, View};
use tenon_compiler::text::{NoWeights, parse_module};

use program::{run, succeed, tenon};

/// The name of a program, its text, and how often its threads wait.
struct Case {
    name: String,
    text: String,
    barriers: usize,
}

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for case in cases() {
        let name = case.name.clone();
        trials.push(Trial::test(name, move || check(&case)));
    }
    trials.push(Trial::test("several_kernels_in_one_file", several_kernels));
    trials.push(Trial::test("a_program_that_no_rule_knows", no_rule));
    trials.push(Trial::test("forms_that_there_are_not", no_such_form));
    trials.extend(launch::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Around the sizes of tiles, and far from them.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (rows, columns) in [(1, 1), (13, 37), (16, 16), (257, 3)] {
        let text = format!(
            "fn @main(%x: f32[{rows}, {columns}], %b: f32[{columns}]) {{
               dataflow {{ %a = add(%x, %b) %e = exp(%a) %t = tanh(%e) }} ret %t }}"
        );
        cases.push(Case { name: format!("elementwise_{rows}_{columns}"), text, barriers: 0 });
    }
    for (m, n, k) in [(64, 64, 16), (65, 63, 17), (3, 130, 15), (131, 2, 35), (33, 45, 2)] {
        let text = format!(
            "fn @main(%a: f32[{m}, {k}], %b: f32[{k}, {n}], %c: f32[{n}]) {{
               dataflow {{ %d = matmul(%a, %b) %e = add(%d, %c) %f = nn.relu(%e) }} ret %f }}"
        );
        // Between loading and adding, and before the next steps are loaded where there are more.
        let barriers = if k > 16 { 2 } else { 1 };
        cases.push(Case { name: format!("product_{m}_{n}_{k}"), text, barriers });
    }
    let text = "fn @main(%x: f32[20, 33], %w: f32[70, 33]) { %y = nn.dense(%x, %w) ret %y }";
    cases.push(Case { name: "dense".to_owned(), text: text.to_owned(), barriers: 2 });
    cases
}

/// What brings a module to programs that are bound to threads, and still calls these by name.
const BOUND: &str = "phase(ingest), phase(optimize), phase(legalize), phase(fuse), \
                     tir.ApplySchedules, tir.CompactBuffers, tir.BindThreads";

fn check(case: &Case) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let (model, bound) = (folder.path().join("model.ir"), folder.path().join("bound.ir"));
    fs::write(&model, &case.text)?;
    let validated = ["--pipeline", "default", "--target", "nvptx", "--validate", "--verify-each"];
    succeed(
        tenon().arg("opt").arg(&model).args(validated).arg("-o").arg(folder.path().join("last.ir")),
    )?;
    let options = ["--target", "nvptx", "--pipeline", BOUND, "-o"];
    succeed(tenon().arg("opt").arg(&model).args(options).arg(&bound))?;
    let text = fs::read_to_string(&bound)?;
    let found = text.matches(BARRIER).count();
    if !text.contains("bound = true") || found != case.barriers {
        return Err(format!("{found} barriers in\n{text}").into());
    }
    evaluate(&text).map_err(|error| format!("{error} in\n{text}"))?;
    every_barrier_is_needed(&text)?;
    let ptx = folder.path().join("model.ptx");
    compile(&model, &ptx)?;
    check_ptx(&fs::read_to_string(&ptx)?, case)?;
    assemble(&ptx)
}

const BARRIER: &str = "eval barrier()";

/// Without any one of its barriers a program is one whose threads race, whatever numbers come out.
fn every_barrier_is_needed(text: &str) -> Result<(), Failed> {
    for (at, _) in text.match_indices(BARRIER) {
        let without = format!("{}{}", &text[..at], &text[at + BARRIER.len()..]);
        match evaluate(&without) {
            // Who comes too early finds what another one is about to write, or nothing yet.
            Err(error) if error.contains("no barrier is between the two") => {}
            Err(error) if error.contains("which nobody has written") => {}
            Err(error) => return Err(format!("{error} in\n{without}").into()),
            Ok(()) => return Err(format!("nobody misses the barrier in\n{without}").into()),
        }
    }
    Ok(())
}

/// Runs `@main` on numbers that differ.
fn evaluate(text: &str) -> Result<(), String> {
    let source = Source::new("bound.ir", text);
    let cx = tenon_compiler::testing::cx();
    let module = parse_module(&cx, &source, &mut NoWeights);
    let module = module.map_err(|errors| errors.render(false))?;
    let args = arguments(&module).ok_or("the types of arguments are not known")?;
    Evaluator::new(&module).call("main", args).map(drop).map_err(|error| error.to_string())
}

fn arguments(module: &Module) -> Option<Vec<Value>> {
    let main = module.get(module.cx().symbol("main"))?;
    let body = main.view();
    let View::Function { params, .. } = body.view(body.root()) else { return None };
    let types = params.iter().map(|param| body.ty(param)).collect::<Option<Vec<_>>>()?;
    let tensor = |ty| {
        let (_, shape) = body.terms().static_tensor(ty)?;
        let shape: Vec<usize> = shape.iter().map(|&dim| dim as usize).collect();
        let count = shape.iter().product::<usize>();
        let numbers = (0..count).map(|at| (at * 7 % 11) as f32 * 0.25 - 1.0).collect();
        Some(Value::Tensor(Tensor::from_vec(shape, numbers)))
    };
    types.into_iter().map(tensor).collect()
}

fn compile(model: &Path, ptx: &Path) -> Result<(), Failed> {
    let options = ["--target", "nvptx", "--emit", "ptx", "-o"];
    succeed(tenon().arg("compile").arg(model).args(options).arg(ptx))
}

fn check_ptx(ptx: &str, case: &Case) -> Result<(), Failed> {
    let (threads, shared) = match case.barriers {
        0 => (".reqntid 256, 1, 1", 0),
        _ => (".reqntid 16, 16, 1", 2),
    };
    let has = |wanted: &str| match ptx.contains(wanted) {
        true => Ok(()),
        false => Err(Failed::from(format!("no {wanted} in\n{ptx}"))),
    };
    for wanted in [".version 7.0", ".target sm_80", ".visible .entry", "ld.global.nc", threads] {
        has(wanted)?;
    }
    let is_right = ptx.contains("bar.sync") == (case.barriers > 0)
        && ptx.matches(".shared .align").count() == shared
        && !ptx.contains("call");
    if is_right { Ok(()) } else { Err(format!("barriers, memory or calls in\n{ptx}").into()) }
}

/// Asks the assembler, where there is one, for the oldest processor that is meant and for a newer one.
fn assemble(ptx: &Path) -> Result<(), Failed> {
    let Some(assembler) = assembler() else {
        eprintln!(
            "{} is not assembled: there is no ptxas; scripts/setup-python.sh --cuda installs one",
            ptx.display()
        );
        return Ok(());
    };
    for processor in ["sm_80", "sm_90"] {
        let made = ptx.with_extension(processor);
        let arch = format!("-arch={processor}");
        succeed(Command::new(&assembler).arg(arch).arg(ptx).arg("-o").arg(made))?;
    }
    Ok(())
}

/// The assembler: that which is named, one in PATH, or that of the wheel.
fn assembler() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("TENON_PTXAS") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let wheels = below(&root.join(".cache/venv/lib"))
        .into_iter()
        .flat_map(|python| below(&python.join("site-packages/nvidia")))
        .map(|package| package.join("bin"));
    std::env::split_paths(&path)
        .chain(wheels)
        .map(|folder| folder.join("ptxas"))
        .find(|file| file.is_file())
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).collect()
}

/// Two programs are two kernels, and what is said once in a file is said once.
fn several_kernels() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let (model, ptx) = (folder.path().join("two.ir"), folder.path().join("two.ptx"));
    let text = "fn @main(%a: f32[20, 30], %b: f32[30, 40], %c: f32[40, 50]) {
                  dataflow { %d = matmul(%a, %b) %e = matmul(%d, %c) } ret %e }";
    fs::write(&model, text)?;
    compile(&model, &ptx)?;
    let text = fs::read_to_string(&ptx)?;
    let count = |what: &str| text.matches(what).count();
    if (count(".version"), count(".visible .entry")) != (1, 2) {
        return Err(text.into());
    }
    assemble(&ptx)
}

/// What a command says that must fail.
fn complaint(command: &mut Command) -> Result<String, Failed> {
    let output = run(command)?;
    match output.status.code() {
        Some(1) => Ok(String::from_utf8_lossy(&output.stderr).into_owned()),
        code => Err(format!("it ended with {code:?}").into()),
    }
}

fn expect(said: &str, wanted: &str) -> Result<(), Failed> {
    match said.contains(wanted) {
        true => Ok(()),
        false => Err(format!("`{wanted}` is not said: {said}").into()),
    }
}

fn no_rule() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let model = folder.path().join("sum.ir");
    fs::write(&model, "fn @main(%x: f32[40, 50]) { %y = sum(%x) { axis = [1] } ret %y }")?;
    let options = ["--target", "nvptx", "--emit", "ptx"];
    let said = complaint(tenon().arg("compile").arg(&model).args(options))?;
    expect(&said, "tensor program `sum`")?;
    expect(&said, "it is bound to no threads: no rule has scheduled it for this target")
}

fn no_such_form() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let model = folder.path().join("exp.ir");
    fs::write(&model, "fn @main(%x: f32[40]) { %y = exp(%x) ret %y }")?;
    for form in ["so", "obj"] {
        let options = ["--target", "nvptx", "--emit", form, "-o"];
        let made = folder.path().join("made");
        let said = complaint(tenon().arg("compile").arg(&model).args(options).arg(made))?;
        expect(&said, "for this target there is PTX, and no object; use --emit ptx")?;
    }
    let said = complaint(tenon().arg("compile").arg(&model).args(["--emit", "ptx"]))?;
    expect(&said, "--emit ptx is for devices")
}
