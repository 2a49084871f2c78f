//! What each pass over graph functions costs: `cargo bench -p tenon-compiler --bench passes`.
//!
//! The passes are those that the registry finds for functions and modules, up to the phase `plan`. Each is
//! run by the manager, inference included, over what the default pipeline makes of a program up to the pass's
//! first place in it. The plugins are loaded from `target/release`. Items are bindings of that program, so a
//! pass is linear when its rate stays.

use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use tenon_operators as _;

use divan::Bencher;
use divan::counter::ItemsCount;
use tenon_compiler::diagnostics::Diagnostic;
use tenon_compiler::ir::{Context, Module, PHASES};
use tenon_compiler::passes::{
    Instrument, PassContext, Plan, Step, StepInfo, StepOutcome, plan, run,
};
use tenon_compiler::registry::{PassKind, Registry};

mod input;

fn main() {
    tenon_compiler::runtime::memory::keep_freed_memory();
    divan::main();
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../registry.toml");
    Registry::open(&path).expect("the registry is readable")
});

static PIPELINE: LazyLock<Plan> =
    LazyLock::new(|| plan(&REGISTRY, "default").expect("a plan of the default pipeline"));

/// The passes to measure. Of a composite that is its parts.
fn passes() -> Vec<String> {
    let last = phase_number("plan");
    let enabled = REGISTRY.passes().filter(|&id| REGISTRY.is_enabled(id));
    enabled
        .map(|id| REGISTRY.record(id))
        .filter(|record| record.kind != PassKind::Prim && phase_number(&record.phase) <= last)
        .map(|record| record.name.clone())
        .filter(|name| name != GRADIENT && alone(name).is_some())
        .collect()
}

/// The pass without what it requires; nothing where it is several.
fn alone(pass: &str) -> Option<Plan> {
    let steps = plan(&REGISTRY, pass).expect("a plan").steps;
    let last = steps.into_iter().next_back().filter(|step| matches!(step, Step::Pass(_)))?;
    Some(Plan { steps: vec![last], ..Plan::default() })
}

/// The pass that needs a program with a loss.
const GRADIENT: &str = "relax.Gradient";

#[divan::bench(args = [10_000, 1_000_000], sample_count = 3, sample_size = 1)]
fn gradient(bencher: Bencher<'_, '_>, bindings: usize) {
    let module = input::loss(bindings);
    let plan = plan(&REGISTRY, GRADIENT).expect("a plan");
    let items = ItemsCount::new(bindings);
    bencher.counter(items).bench_local(|| run_plan(&plan, &module, Vec::new()));
}

fn phase_number(phase: &str) -> usize {
    PHASES.iter().position(|other| *other == phase).unwrap_or(PHASES.len())
}

/// Where a pass first stands in the default pipeline; one that does not comes last in its phase.
fn place(pass: &str) -> usize {
    let steps = &PIPELINE.steps;
    let is_named = |step: &Step| matches!(step, Step::Pass(step) if step.name == pass);
    steps.iter().position(is_named).unwrap_or_else(|| {
        let record = REGISTRY.record(REGISTRY.find(pass).expect("it was listed"));
        let own = phase_number(&record.phase);
        let is_later = |step: &Step| matches!(step, Step::Phase(next) if phase_number(next) > own);
        steps.iter().position(is_later).unwrap_or(steps.len())
    })
}

/// A program at every place that a pass is measured at.
struct Program {
    bindings: usize,
    /// What each step of the default pipeline is given, the last one what is left at the end.
    stages: Vec<Module>,
}

impl Program {
    fn new(make: fn(usize) -> Module, bindings: usize) -> Self {
        let last = passes().iter().map(|pass| place(pass)).max().unwrap_or(0);
        let prefix = Plan { steps: PIPELINE.steps[..last].to_vec(), ..Plan::default() };
        let stages = Arc::new(Mutex::new(Vec::new()));
        let end = run_plan(&prefix, &make(bindings), vec![Box::new(Stages(stages.clone()))]);
        let mut stages = std::mem::take(&mut *stages.lock().expect("nothing panics"));
        stages.resize(last + 1, end);
        Self { bindings, stages }
    }

    fn bench(&self, bencher: Bencher<'_, '_>, pass: &str) {
        let module = &self.stages[place(pass)];
        let alone = alone(pass).expect("it was listed");
        let items = ItemsCount::new(self.bindings);
        bencher.counter(items).bench_local(|| run_plan(&alone, module, Vec::new()));
    }
}

/// Keeps what each step is given.
struct Stages(Arc<Mutex<Vec<Module>>>);

impl Stages {
    /// This step is given the module, and so are those before it that were told of nothing else.
    fn given(&self, last: usize, module: &Module) {
        let mut stages = self.0.lock().expect("nothing panics");
        let count = stages.len().max(last + 1);
        stages.resize(count, module.clone());
    }
}

impl Instrument for Stages {
    fn before(&mut self, step: StepInfo<'_>, module: &Module) -> Result<(), Box<Diagnostic>> {
        self.given(step.number, module);
        Ok(())
    }

    fn after(
        &mut self,
        step: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        if let StepOutcome::Ran { after, .. } = outcome {
            self.given(step.number + 1, after);
        }
        Ok(())
    }
}

fn run_plan(plan: &Plan, module: &Module, instruments: Vec<Box<dyn Instrument>>) -> Module {
    let cx = module.cx();
    let target = cx.attrs(&[
        ("kind", "cpu".into()),
        ("vector_bits", 512i64.into()),
        ("vector_registers", 32i64.into()),
    ]);
    let mut cx = PassContext { target, instruments, opt_level: u8::MAX, ..PassContext::default() };
    run(&REGISTRY, plan, module, &mut cx).expect("it runs")
}

#[divan::bench(args = passes(), sample_count = 20, sample_size = 1)]
fn layers_10_000(bencher: Bencher<'_, '_>, pass: &str) {
    static PROGRAM: LazyLock<Program> = LazyLock::new(|| Program::new(input::layers, 10_000));
    PROGRAM.bench(bencher, pass);
}

#[divan::bench(args = passes(), sample_count = 3, sample_size = 1)]
fn layers_1_000_000(bencher: Bencher<'_, '_>, pass: &str) {
    static PROGRAM: LazyLock<Program> = LazyLock::new(|| Program::new(input::layers, 1_000_000));
    PROGRAM.bench(bencher, pass);
}

#[divan::bench(args = passes(), sample_count = 10, sample_size = 1)]
fn shapes_10_000(bencher: Bencher<'_, '_>, pass: &str) {
    static PROGRAM: LazyLock<Program> = LazyLock::new(|| Program::new(input::growing, 10_000));
    PROGRAM.bench(bencher, pass);
}
