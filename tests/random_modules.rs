//! Every pass over graph functions, on random modules: what it leaves is well-formed and computes the same.
//!
//! The passes are those of the phases `ingest` and `optimize` that the registry has, with their default options.
//! Each runs behind the phase `ingest`, and those of that phase by themselves too; those of a level above 0 leave alone
//! what is not to be optimized. One pipeline plans memory and then
//! kills it, so that what is used too late shows; two bring modules into the form of an executor that finds out shapes
//! at run time, with memory and without.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tenon_operators as _;

use libtest_mimic::{Arguments, Failed, Trial};
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::{Build, Context, Module, Symbol, Transaction};
use tenon_compiler::passes;
use tenon_compiler::passes::{Instrument, PassContext, Validate, VerifyEach, plan};
use tenon_compiler::registry::{PassKind, Registry};
use tenon_compiler::testing::{Random, Vocabulary, random_module};
use tenon_compiler::text::{WeightsPolicy, print_module};

/// Left out: passes of one function that they are told of, which refuse a module without it.
const ARE_TOLD: &[&str] = &["relax.Gradient"];

/// Makes memory explicit, shares it, and takes its contents away after the last use.
const PLANNED: &str = "phase(ingest), relax.LegalizeOps, relax.ToNonDataflow, relax.CallTIRRewrite, \
                       relax.StaticPlanBlockMemory, relax.LowerAllocTensor, relax.KillAfterLastUse";

/// Has shapes found out at run time; operators on tensors stay.
const AT_RUN_TIME: &str = "phase(ingest), relax.ToNonDataflow, relax.RemovePurityChecking, \
                           relax.ComputePrimValue, relax.VMBuiltinLower, relax.VMShapeLower";

/// Modules for each pipeline.
const SEEDS: u64 = 60;

fn main() -> ExitCode {
    let registry = || {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        Registry::open(&root.join("registry.toml")).expect("the registry is readable")
    };
    let executed =
        format!("{PLANNED}, relax.ComputePrimValue, relax.VMBuiltinLower, relax.VMShapeLower");
    let mut pipelines = vec![PLANNED.to_owned(), AT_RUN_TIME.to_owned(), executed];
    let known = registry();
    for record in known.passes().map(|id| known.record(id)) {
        if record.kind == PassKind::Prim || ARE_TOLD.contains(&record.name.as_str()) {
            continue;
        }
        match record.phase.as_str() {
            "ingest" => {
                pipelines.extend([record.name.clone(), format!("phase(ingest), {}", record.name)])
            }
            "optimize" => pipelines.push(format!("phase(ingest), {}", record.name)),
            _ => {}
        }
    }
    let trial = |pipeline: String| {
        Trial::test(pipeline.clone(), move || {
            let registry = registry();
            let refused = (0..SEEDS).map(|seed| run(&registry, &pipeline, seed));
            let refused = refused.sum::<Result<u64, Failed>>()?;
            let is_right = refused == 0 || (pipeline.starts_with(PLANNED) && refused < SEEDS / 2);
            is_right.then_some(()).ok_or_else(|| format!("{refused} modules are refused").into())
        })
    };
    let mut trials: Vec<Trial> = pipelines.into_iter().map(trial).collect();
    trials.push(Trial::test("what_is_not_to_be_optimized_is_left_alone", move || {
        let registry = registry();
        (0..SEEDS / 6).try_for_each(|seed| leaves_alone(&registry, seed))
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn random(seed: u64) -> Module {
    let vocabulary = Vocabulary::new(
        &["negative", "tanh", "nn.relu", "abs", "exp", "sigmoid"],
        &["add", "subtract", "multiply", "maximum", "minimum"],
    );
    random_module(&tenon_compiler::testing::cx(), &vocabulary, seed, 80)
}

/// No pass of a level above 0 touches a function that is not to be optimized.
fn leaves_alone(registry: &Registry, seed: u64) -> Result<(), Failed> {
    let run = |pipeline: &str, opt_level: u8, module: &Module| {
        let plan = plan(registry, pipeline).map_err(|error| error.to_string())?;
        let mut context = PassContext { opt_level, ..PassContext::default() };
        passes::run(registry, &plan, module, &mut context).map_err(|error| error.to_string())
    };
    let module = with_private_functions(random(seed), seed);
    let module = run("phase(ingest)", 0, &module)?;
    let (module, alone) = not_to_be_optimized(module, seed);
    for record in registry.passes().map(|id| registry.record(id)) {
        let is_early = ["ingest", "optimize"].contains(&record.phase.as_str());
        if record.opt_level == 0 || !is_early || record.kind == PassKind::Prim {
            continue;
        }
        let after = run(&record.name, u8::MAX, &module)?;
        for &name in &alone {
            let (old, new) = (module.get(name), after.get(name));
            if !old.zip(new).is_some_and(|(old, new)| Arc::ptr_eq(old, new)) {
                let name = module.cx().terms().str(name);
                return Err(format!("seed {seed}: {} touched @{name}", record.name).into());
            }
        }
    }
    Ok(())
}

/// The module with some of its functions marked, and their names.
fn not_to_be_optimized(mut module: Module, seed: u64) -> (Module, Vec<Symbol>) {
    let mut random = Random::new(seed);
    let functions: Vec<_> = module.iter().map(|(name, func)| (name, func.clone())).collect();
    let mut alone = Vec::new();
    for (name, func) in functions {
        if random.chance(60) {
            let mut tx = Transaction::edit(&func);
            let root = tx.body().root();
            let mut spec = tx.body().spec(root);
            spec.attrs = tx.cx().with_attr(spec.attrs, "SkipOptimization", true.into());
            let operands = tx.body().operands(root).to_vec();
            let marked = tx.push(spec, &operands);
            tx.set_root(marked);
            module.insert(name, tx.publish().expect("nothing else was changed"));
            alone.push(name);
        }
    }
    (infer_module(&module).unwrap_or(module), alone)
}

/// Runs the pipeline on a module; 1 when an operator of unknown shape has no tensor program, 0 otherwise.
fn run(registry: &Registry, pipeline: &str, seed: u64) -> Result<u64, Failed> {
    let module = with_private_functions(random(seed), seed);
    let plan = plan(registry, pipeline).map_err(|error| error.to_string())?;
    let target = module.cx().attrs(&[("kind", "cpu".into()), ("vector_bits", 512i64.into())]);
    let instruments: Vec<Box<dyn Instrument>> =
        vec![Box::new(VerifyEach::default()), Box::new(Validate::new(seed))];
    let mut context =
        PassContext { target, instruments, opt_level: u8::MAX, ..PassContext::default() };
    let Err(error) = passes::run(registry, &plan, &module, &mut context) else { return Ok(0) };
    let error = error.to_diagnostic().render(false);
    if [
        "not bound, and the operator needs to know ",
        "a tensor of known shape is expected",
        "a tensor of known rank is expected",
        "whether the dimension",
    ]
    .iter()
    .any(|reason| error.contains(reason))
    {
        return Ok(1);
    }
    let text = print_module(&module, &mut WeightsPolicy::inline());
    Err(format!("seed {seed}: {error}\n{text}").into())
}

/// The module with some of its functions private.
fn with_private_functions(mut module: Module, seed: u64) -> Module {
    let mut random = Random::new(seed);
    let functions: Vec<_> = module.iter().map(|(name, func)| (name, func.clone())).collect();
    for (name, func) in functions {
        if random.chance(50) {
            let mut tx = Transaction::edit(&func);
            tx.make_private();
            module.insert(name, tx.publish().expect("nothing else was changed"));
        }
    }
    infer_module(&module).unwrap_or(module)
}
