//! What is done to whole modules between passes: `cargo bench -p tenon-host --bench module`.
//!
//! Items are bindings; each is linear when its rate stays from 10,000 to 1,000,000.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use tenon_host::check::check;
use tenon_host::infer::infer_module;
use tenon_host::ir::{Context, Module};
use tenon_host::text::{WeightsPolicy, print_module};
use tenon_operators as _;

mod input;

fn main() {
    tenon_host::runtime::memory::keep_freed_memory();
    divan::main();
}

const BINDINGS: &[usize] = &[10_000, 1_000_000];

fn measure<T>(bencher: Bencher<'_, '_>, bindings: usize, work: impl Fn(&Module) -> T) {
    let module = input::layers(bindings);
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
