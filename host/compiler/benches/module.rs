//! What is done to whole modules between passes: `cargo bench -p tenon-compiler --bench module`.
//!
//! Items are bindings; each is linear when its rate stays from 10,000 to 1,000,000.

use std::sync::Arc;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use tenon_compiler::check::check;
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::{Build, Context, Expr, Function, Kind, Module, Transaction};
use tenon_compiler::text::{WeightsPolicy, print_module};
use tenon_operators as _;

mod input;

fn main() {
    tenon_compiler::runtime::memory::keep_freed_memory();
    divan::main();
}

const BINDINGS: &[usize] = &[10_000, 1_000_000];

fn measure<T>(bencher: Bencher<'_, '_>, bindings: usize, work: impl Fn(&Module) -> T) {
    measure_over(bencher, input::layers(bindings), bindings, work);
}

fn measure_over<T>(
    bencher: Bencher<'_, '_>,
    module: Module,
    bindings: usize,
    work: impl Fn(&Module) -> T,
) {
    bencher.counter(ItemsCount::new(bindings)).bench_local(|| work(black_box(&module)));
}

#[divan::bench(args = BINDINGS, sample_count = 10, sample_size = 1)]
fn checks(bencher: Bencher<'_, '_>, bindings: usize) {
    measure(bencher, bindings, check);
}

#[divan::bench(args = BINDINGS, sample_count = 10, sample_size = 1)]
fn infers(bencher: Bencher<'_, '_>, bindings: usize) {
    measure(bencher, bindings, infer_module);
}

#[divan::bench(args = BINDINGS, sample_count = 10, sample_size = 1)]
fn hashes(bencher: Bencher<'_, '_>, bindings: usize) {
    measure(bencher, bindings, Module::structural_hash);
}

#[divan::bench(args = BINDINGS, sample_count = 10, sample_size = 1)]
fn prints(bencher: Bencher<'_, '_>, bindings: usize) {
    measure(bencher, bindings, |module| print_module(module, &mut WeightsPolicy::inline()));
}

#[divan::bench(args = BINDINGS, sample_count = 10, sample_size = 1)]
fn publishes(bencher: Bencher<'_, '_>, bindings: usize) {
    measure(bencher, bindings, published);
}

/// Each binding has a shape of its own.
#[divan::bench(args = [10_000], sample_count = 10, sample_size = 1)]
fn checks_shapes(bencher: Bencher<'_, '_>, bindings: usize) {
    measure_over(bencher, input::growing(bindings), bindings, check);
}

#[divan::bench(args = [10_000], sample_count = 10, sample_size = 1)]
fn infers_shapes(bencher: Bencher<'_, '_>, bindings: usize) {
    measure_over(bencher, input::growing(bindings), bindings, infer_module);
}

#[divan::bench(args = [10_000], sample_count = 10, sample_size = 1)]
fn publishes_shapes(bencher: Bencher<'_, '_>, bindings: usize) {
    measure_over(bencher, input::growing(bindings), bindings, published);
}

/// The function of a module after its first call was replaced by one like it.
fn published(module: &Module) -> Arc<Function> {
    let (_, function) = module.iter().next().expect("there is one function");
    let mut tx = Transaction::edit(function);
    let calls = |expr: &Expr| tx.body().kind(*expr) == Kind::CALL;
    let call = tx.body().post_order().find(calls).expect("there is a call");
    let spec = tx.body().spec(call);
    let operands = tx.body().operands(call).to_vec();
    let again = tx.push(spec, &operands);
    tx.replace(call, again);
    tx.publish().expect("it is the same call")
}

/// Ten functions of a thousand bindings each, up to ten thousand functions of one.
#[divan::bench(args = [10, 1_000, 10_000], sample_count = 10, sample_size = 1)]
fn checks_functions(bencher: Bencher<'_, '_>, functions: usize) {
    let one = input::layers(10_000 / functions);
    let (_, function) = one.iter().next().expect("there is one function");
    let mut module = Module::new(one.cx().clone());
    for number in 0..functions {
        module.insert(one.cx().symbol(&format!("f{number}")), function.clone());
    }
    bencher.counter(ItemsCount::new(10_000usize)).bench_local(|| check(black_box(&module)));
}
