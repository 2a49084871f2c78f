//! How the time of each pass grows with its input: `cargo bench -p tenon-compiler --bench growth`.
//!
//! Every pass of the registry runs over ten shapes of input at 100,000 and at 1,000,000 bindings or statements, and
//! the two times stand beside each other: a pass that is linear takes ten times as long, and a little more for what
//! no longer fits the caches. Each is given what the default pipeline makes of the shape up to the pass's first place in
//! it, so a pass of each phase sees a module of its phase; passes over tensor programs get tensor programs. Time
//! is that of the processor, the least of several runs, so what else the machine does counts little. Before each run
//! the caches are emptied: otherwise 100,000 nodes would lie in them and 1,000,000 would not, and what only reads would grow
//! 13 to 30 times, whatever it does.
//!
//! What does nothing but read all nodes stands in the first rows. A third size, smaller
//! than both, foretells what a run will take; one that would take minutes is not started, and says so.
//!
//! Words behind `--` select: those that name a shape say which shapes, others are parts of names of passes, and
//! `all` is all of them. `--sizes 1000,10000` takes other sizes. A pass that a shape is nothing for says why.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{LazyLock, Mutex};
use tenon_operators as _;

use rustix::time::{ClockId, clock_gettime};
use tenon_compiler::ir::{Context, Module, PHASES};
use tenon_compiler::passes::{PassContext, Plan, Reason, Step, plan, run};
use tenon_compiler::registry::{PassKind, Registry};

mod input;

use input::shapes::{SHAPES, Shape};

/// A pass that takes more than so many times as long for ten times as much is not linear.
const MOST: f64 = 13.0;

/// Bytes that empty the caches when they are written: several times what processors have.
const CACHES: usize = 256 << 20;

/// Seconds that one run may take.
const LIMIT: f64 = 120.0;

/// Runs whose least time counts, however long one takes.
const LEAST_RUNS: usize = 3;

/// The rows of what only reads.
const READING: [&str; 2] = ["(reading graph functions)", "(reading tensor programs)"];

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../registry.toml");
    Registry::open(&path).expect("the registry is readable")
});

static PIPELINE: LazyLock<Plan> =
    LazyLock::new(|| plan(&REGISTRY, "default").expect("a plan of the default pipeline"));

fn main() -> ExitCode {
    tenon_compiler::runtime::memory::keep_freed_memory();
    let asked = match Asked::of(std::env::args().skip(1).filter(|word| word != "--bench")) {
        Ok(asked) => asked,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    if asked.is_nothing() {
        // `cargo bench` of everything should end within minutes.
        println!("growth: name shapes and passes to measure, or `all`, which takes long");
        return ExitCode::SUCCESS;
    }
    let mut table = Table::default();
    for shape in SHAPES.iter().filter(|shape| asked.has_shape(shape)) {
        measure(shape, false, &asked, &mut table);
        measure(shape, true, &asked, &mut table);
    }
    table.print();
    ExitCode::SUCCESS
}

/// What was asked for.
struct Asked {
    is_all: bool,
    shapes: Vec<String>,
    passes: Vec<String>,
    sizes: Vec<usize>,
}

impl Asked {
    fn of(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut is_all, mut shapes, mut passes) = (false, Vec::new(), Vec::new());
        let mut sizes = vec![10_000, 100_000, 1_000_000];
        while let Some(word) = words.next() {
            if word == "--sizes" {
                let list = words.next().unwrap_or_default();
                let list: Result<Vec<usize>, _> = list.split(',').map(str::parse).collect();
                sizes = list.map_err(|error| format!("--sizes 100000,1000000: {error}"))?;
            } else if word == "all" {
                is_all = true;
            } else if SHAPES.iter().any(|shape| shape.name == word) {
                shapes.push(word);
            } else {
                passes.push(word);
            }
        }
        let asked = Self { is_all, shapes, passes, sizes };
        match passes_of(&asked).is_empty() {
            true => Err(format!("no pass is called {}", asked.passes.join(" or "))),
            false => Ok(asked),
        }
    }

    fn is_nothing(&self) -> bool {
        !self.is_all && self.shapes.is_empty() && self.passes.is_empty()
    }

    fn has_shape(&self, shape: &Shape) -> bool {
        self.shapes.is_empty() || self.shapes.iter().any(|name| name == shape.name)
    }

    fn has_pass(&self, pass: &str) -> bool {
        self.passes.is_empty() || self.passes.iter().any(|part| pass.contains(part))
    }
}

/// A pass to measure.
struct Measured {
    name: String,
    is_prim: bool,
    /// The pass without what it requires.
    step: Step,
    /// Where it first stands in the default pipeline; one that does not comes last in its phase.
    place: usize,
}

/// The passes that were asked for. Of a composite that is its parts.
fn passes_of(asked: &Asked) -> Vec<Measured> {
    let enabled = REGISTRY.passes().filter(|&id| REGISTRY.is_enabled(id));
    let records = enabled.map(|id| REGISTRY.record(id));
    records
        .filter(|record| asked.has_pass(&record.name))
        .filter_map(|record| {
            let name = record.name.clone();
            let step = plan(&REGISTRY, &name).expect("a plan").steps.pop();
            Some(Measured {
                is_prim: record.kind == PassKind::Prim,
                place: place(&name, &record.phase),
                step: step.filter(|step| matches!(step, Step::Pass(_)))?,
                name,
            })
        })
        .collect()
}

fn place(pass: &str, phase: &str) -> usize {
    let number = |phase: &str| PHASES.iter().position(|other| *other == phase);
    let own = number(phase).unwrap_or(PHASES.len());
    let steps = &PIPELINE.steps;
    let is_named = |step: &Step| matches!(step, Step::Pass(step) if step.name == pass);
    let is_later = |step: &Step| matches!(step, Step::Phase(next) if number(next) > Some(own));
    let first = steps.iter().position(is_named);
    first.or_else(|| steps.iter().position(is_later)).unwrap_or(steps.len())
}

/// Measures passes of one kind on one shape, at each size.
fn measure(shape: &Shape, is_prim: bool, asked: &Asked, table: &mut Table) {
    let mut passes = passes_of(asked);
    passes.retain(|pass| pass.is_prim == is_prim);
    let Some(last) = passes.iter().map(|pass| pass.place).max() else { return };
    let Some(make) = (if is_prim { shape.program } else { Some(shape.graph) }) else {
        for pass in &passes {
            table.add(shape, &pass.name, Err("tensor programs have no such shape".to_owned()));
        }
        return;
    };
    // What the steps of the pipeline took.
    let mut taken: BTreeMap<usize, Times> = BTreeMap::new();
    for (round, &size) in asked.sizes.iter().enumerate() {
        let sizes = &asked.sizes[..=round];
        let input = input::module(&make(size));
        table.add(shape, READING[is_prim as usize], cost(|| Ok(read(&input))));
        let mut module = Ok(input);
        for number in 0..=last {
            for pass in passes.iter().filter(|pass| pass.place == number) {
                let seconds = module.clone().and_then(|module| {
                    afford(&pass.name, table.times(shape, &pass.name), sizes)?;
                    cost(|| run_step(&pass.step, &module))
                });
                table.add(shape, &pass.name, seconds);
            }
            // Passes over functions have nothing to do on tensor programs, and groups are their passes.
            let is_taken = |step: &&Step| match step {
                Step::Pass(step) => !is_prim || is_prim_pass(&step.name),
                Step::Phase(_) => true,
                Step::Begin(_) | Step::End(_) => false,
            };
            if let Some(step) = PIPELINE.steps.get(number).filter(is_taken) {
                let times = taken.entry(number).or_default();
                let affordable = match step {
                    Step::Pass(step) => afford(&step.name, times, sizes),
                    _ => Ok(()),
                };
                let start = processor_time();
                module = module.and_then(|module| affordable.and(run_step(step, &module)));
                times
                    .push(module.as_ref().map(|_| processor_time() - start).map_err(String::clone));
            }
        }
    }
}

/// An error when a run at the last of `sizes` would take longer than it may, as the times at those before it grew.
fn afford(pass: &str, times: &[Result<f64, String>], sizes: &[usize]) -> Result<(), String> {
    let ([.., Ok(small), Ok(large)], [.., first, second, next]) = (times, sizes) else {
        return Ok(());
    };
    let by = |a: &usize, b: &usize| (*b as f64 / *a as f64).ln();
    let seconds = large * (by(second, next) * (large / small).ln() / by(first, second)).exp();
    match seconds > LIMIT {
        true => {
            Err(format!("{pass} would take {seconds:.0} seconds, {:.1} times", seconds / large))
        }
        false => Ok(()),
    }
}

/// Reads all nodes of a module, and what they refer to.
fn read(module: &Module) -> usize {
    let mut sum = 0;
    for (_, function) in module.iter() {
        let body = function.view();
        for expr in body.post_order() {
            sum += body.raw_node(expr).ty as usize;
            sum += body.operands(expr).iter().map(|operand| operand.index()).sum::<usize>();
        }
    }
    std::hint::black_box(sum)
}

fn is_prim_pass(name: &str) -> bool {
    REGISTRY.find(name).is_ok_and(|id| REGISTRY.record(id).kind == PassKind::Prim)
}

/// The seconds of processor time that something takes with empty caches: the least of some runs, which are fewer the
/// longer they take. The first one waits for the system's pages, which the others find; so there are several in any case.
fn cost<T>(mut run: impl FnMut() -> Result<T, String>) -> Result<f64, String> {
    let (mut least, mut all) = (f64::INFINITY, 0.0);
    for runs in 1..=7 {
        empty_caches();
        let start = processor_time();
        let result = run();
        let seconds = processor_time() - start;
        drop(result?);
        least = least.min(seconds);
        all += seconds;
        if all > 1.0 && runs >= LEAST_RUNS {
            break;
        }
    }
    Ok(least)
}

fn empty_caches() {
    static MEMORY: LazyLock<Mutex<Vec<u64>>> =
        LazyLock::new(|| Mutex::new(vec![0; CACHES / size_of::<u64>()]));
    let mut memory = MEMORY.lock().expect("nothing panics while it writes");
    memory.iter_mut().for_each(|word| *word = word.wrapping_add(1));
    std::hint::black_box(&mut *memory);
}

fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn run_step(step: &Step, module: &Module) -> Result<Module, String> {
    let target = module.cx().attrs(&[
        ("kind", "cpu".into()),
        ("vector_bits", 512i64.into()),
        ("vector_registers", 32i64.into()),
    ]);
    let mut cx = PassContext { target, ..PassContext::default() };
    let mut step = step.clone();
    if let Step::Pass(pass) = &mut step {
        pass.reason = Reason::Called;
    }
    let plan = Plan { steps: vec![step], ..Plan::default() };
    run(&REGISTRY, &plan, module, &mut cx).map_err(|error| error.to_string())
}

/// Seconds at each size, or why the pass refuses the shape.
type Times = Vec<Result<f64, String>>;

/// What was measured, by pass and shape.
#[derive(Default)]
struct Table {
    rows: BTreeMap<String, BTreeMap<&'static str, Times>>,
}

impl Table {
    /// Adds a time, and prints what is known of this pass and shape.
    fn add(&mut self, shape: &Shape, pass: &str, seconds: Result<f64, String>) {
        let row = self.rows.entry(pass.to_owned()).or_default();
        let times = row.entry(shape.name).or_default();
        times.push(seconds);
        if let [.., last] = times.as_slice() {
            let last = match last {
                Ok(seconds) => format!("{:9.3} ms", seconds * 1e3),
                Err(reason) => reason.lines().next().unwrap_or_default().to_owned(),
            };
            println!("{:10} {pass:30} {last} {}", shape.name, growth_of(times));
        }
    }

    /// What is known of a pass and a shape.
    fn times(&self, shape: &Shape, pass: &str) -> &[Result<f64, String>] {
        self.rows.get(pass).and_then(|row| row.get(shape.name)).map_or(&[], Vec::as_slice)
    }

    /// Prints how all passes grow, as a table of Markdown, and why some refuse a shape.
    fn print(&self) {
        println!(
            "\n| pass | {} |",
            SHAPES.iter().map(|shape| shape.name).collect::<Vec<_>>().join(" | ")
        );
        println!("|---|{}", "---|".repeat(SHAPES.len()));
        for (pass, row) in &self.rows {
            let cell =
                |shape: &Shape| row.get(shape.name).map_or(String::new(), |row| growth_of(row));
            let cells: Vec<String> = SHAPES.iter().map(cell).collect();
            println!("| {pass} | {} |", cells.join(" | "));
        }
        println!();
        for (pass, row) in &self.rows {
            let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for (shape, times) in row {
                if let Some(Err(reason)) = times.last() {
                    reasons
                        .entry(reason.lines().next().unwrap_or_default())
                        .or_default()
                        .push(shape);
                }
            }
            for (reason, shapes) in reasons {
                println!("* `{pass}` on {}: {reason}", shapes.join(", "));
            }
        }
    }
}

/// The last time by the one before it; a dash where the pass refuses the shape.
fn growth_of(times: &[Result<f64, String>]) -> String {
    match times {
        [.., Ok(small), Ok(large)] => {
            let growth = large / small;
            let mark = if growth > MOST { "**" } else { "" };
            format!("{mark}{growth:.1}{mark}")
        }
        [.., Err(_)] => "–".to_owned(),
        _ => String::new(),
    }
}
