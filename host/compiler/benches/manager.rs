//! What the pass manager costs, and what threads bring: `cargo bench -p tenon-compiler --bench manager`.
//!
//! The passes are closures, so nothing of the border is in it. `no_op` and `sequential_of_10` do nothing to modules
//! of several sizes: what is measured is the manager. `functions` renames the calls of 200 equal functions, on one
//! thread and on two.

use std::fmt::Write;
use std::sync::LazyLock;
use tenon_operators as _;

use divan::Bencher;
use tenon_compiler::ir::{Attrs, Build, Kind, Module, Transaction, View};
use tenon_compiler::passes::{Pass, PassContext, Plan, Settings, run};
use tenon_compiler::registry::{Config, PassFailure, Registry};

mod input;

fn main() {
    tenon_compiler::runtime::memory::keep_freed_memory();
    divan::main();
}

/// One without plugins.
static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::from_config(Config::default()));

const SIZES: [usize; 3] = [10, 10_000, 1_000_000];

fn no_op() -> Pass {
    Pass::function("no-op", |function, _, _| Ok(function.clone()))
}

fn bench(bencher: Bencher<'_, '_>, pass: &Pass, module: &Module) {
    let plan = Plan::of(&REGISTRY, pass, &Settings::default()).expect("a plan");
    let mut cx = PassContext::default();
    bencher.bench_local(|| run(&REGISTRY, &plan, module, &mut cx).expect("it runs"));
}

#[divan::bench(args = SIZES)]
fn no_pass(bencher: Bencher<'_, '_>, bindings: usize) {
    bench(bencher, &Pass::sequential([]), &input::layers(bindings));
}

#[divan::bench(args = SIZES)]
fn no_op_alone(bencher: Bencher<'_, '_>, bindings: usize) {
    bench(bencher, &no_op(), &input::layers(bindings));
}

#[divan::bench(args = SIZES)]
fn sequential_of_10(bencher: Bencher<'_, '_>, bindings: usize) {
    let passes = (0..10).map(|_| no_op());
    bench(bencher, &Pass::sequential(passes), &input::layers(bindings));
}

/// A plan of 10,000 sequences in each other.
#[divan::bench]
fn nested_10_000_deep(bencher: Bencher<'_, '_>) {
    let nested = (0..10_000).fold(no_op(), |inner, _| Pass::sequential([inner]));
    bench(bencher, &nested, &input::layers(10));
}

/// 200 equal functions, worked on by so many threads.
#[divan::bench(args = [1, 2], sample_count = 30, sample_size = 1)]
fn functions(bencher: Bencher<'_, '_>, threads: usize) {
    let mut text = String::new();
    for function in 0..200 {
        writeln!(text, "fn @f{function}(%x0: f32[16]) {{").expect("memory");
        for i in 0..500 {
            writeln!(text, "  %x{} = exp(%x{i})", i + 1).expect("memory");
        }
        text.push_str("  ret %x500\n}\n");
    }
    let module = input::module(&text);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let pass = Pass::function("rename", |function, _, _| {
        let body = function.view();
        let mut edit = Transaction::edit(function);
        for expr in body.post_order().filter(|&expr| body.kind(expr) == Kind::CALL) {
            if let View::Call { args, .. } = body.view(expr) {
                let new = edit.call_op("tanh", &args.to_vec(), Attrs::NONE);
                edit.replace(expr, new);
            }
        }
        edit.finish().map_err(|error| PassFailure::error(error.to_string()))
    });
    let plan = Plan::of(&REGISTRY, &pass, &Settings::default()).expect("a plan");
    let mut cx = PassContext::default();
    bencher
        .bench_local(|| pool.install(|| run(&REGISTRY, &plan, &module, &mut cx).expect("it runs")));
}
