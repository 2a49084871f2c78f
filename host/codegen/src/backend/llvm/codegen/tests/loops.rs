//! Loops, branches, blocks and buffers.

use super::run::{Program, compile, problem, run, run_on, run_parallel};
use crate::{backend::Emit, target::Target};
use tenon_eval::Tensor;
use tenon_ir::{Attrs, BinaryOp, Build, BuildPrim, Context, DType, Kind, LoopKind, NodeSpec};

fn counting(shape: &[usize]) -> Tensor {
    let count = shape.iter().product::<usize>();
    Tensor::from_vec(shape.to_vec(), (0..count).map(|i| i as f32).collect())
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.elements::<f32>().to_vec()
}

/// `y[i, j] = x[i, j] * 2 + i` over 5 x 7, the outer loop as given.
fn scaled(kind: LoopKind) -> std::sync::Arc<tenon_ir::Function> {
    let mut p = Program::new();
    let (x, y) = (p.buffer("x", DType::F32, &[5, 7]), p.buffer("y", DType::F32, &[5, 7]));
    let (i, j) = (p.var("i"), p.var("j"));
    let tx = &mut p.tx;
    let two = tx.float_of(DType::F32, 2.0);
    let (element, row) = (tx.load(x, &[i, j]), tx.cast(i, DType::F32));
    let product = tx.mul(element, two);
    let sum = tx.add(product, row);
    let store = tx.store(y, sum, &[i, j]);
    let inner = tx.for_range(j, 7, LoopKind::Serial, store);
    let outer = tx.for_range(i, 5, kind, inner);
    p.finish(1, outer)
}

fn expected_scaled() -> Vec<f32> {
    (0..35).map(|n| 2.0 * n as f32 + (n / 7) as f32).collect()
}

#[test]
fn loops_run_over_their_range() {
    let result = run(&scaled(LoopKind::Serial), &[counting(&[5, 7])]);
    assert_eq!(floats(&result[0]), expected_scaled());
}

#[test]
fn parallel_loops_give_the_same_on_any_number_of_threads() {
    let func = scaled(LoopKind::Parallel);
    assert_eq!(floats(&run(&func, &[counting(&[5, 7])])[0]), expected_scaled());
    for threads in [1, 2, 3, 8] {
        let result = run_parallel(&func, &[counting(&[5, 7])], threads);
        assert_eq!(floats(&result[0]), expected_scaled(), "{threads} threads");
    }
}

#[test]
fn parallel_loops_take_along_what_they_name() {
    // let n = 3; k: f32 = x[0, 0] + 1; large = x * k; parallel i { parallel j { y = large + n } }
    let mut p = Program::new();
    let (x, y) = (p.buffer("x", DType::F32, &[300, 70]), p.buffer("y", DType::F32, &[300, 70]));
    let large = p.made("large", DType::F32, &[300, 70], "");
    let small = p.made("small", DType::F32, &[4], "local");
    let (i, j, i2, j2) = (p.var("i"), p.var("j"), p.var("i"), p.var("j"));
    let n = p.tx.scalar_var("n", DType::F32);
    let k = p.tx.scalar_var("k", DType::F32);
    let tx = &mut p.tx;
    let three = tx.float_of(DType::F32, 3.0);
    let let_n = tx.let_stmt(n, three);
    let zero = tx.index(0);
    let corner = tx.load(x, &[zero, zero]);
    let one = tx.float_of(DType::F32, 1.0);
    let sum = tx.add(corner, one);
    let let_k = tx.let_stmt(k, sum);
    let element = tx.load(x, &[i, j]);
    let product = tx.mul(element, k);
    let store = tx.store(large, product, &[i, j]);
    let inner = tx.for_range(j, 70, LoopKind::Serial, store);
    let fill = tx.for_range(i, 300, LoopKind::Serial, inner);
    // The body of the parallel loop has a buffer of its own.
    let element = tx.load(large, &[i2, j2]);
    let sum = tx.add(element, n);
    let keep = tx.store(small, sum, &[zero]);
    let kept = tx.load(small, &[zero]);
    let write = tx.store(y, kept, &[i2, j2]);
    let alloc_small = tx.alloc(small);
    let body = tx.seq(&[alloc_small, keep, write]);
    let inner = tx.for_range(j2, 70, LoopKind::Parallel, body);
    let outer = tx.for_range(i2, 300, LoopKind::Parallel, inner);
    let alloc_large = tx.alloc(large);
    let body = tx.seq(&[let_n, let_k, alloc_large, fill, outer]);
    let func = p.finish(1, body);

    let expected: Vec<f32> = (0..21000).map(|n| (n as f32 + 1.0) * 2.0 + 3.0).collect();
    let input = Tensor::from_vec(vec![300, 70], (0..21000).map(|n| (n + 1) as f32).collect());
    for threads in [1, 2, 3] {
        let result = run_parallel(&func, std::slice::from_ref(&input), threads);
        assert_eq!(floats(&result[0]), expected, "{threads} threads");
    }
    let text =
        String::from_utf8(compile(&func, &Target::native().unwrap(), Emit::RawText).unwrap())
            .unwrap();
    assert_eq!(text.matches("define internal void @k.body").count(), 1, "{text}");
}

#[test]
fn blocks_start_with_their_initial_statement() {
    // for i, k: block (vi = i, vk = k) { init { y[vi] = 0 }  y[vi] = y[vi] + x[vi, vk] }
    let mut p = Program::new();
    let (x, y) = (p.buffer("x", DType::F32, &[3, 4]), p.buffer("y", DType::F32, &[3]));
    let [i, k, vi, vk] = ["i", "k", "vi", "vk"].map(|name| p.var(name));
    let tx = &mut p.tx;
    let zero = tx.float_of(DType::F32, 0.0);
    let init = tx.store(y, zero, &[vi]);
    let (old, element) = (tx.load(y, &[vi]), tx.load(x, &[vi, vk]));
    let sum = tx.add(old, element);
    let body = tx.store(y, sum, &[vi]);
    let cx = tx.cx();
    let kinds = [cx.symbol("spatial").into(), cx.symbol("reduce").into(), cx.int(0), cx.int(0)];
    let spec = NodeSpec {
        flags: 1,
        data: cx.symbol("total").0,
        aux: cx.list(&kinds).0,
        ..NodeSpec::new(Kind::BLOCK)
    };
    let block = tx.push(spec, &[vi, i, vk, k, init, body]);
    let inner = tx.for_range(k, 4, LoopKind::Serial, block);
    let outer = tx.for_range(i, 3, LoopKind::Serial, inner);
    let result = run(&p.finish(1, outer), &[counting(&[3, 4])]);
    assert_eq!(floats(&result[0]), [6.0, 22.0, 38.0]);
}

#[test]
fn bounds_may_be_known_at_run_time_only() {
    // for i in 0..5 { for j in i .. i + (i - 1) { y[j] = i } }: negative, empty and other extents
    let mut p = Program::new();
    let y = p.buffer("y", DType::I64, &[9]);
    let (z, i, j) = (p.var("z"), p.var("i"), p.var("j"));
    let tx = &mut p.tx;
    let nine = tx.index(9);
    let clear = tx.store(y, nine, &[z]);
    let clear = tx.for_range(z, 9, LoopKind::Serial, clear);
    let one = tx.index(1);
    let extent = tx.sub(i, one);
    let store = tx.store(y, i, &[j]);
    let inner = tx.for_loop(j, i, extent, LoopKind::Serial, store, Attrs::NONE);
    let outer = tx.for_range(i, 5, LoopKind::Serial, inner);
    let body = tx.seq(&[clear, outer]);
    let result = run(&p.finish(1, body), &[]);
    assert_eq!(result[0].elements::<i64>().to_vec(), [9, 9, 2, 3, 4, 4, 4, 9, 9]);
}

#[test]
fn branches_take_one_side() {
    // for i { if i % 3 == 0 { y = 1 } else { y = 2 }; if x[i] < 2 { y = y + 10 } }
    let mut p = Program::new();
    let (x, y) = (p.buffer("x", DType::F32, &[6]), p.buffer("y", DType::F32, &[6]));
    let i = p.var("i");
    let tx = &mut p.tx;
    let (zero, three) = (tx.index(0), tx.index(3));
    let rest = tx.binary(BinaryOp::FloorMod, i, three);
    let is_zero = tx.binary(BinaryOp::Eq, rest, zero);
    let [one, two, ten] = [1.0, 2.0, 10.0].map(|value| tx.float_of(DType::F32, value));
    let (then, otherwise) = (tx.store(y, one, &[i]), tx.store(y, two, &[i]));
    let first = tx.if_stmt(is_zero, then, Some(otherwise));
    let element = tx.load(x, &[i]);
    let is_less = tx.binary(BinaryOp::Lt, element, two);
    let old = tx.load(y, &[i]);
    let sum = tx.add(old, ten);
    let then = tx.store(y, sum, &[i]);
    let second = tx.if_stmt(is_less, then, None);
    let body = tx.seq(&[first, second]);
    let outer = tx.for_range(i, 6, LoopKind::Serial, body);
    let result = run(&p.finish(1, outer), &[counting(&[6])]);
    assert_eq!(floats(&result[0]), [11.0, 12.0, 2.0, 1.0, 2.0, 2.0]);
}

#[test]
fn what_a_pass_has_left_is_an_error_that_names_what_does_not_hold() {
    for (kind, words) in [
        (LoopKind::Vectorized, ["vectorized loop over `i`", "no_vectorized_loop"]),
        (LoopKind::Unrolled, ["unrolled loop over `i`", "no_unrolled_loop"]),
        (LoopKind::ThreadBound, ["thread-bound loop over `i`", "processor"]),
    ] {
        let text = problem(&scaled(kind));
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    let mut p = Program::new();
    let (x, y) = (p.buffer("x", DType::F32, &[1]), p.buffer("y", DType::F32, &[1]));
    let zero = p.tx.index(0);
    let element = p.tx.load(x, &[zero]);
    let exp = p.tx.intrinsic("exp", &[element]);
    let store = p.tx.store(y, exp, &[zero]);
    let text = problem(&p.finish(1, store));
    assert!(text.contains("`exp`") && text.contains("no_intrinsics"), "{text}");
}

#[test]
fn broken_programs_are_errors() {
    let mut p = Program::new();
    let (x, y) = (p.buffer("x", DType::F32, &[2]), p.buffer("y", DType::F32, &[2]));
    let zero = p.tx.index(0);
    let element = p.tx.load(y, &[zero]);
    let store = p.tx.store(x, element, &[zero]);
    assert!(problem(&p.finish(1, store)).contains("`x` is written"));

    let mut p = Program::new();
    let y = p.buffer("y", DType::I32, &[2]);
    let i = p.var("i");
    let one = p.tx.int_of(DType::I32, 1);
    let store = p.tx.store(y, one, &[i]);
    assert!(problem(&p.finish(1, store)).contains("`i` is read where it has no value"));

    let mut p = Program::new();
    let n = p.tx.cx().dim_symbol("n");
    let ty = p.tx.cx().tensor_type(DType::F32, &[n, n]);
    let y = p.tx.buffer("y", ty, "");
    let (zero, value) = (p.tx.index(0), p.tx.float_of(DType::F32, 1.0));
    let store = p.tx.store(y, value, &[zero, zero]);
    let root = p.tx.prim_func(&[y], 1, store, Attrs::NONE);
    p.tx.set_root(root);
    let text = problem(&p.tx.finish().unwrap());
    assert!(text.contains("axes of unknown extents") && text.contains("`flat_buffers`"), "{text}");
}

#[test]
fn every_target_can_be_compiled_for() {
    for target in ["x86_64-linux-gnu", "x86_64-linux-gnu,cpu=haswell", "aarch64-linux-gnu"] {
        let target: Target = target.parse().unwrap();
        assert!(compile(&scaled(LoopKind::Parallel), &target, Emit::Object).is_ok(), "{target}");
    }
    let baseline: Target = "x86_64-linux-gnu".parse().unwrap();
    if baseline.runs_here() {
        let result = run_on(&scaled(LoopKind::Serial), &[counting(&[5, 7])], &baseline, None);
        assert_eq!(floats(&result[0]), expected_scaled());
    }
}
