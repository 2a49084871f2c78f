//! Programs as deep and as long as they come, on a small stack.

use super::super::build_kernel;
use super::run::Program;
use crate::backend::{Kernel, llvm::inkwell::context};
use crate::target::Target;
use tenon_ir::{BinaryOp, BuildPrim, DType, Function, LoopKind};

/// Builds the LLVM module of what `make` makes, on a stack of 512 KiB.
fn build_on_a_small_stack(make: fn() -> std::sync::Arc<Function>) {
    let build = move || {
        let func = make();
        let target = Target::native().unwrap();
        let cx = context::Context::create();
        let kernel = Kernel { name: "k", symbol: "k", function: &func, intrinsics: &[] };
        let module = build_kernel(&cx, &target, &kernel).unwrap();
        assert!(module.get_function("k").is_some());
    };
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(build).unwrap();
    thread.join().unwrap();
}

const COUNT: usize = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };

#[test]
fn a_million_nested_expressions() {
    build_on_a_small_stack(|| {
        let mut p = Program::new();
        let y = p.buffer("y", DType::F32, &[1]);
        let zero = p.tx.index(0);
        let element = p.tx.load(y, &[zero]);
        let mut sum = element;
        for _ in 0..COUNT {
            sum = p.tx.binary(BinaryOp::Add, sum, element);
        }
        let store = p.tx.store(y, sum, &[zero]);
        p.finish(1, store)
    });
}

#[test]
fn a_million_statements() {
    build_on_a_small_stack(|| {
        let mut p = Program::new();
        let y = p.buffer("y", DType::F32, &[1]);
        let zero = p.tx.index(0);
        let value = p.tx.float_of(DType::F32, 1.0);
        let stores: Vec<_> = (0..COUNT).map(|_| p.tx.store(y, value, &[zero])).collect();
        let body = p.tx.seq(&stores);
        p.finish(1, body)
    });
}

#[test]
fn a_hundred_thousand_nested_loops() {
    build_on_a_small_stack(|| {
        let mut p = Program::new();
        let y = p.buffer("y", DType::F32, &[1]);
        let zero = p.tx.index(0);
        let value = p.tx.float_of(DType::F32, 1.0);
        let mut body = p.tx.store(y, value, &[zero]);
        for _ in 0..COUNT / 10 {
            let i = p.var("i");
            body = p.tx.for_range(i, 2, LoopKind::Serial, body);
        }
        p.finish(1, body)
    });
}

#[test]
fn a_shared_expression_is_evaluated_once() {
    // x + x, doubled sixty times: two to the sixty when every use is evaluated.
    build_on_a_small_stack(|| {
        let mut p = Program::new();
        let y = p.buffer("y", DType::F32, &[1]);
        let zero = p.tx.index(0);
        let mut sum = p.tx.load(y, &[zero]);
        for _ in 0..60 {
            sum = p.tx.binary(BinaryOp::Add, sum, sum);
        }
        let store = p.tx.store(y, sum, &[zero]);
        p.finish(1, store)
    });
}
