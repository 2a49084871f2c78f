use super::*;
use tenon_ir::{BinaryOp, BuildPrim, Kind, LoopKind, NodeSpec};

/// A tensor program over buffers of these types, the last of which is written.
fn program(
    cx: &Cx,
    buffers: &[Type],
    build: impl FnOnce(&mut Transaction, &[Expr]) -> Expr,
) -> Arc<Function> {
    let mut tx = Transaction::new(cx.clone());
    let names = ["A", "B", "C", "D"];
    let buffers: Vec<Expr> =
        buffers.iter().zip(names).map(|(&ty, name)| tx.buffer(name, ty, "")).collect();
    let body = build(&mut tx, &buffers);
    let root = tx.prim_func(&buffers, 1, body, Attrs::NONE);
    tx.set_root(root);
    tx.finish().unwrap()
}

fn run(cx: &Cx, func: Arc<Function>, args: Vec<Value>) -> Result<Value, EvalError> {
    Evaluator::new(&module(cx, func)).call("main", args)
}

/// `C[i, j] += A[i, k] * B[k, j]`, as loops around a block with an initial statement.
fn matmul(cx: &Cx, n: i64) -> Arc<Function> {
    program(cx, &[f32s(cx, &[n, n]); 3], |tx, buffers| {
        let &[a, b, c] = buffers else { unreachable!() };
        let vars: Vec<Expr> = ["i", "j", "k"].map(|v| tx.scalar_var(v, DType::I64)).to_vec();
        let &[i, j, k] = &vars[..] else { unreachable!() };
        let iters: Vec<Expr> = ["vi", "vj", "vk"].map(|v| tx.scalar_var(v, DType::I64)).to_vec();
        let &[vi, vj, vk] = &iters[..] else { unreachable!() };
        let zero = tx.float_of(DType::F32, 0.0);
        let init = tx.store(c, zero, &[vi, vj]);
        let (x, y) = (tx.load(a, &[vi, vk]), tx.load(b, &[vk, vj]));
        let product = tx.mul(x, y);
        let old = tx.load(c, &[vi, vj]);
        let sum = tx.add(old, product);
        let update = tx.store(c, sum, &[vi, vj]);
        let terms = ["spatial", "spatial", "reduce"].map(|kind| tx.cx().symbol(kind).into());
        let counts = [tx.cx().int(0), tx.cx().int(0)];
        let layout: Vec<_> = terms.into_iter().chain(counts).collect();
        let spec = NodeSpec {
            data: tx.cx().symbol("product").0,
            aux: tx.cx().list(&layout).0,
            flags: 1,
            ..NodeSpec::new(Kind::BLOCK)
        };
        let block = tx.push(spec, &[vi, i, vj, j, vk, k, init, update]);
        let inner = tx.for_range(k, n, LoopKind::Serial, block);
        let middle = tx.for_range(j, n, LoopKind::Vectorized, inner);
        tx.for_range(i, n, LoopKind::Parallel, middle)
    })
}

#[test]
fn blocks_are_initialized_and_reduce() {
    let cx = tenon_compiler::testing::cx();
    let square = |values: [f32; 4]| Value::Tensor(Tensor::from_vec(vec![2, 2], values.to_vec()));
    let args = vec![square([1.0, 2.0, 3.0, 4.0]), square([5.0, 6.0, 7.0, 8.0])];
    let result = run(&cx, matmul(&cx, 2), args).unwrap();
    assert_eq!(elements(&result), [19.0, 22.0, 43.0, 50.0]);
}

#[test]
fn vectors_are_loaded_computed_and_stored() {
    let cx = tenon_compiler::testing::cx();
    let func = program(&cx, &[f32s(&cx, &[2, 8]), f32s(&cx, &[16])], |tx, buffers| {
        let i = tx.scalar_var("i", DType::I64);
        let (zero, one) = (tx.index(0), tx.index(1));
        let lane = tx.ramp(zero, one, 8);
        let row = tx.broadcast(i, 8);
        let x = tx.load(buffers[0], &[row, lane]);
        let two = tx.float_of(DType::F32, 2.0);
        let two = tx.broadcast(two, 8);
        let scaled = tx.mul(x, two);
        let positive = tx.binary(BinaryOp::Gt, x, two);
        let value = tx.select(positive, scaled, x);
        let start = tx.scaled(i, 8, zero);
        let place = tx.ramp(start, one, 8);
        let store = tx.store(buffers[1], value, &[place]);
        tx.for_range(i, 2, LoopKind::Serial, store)
    });
    let input: Vec<f32> = (0..16).map(|x| x as f32 - 4.0).collect();
    let expected: Vec<f32> = input.iter().map(|&x| if x > 2.0 { 2.0 * x } else { x }).collect();
    let arg = Value::Tensor(Tensor::from_vec(vec![2, 8], input));
    assert_eq!(elements(&run(&cx, func, vec![arg]).unwrap()), expected);
}

#[test]
fn memory_is_read_again_after_it_was_written() {
    let cx = tenon_compiler::testing::cx();
    // t = A[0]; C[0] = A[0] + 1; twice the same load node, with a store between.
    let func = program(&cx, &[f32s(&cx, &[1]), f32s(&cx, &[2])], |tx, buffers| {
        let zero = tx.index(0);
        let one = tx.index(1);
        let x = tx.load(buffers[0], &[zero]);
        let first = tx.store(buffers[1], x, &[zero]);
        let y = tx.load(buffers[1], &[zero]);
        let sum = tx.add(y, x);
        let second = tx.store(buffers[1], sum, &[zero]);
        let third = tx.store(buffers[1], sum, &[one]);
        tx.seq(&[first, second, third])
    });
    assert_eq!(elements(&run(&cx, func, vec![vector(&[3.0])]).unwrap()), [6.0, 9.0]);
}

#[test]
fn symbolic_extents_conditions_and_allocations_work() {
    let cx = tenon_compiler::testing::cx();
    let n = cx.dim_symbol("n");
    let ty = cx.tensor_type(DType::F32, &[n]);
    // Reverses a vector over a buffer of its own; elements below 0 become 0.
    let func = program(&cx, &[ty, ty], |tx, buffers| {
        let local = tx.buffer("T", ty, "local");
        let alloc = tx.alloc(local);
        let extent = tx.prim(n);
        let (zero, one) = (tx.index(0), tx.index(1));
        let i = tx.scalar_var("i", DType::I64);
        let last = tx.sub(extent, one);
        let back = tx.sub(last, i);
        let x = tx.load(buffers[0], &[back]);
        let floor = tx.float_of(DType::F32, 0.0);
        let cond = tx.binary(BinaryOp::Ge, x, floor);
        let then = tx.store(local, x, &[i]);
        let otherwise = tx.store(local, floor, &[i]);
        let choice = tx.if_stmt(cond, then, Some(otherwise));
        let fill = tx.for_loop(i, zero, extent, LoopKind::Serial, choice, Attrs::NONE);
        let j = tx.scalar_var("j", DType::I64);
        let y = tx.load(local, &[j]);
        let v = tx.scalar_var("v", DType::F32);
        let name = tx.let_stmt(v, y);
        let store = tx.store(buffers[1], v, &[j]);
        let both = tx.seq(&[name, store]);
        let copy = tx.for_loop(j, zero, extent, LoopKind::Serial, both, Attrs::NONE);
        tx.seq(&[alloc, fill, copy])
    });
    let result = run(&cx, func, vec![vector(&[1.0, -2.0, 3.0])]).unwrap();
    assert_eq!(elements(&result), [3.0, 0.0, 1.0]);
}

#[test]
fn an_access_outside_is_named() {
    let cx = tenon_compiler::testing::cx();
    let func = program(&cx, &[f32s(&cx, &[3]), f32s(&cx, &[4])], |tx, buffers| {
        let i = tx.scalar_var("i", DType::I64);
        let x = tx.load(buffers[0], &[i]);
        let store = tx.store(buffers[1], x, &[i]);
        tx.for_range(i, 4, LoopKind::Serial, store)
    });
    let message = run(&cx, func, vec![vector(&[1.0, 2.0, 3.0])]).unwrap_err().to_string();
    assert!(
        message.starts_with(
            "index [3] is outside of buffer `A`, which has shape [3], in the store to `B`"
        ),
        "{message}"
    );
}

#[test]
fn bits_and_intrinsics_are_those_of_the_types() {
    let cx = tenon_compiler::testing::cx();
    // 2^A by its bits: reinterpret((int(A) + 127) << 23), plus fma and sigmoid.
    let func = program(&cx, &[f32s(&cx, &[1]), f32s(&cx, &[3])], |tx, buffers| {
        let zero = tx.index(0);
        let x = tx.load(buffers[0], &[zero]);
        let int = tx.cast(x, DType::I32);
        let bias = tx.int_of(DType::I32, 127);
        let biased = tx.add(int, bias);
        let by = tx.int_of(DType::I32, 23);
        let bits = tx.intrinsic("shl", &[biased, by]);
        let float = Some(tx.cx().scalar_type(DType::F32));
        let power = tx.intrinsic_of("reinterpret", &[bits], float);
        let fma = tx.intrinsic("fma", &[x, x, power]);
        let sigmoid = tx.intrinsic("sigmoid", &[x]);
        let stores: Vec<Expr> = [power, fma, sigmoid]
            .into_iter()
            .enumerate()
            .map(|(at, value)| {
                let at = tx.index(at as i64);
                tx.store(buffers[1], value, &[at])
            })
            .collect();
        tx.seq(&stores)
    });
    let result = elements(&run(&cx, func, vec![vector(&[3.0])]).unwrap());
    assert_eq!(result, [8.0, 17.0, 1.0 / (1.0 + (-3f32).exp())]);
}

#[test]
fn graph_functions_call_programs_in_both_ways() {
    let cx = tenon_compiler::testing::cx();
    let ty = f32s(&cx, &[2, 2]);
    let main = function(&cx, &[ty], |tx, x| {
        let cx = tx.cx();
        let matmul = tx.global("product");
        let tir = tx.op("call_tir");
        let attrs = cx.attrs(&[("out", ty.into())]);
        let first = tx.call(tir, &[matmul, x[0], x[0]], attrs, None);
        let a = tx.var("a", None);
        let size = cx.attrs(&[("size", 96i64.into())]);
        let storage = tx.call_op("memory.alloc_storage", &[], size);
        let s = tx.var("s", None);
        let attrs = cx.attrs(&[("offset", 16i64.into()), ("ty", ty.into())]);
        let place = tx.call_op("memory.alloc_tensor", &[s], attrs);
        let b = tx.var("b", None);
        let attrs = cx.attrs(&[("offset", 64i64.into()), ("ty", ty.into())]);
        let other = tx.call_op("memory.alloc_tensor", &[s], attrs);
        let c = tx.var("c", None);
        let run = tx.call(matmul, &[a, x[0], b], Attrs::NONE, None);
        let u = tx.var("u", None);
        let again = tx.call(matmul, &[b, b, c], Attrs::NONE, None);
        let v = tx.var("v", None);
        let bindings = vec![(a, first), (s, storage), (b, place), (c, other), (u, run), (v, again)];
        let both = tx.tuple(&[b, c]);
        tx.let_blocks(&[(false, bindings)], both)
    });
    let mut module = module(&cx, main);
    module.insert(cx.symbol("product"), matmul(&cx, 2));
    let typed = tenon_ir::infer::infer_module(&module).unwrap();
    let arg = Value::Tensor(Tensor::from_vec(vec![2, 2], vec![1f32, 1.0, 0.0, 1.0]));
    let Value::Tuple(result) = Evaluator::new(&typed).call("main", vec![arg]).unwrap() else {
        panic!("a tuple is expected");
    };
    assert_eq!(elements(&result.fields()[0]), [1.0, 3.0, 0.0, 1.0]);
    assert_eq!(elements(&result.fields()[1]), [1.0, 6.0, 0.0, 1.0]);
}

#[test]
fn a_loop_of_many_steps_is_fast_enough_to_judge_with() {
    let cx = tenon_compiler::testing::cx();
    let n = 96;
    let values: Vec<f32> = (0..n * n).map(|x| (x % 7) as f32).collect();
    let arg = Value::Tensor(Tensor::from_vec(vec![n, n], values));
    let start = std::time::Instant::now();
    let result = run(&cx, matmul(&cx, n as i64), vec![arg.clone(), arg]).unwrap();
    eprintln!("{} steps in {:?}", n * n * n, start.elapsed());
    assert_eq!(elements(&result).len(), n * n);
}
