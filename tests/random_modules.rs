//! Every pass over graph functions, on random modules: what it leaves is well-formed and computes the same.
//!
//! The passes are those of the phases `ingest` and `optimize` that the registry has, with their default options.
//! Each runs behind the phase `ingest`, and those of that phase by themselves too. One pipeline plans memory and then
//! kills it, so that what is used too late shows; two bring modules into the form of an executor that finds out shapes
//! at run time, with memory and without.

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use tenon_host::driver::run_plan;
use tenon_host::infer::infer_module;
use tenon_host::ir::{Context, Cx, Module, Transaction};
use tenon_host::passes::{Instrument, PassContext, Validate, VerifyEach, plan};
use tenon_host::registry::{PassKind, Registry};
use tenon_host::testing::{Random, random_module};
use tenon_host::text::{WeightsPolicy, print_module};

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
    let trials = pipelines.into_iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Runs the pipeline on a module; 1 when an operator of unknown shape has no tensor program, 0 otherwise.
fn run(registry: &Registry, pipeline: &str, seed: u64) -> Result<u64, Failed> {
    let module = with_private_functions(random_module(&Cx::new(), seed, 80), seed);
    let plan = plan(registry, pipeline).map_err(|error| error.to_string())?;
    let target = module.cx().attrs(&[("kind", "cpu".into()), ("vector_bits", 512i64.into())]);
    let instruments: Vec<Box<dyn Instrument>> =
        vec![Box::new(VerifyEach::default()), Box::new(Validate::new(seed))];
    let mut context = PassContext { target, instruments, ..PassContext::default() };
    let Err(error) = run_plan(registry, &plan, &module, &mut context) else { return Ok(0) };
    let error = error.to_diagnostic().render(false);
    if [
        "is not bound, and the operator needs to know it",
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
