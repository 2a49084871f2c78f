//! Vector loads and stores, and what instructions they become.

use super::run::{Program, compile, run};
use crate::{backend::Emit, target::Target};
use tenon_eval::Tensor;
use tenon_ir::{BinaryOp, BuildPrim, DType, Expr, Function, LoopKind};

fn counting(count: usize) -> Tensor {
    Tensor::from_vec(vec![count], (0..count).map(|i| i as f32).collect())
}

/// `y[0..16] = x[index]` with a vector index over 64 elements.
fn loaded(index: impl FnOnce(&mut Program) -> Expr) -> std::sync::Arc<Function> {
    let mut p = Program::new();
    let (x, y) = (p.buffer("x", DType::F32, &[64]), p.buffer("y", DType::F32, &[16]));
    let index = index(&mut p);
    let tx = &mut p.tx;
    let value = tx.load(x, &[index]);
    let (zero, one) = (tx.index(0), tx.index(1));
    let place = tx.ramp(zero, one, 16);
    let store = tx.store(y, value, &[place]);
    p.finish(1, store)
}

fn ramp(p: &mut Program, base: i64, stride: i64) -> Expr {
    let (base, stride) = (p.tx.index(base), p.tx.index(stride));
    p.tx.ramp(base, stride, 16)
}

#[test]
fn loads_of_every_stride() {
    for (base, stride) in [(3, 1), (1, 2), (0, 3), (20, -1), (40, -2), (5, 0), (2, 4)] {
        let result = run(&loaded(|p| ramp(p, base, stride)), &[counting(64)]);
        let expected: Vec<f32> = (0..16).map(|lane| (base + lane * stride) as f32).collect();
        assert_eq!(result[0].elements::<f32>().to_vec(), expected, "{base} + {stride} * lane");
    }
}

#[test]
fn vector_indices_are_arithmetic() {
    let result = run(
        &loaded(|p| {
            // (ramp(0, 1) * 2 + broadcast(4)) % 8 + 1
            let steps = ramp(p, 0, 1);
            let [two, four, eight, one] = [2, 4, 8, 1].map(|value| {
                let value = p.tx.index(value);
                p.tx.broadcast(value, 16)
            });
            let sum = p.tx.mul(steps, two);
            let sum = p.tx.add(sum, four);
            let rest = p.tx.binary(BinaryOp::FloorMod, sum, eight);
            p.tx.add(rest, one)
        }),
        &[counting(64)],
    );
    let expected: Vec<f32> = (0..16).map(|lane| ((lane * 2 + 4) % 8 + 1) as f32).collect();
    assert_eq!(result[0].elements::<f32>().to_vec(), expected);
}

/// `y[0..16] = x[first[0] + lane floordiv size * size]`.
fn of_groups(size: i64) -> std::sync::Arc<Function> {
    let mut p = Program::new();
    let (x, first) = (p.buffer("x", DType::F32, &[64]), p.buffer("first", DType::I64, &[1]));
    let y = p.buffer("y", DType::F32, &[16]);
    let lanes = ramp(&mut p, 0, 1);
    let tx = &mut p.tx;
    let (zero, size) = (tx.index(0), tx.index(size));
    let start = tx.load(first, &[zero]);
    let [start, size] = [start, size].map(|each| tx.broadcast(each, 16));
    let group = tx.binary(BinaryOp::FloorDiv, lanes, size);
    let beyond = tx.mul(group, size);
    let index = tx.add(start, beyond);
    let value = tx.load(x, &[index]);
    let store = tx.store(y, value, &[lanes]);
    p.finish(2, store)
}

#[test]
fn lanes_that_read_a_few_neighbours_are_one_load() {
    for (size, first) in [(2, 7), (4, 0), (4, 51), (8, 55), (16, 63)] {
        let start = Tensor::from_vec(vec![1], vec![first]);
        let result = run(&of_groups(size), &[counting(64), start]);
        let expected: Vec<f32> = (0..16).map(|lane| (first + lane / size * size) as f32).collect();
        assert_eq!(result[0].elements::<f32>().to_vec(), expected, "{size} from {first}");
    }
    let target = "x86_64-linux-gnu,cpu=znver4,vector-width=512".parse::<Target>().unwrap();
    let assembly = compile(&of_groups(4), &target, Emit::Assembly).unwrap();
    let assembly = String::from_utf8(assembly).unwrap();
    assert!(assembly.contains("shufps") || assembly.contains("permilps"), "{assembly}");
    assert!(!assembly.contains("insertps") && !assembly.contains("gather"), "{assembly}");
}

#[test]
fn an_index_doubled_often_is_no_longer_looked_at() {
    let mut p = Program::new();
    let (x, first) = (p.buffer("x", DType::F32, &[64]), p.buffer("first", DType::I64, &[1]));
    let y = p.buffer("y", DType::F32, &[16]);
    let lanes = ramp(&mut p, 0, 1);
    let tx = &mut p.tx;
    let zero = tx.index(0);
    let start = tx.load(first, &[zero]);
    let mut index = tx.broadcast(start, 16);
    for _ in 0..48 {
        index = tx.add(index, index);
    }
    let value = tx.load(x, &[index]);
    let store = tx.store(y, value, &[lanes]);
    let result = run(&p.finish(2, store), &[counting(64), Tensor::from_vec(vec![1], vec![0i64])]);
    assert_eq!(result[0].elements::<f32>().to_vec(), [0.0; 16]);
}

#[test]
fn stores_of_every_stride() {
    for stride in [1, 2, 3, -1, -3] {
        let mut p = Program::new();
        let (x, y) = (p.buffer("x", DType::F32, &[16]), p.buffer("y", DType::F32, &[64]));
        let (z, first) = (p.var("z"), if stride < 0 { 63 } else { 0 });
        let tx = &mut p.tx;
        let zero = tx.float_of(DType::F32, -1.0);
        let clear = tx.store(y, zero, &[z]);
        let clear = tx.for_range(z, 64, LoopKind::Serial, clear);
        let from = ramp(&mut p, 0, 1);
        let to = ramp(&mut p, first, stride);
        let value = p.tx.load(x, &[from]);
        let store = p.tx.store(y, value, &[to]);
        let body = p.tx.seq(&[clear, store]);
        let result = run(&p.finish(1, body), &[counting(16)]);
        let mut expected = vec![-1.0f32; 64];
        (0..16).for_each(|lane| expected[(first + lane * stride) as usize] = lane as f32);
        assert_eq!(result[0].elements::<f32>().to_vec(), expected, "stride {stride}");
    }
}

/// `if 0 <= index && index < 64 { y[…] = x[…] }` with one of both at the vector index.
fn guarded(base: i64, stride: i64, is_store: bool) -> std::sync::Arc<Function> {
    let mut p = Program::new();
    let sizes = if is_store { [16, 64] } else { [64, 16] };
    let (x, y) = (p.buffer("x", DType::F32, &sizes[..1]), p.buffer("y", DType::F32, &sizes[1..]));
    let (index, lanes) = (ramp(&mut p, base, stride), ramp(&mut p, 0, 1));
    let tx = &mut p.tx;
    let [low, high] = [0, 64].map(|bound| {
        let bound = tx.index(bound);
        tx.broadcast(bound, 16)
    });
    let is_above = tx.binary(BinaryOp::Le, low, index);
    let is_below = tx.binary(BinaryOp::Lt, index, high);
    let is_inside = tx.binary(BinaryOp::And, is_above, is_below);
    let (from, to) = if is_store { (lanes, index) } else { (index, lanes) };
    let value = tx.load(x, &[from]);
    let store = tx.store(y, value, &[to]);
    let body = tx.if_stmt(is_inside, store, None);
    p.finish(1, body)
}

#[test]
fn lanes_that_are_left_out_touch_nothing() {
    let cases = [
        (60, 1),
        (-5, 1),
        (-70, 1),
        (55, 2),
        (-9, 2),
        (40, 2),
        (3, 9),
        (-1, 4),
        (4, -1),
        (70, -1),
        (200, 3),
    ];
    for (base, stride) in cases {
        let [read, written] = [false, true].map(|is_store| {
            let inputs = [counting(if is_store { 16 } else { 64 })];
            run(&guarded(base, stride, is_store), &inputs)[0].elements::<f32>().to_vec()
        });
        let untouched = f32::from_bits(0xa5a5_a5a5);
        let [mut gathered, mut scattered] = [vec![untouched; 16], vec![untouched; 64]];
        for lane in 0..16 {
            let at = base + stride * lane;
            if (0..64).contains(&at) {
                gathered[lane as usize] = at as f32;
                scattered[at as usize] = lane as f32;
            }
        }
        assert_eq!(read, gathered, "from {base} + {stride} * lane");
        assert_eq!(written, scattered, "to {base} + {stride} * lane");
    }
}

#[test]
fn a_mask_is_part_of_an_instruction_where_the_processor_has_masks() {
    let target = "x86_64-linux-gnu,cpu=znver4".parse::<Target>().unwrap();
    let assembly = compile(&guarded(60, 1, false), &target, Emit::Assembly).unwrap();
    let assembly = String::from_utf8(assembly).unwrap();
    assert!(assembly.contains("{%k1} {z}"), "{assembly}");
}

/// The sums of eight rows in a vector of which ten lanes are wanted, each step under a condition.
fn guarded_sums() -> std::sync::Arc<Function> {
    let mut p = Program::new();
    let (x, y) = (p.buffer("x", DType::F32, &[8, 16]), p.buffer("y", DType::F32, &[16]));
    let acc = p.made("acc", DType::F32, &[16], "local");
    let (k, lanes) = (p.var("k"), ramp(&mut p, 0, 1));
    let tx = &mut p.tx;
    let bound = tx.index(10);
    let bounds = tx.broadcast(bound, 16);
    let is_wanted = tx.binary(BinaryOp::Lt, lanes, bounds);
    let zero = tx.float_of(DType::F32, 0.0);
    let zeros = tx.broadcast(zero, 16);
    let (made, first) = (tx.alloc(acc), tx.store(acc, zeros, &[lanes]));
    let (old, row) = (tx.load(acc, &[lanes]), tx.load(x, &[k, lanes]));
    let sum = tx.add(old, row);
    let step = tx.store(acc, sum, &[lanes]);
    let all = tx.load(acc, &[lanes]);
    let last = tx.store(y, all, &[lanes]);
    let [first, step, last] = [first, step, last].map(|stmt| tx.if_stmt(is_wanted, stmt, None));
    let steps = tx.for_range(k, 8, LoopKind::Serial, step);
    let body = tx.seq(&[made, first, steps, last]);
    p.finish(1, body)
}

#[test]
fn sums_of_which_lanes_are_left_out_stay_in_registers() {
    let func = guarded_sums();
    let x = counting(128).reshaped(vec![8, 16]);
    let found = run(&func, &[x])[0].elements::<f32>().to_vec();
    let untouched = f32::from_bits(0xa5a5_a5a5);
    let sum = |lane: usize| (0..8).map(|row| (row * 16 + lane) as f32).sum();
    let expected: Vec<f32> =
        (0..16).map(|lane| if lane < 10 { sum(lane) } else { untouched }).collect();
    assert_eq!(found, expected);
    let target = "x86_64-linux-gnu,cpu=znver4".parse::<Target>().unwrap();
    let assembly = String::from_utf8(compile(&func, &target, Emit::Assembly).unwrap()).unwrap();
    assert!(!assembly.contains("(%rsp)"), "nothing is spilled: {assembly}");
}

#[test]
fn truth_values_take_a_byte_in_memory() {
    let mut p = Program::new();
    let (x, y) = (p.buffer("x", DType::F32, &[16]), p.buffer("y", DType::BOOL, &[16]));
    let z = p.buffer("z", DType::F32, &[16]);
    let lanes = ramp(&mut p, 0, 1);
    let tx = &mut p.tx;
    let five = tx.float_of(DType::F32, 5.0);
    let fives = tx.broadcast(five, 16);
    let value = tx.load(x, &[lanes]);
    let is_more = tx.binary(BinaryOp::Gt, value, fives);
    let store = tx.store(y, is_more, &[lanes]);
    let cond = tx.load(y, &[lanes]);
    let chosen = tx.select(cond, value, fives);
    let again = tx.store(z, chosen, &[lanes]);
    let body = tx.seq(&[store, again]);
    let result = run(&p.finish(2, body), &[counting(16)]);
    let expected: Vec<u8> = (0..16).map(|i| u8::from(i > 5)).collect();
    assert_eq!(result[0].bytes().to_vec(), expected);
    let expected: Vec<f32> = (0..16).map(|i| (i as f32).max(5.0)).collect();
    assert_eq!(result[1].elements::<f32>().to_vec(), expected);
}

/// A dot product of 14 rows of `a` with 32 columns of `b`, accumulated in registers.
pub(super) fn tile(reduction: i64) -> std::sync::Arc<Function> {
    let mut p = Program::new();
    let a = p.buffer("a", DType::F32, &[14, reduction]);
    let b = p.buffer("b", DType::F32, &[reduction, 32]);
    let y = p.buffer("y", DType::F32, &[14, 32]);
    let acc = p.made("acc", DType::F32, &[14, 32], "local");
    let k = p.var("k");
    let mut before = vec![p.tx.alloc(acc)];
    let (mut inside, mut after) = (Vec::new(), Vec::new());
    for row in 0..14 {
        let i = p.tx.index(row);
        let scalar = p.tx.load(a, &[i, k]);
        let factor = p.tx.broadcast(scalar, 16);
        for column in [0, 16] {
            let j = ramp(&mut p, column, 1);
            let tx = &mut p.tx;
            let zero = tx.float_of(DType::F32, 0.0);
            let zeros = tx.broadcast(zero, 16);
            before.push(tx.store(acc, zeros, &[i, j]));
            let weights = tx.load(b, &[k, j]);
            let product = tx.mul(factor, weights);
            let old = tx.load(acc, &[i, j]);
            let sum = tx.add(old, product);
            inside.push(tx.store(acc, sum, &[i, j]));
            let sum = tx.load(acc, &[i, j]);
            after.push(tx.store(y, sum, &[i, j]));
        }
    }
    let inside = p.tx.seq(&inside);
    before.push(p.tx.for_range(k, reduction, LoopKind::Serial, inside));
    before.extend(after);
    let body = p.tx.seq(&before);
    p.finish(1, body)
}

#[test]
fn a_tile_stays_in_registers() {
    let func = tile(64);
    let pseudo = |count: usize, by: usize| -> Vec<f32> {
        (0..count).map(|i| ((i * by) % 17) as f32 - 8.0).collect()
    };
    let (a, b) = (pseudo(14 * 64, 7), pseudo(64 * 32, 5));
    let inputs =
        [Tensor::from_vec(vec![14, 64], a.clone()), Tensor::from_vec(vec![64, 32], b.clone())];
    let result = run(&func, &inputs);
    let expected: Vec<f32> = (0..14 * 32)
        .map(|n| (0..64).map(|k| a[n / 32 * 64 + k] * b[k * 32 + n % 32]).sum())
        .collect();
    assert_eq!(result[0].elements::<f32>().to_vec(), expected);

    let target = "x86_64-linux-gnu,cpu=znver4".parse::<Target>().unwrap();
    let assembly = String::from_utf8(compile(&func, &target, Emit::Assembly).unwrap()).unwrap();
    let count = |word: &str| assembly.lines().filter(|line| line.contains(word)).count();
    assert_eq!(count("vfmadd"), 28, "{assembly}");
    assert!(count("(%rsp)") == 0, "nothing is spilled: {assembly}");
    assert_eq!(count("vbroadcastss"), 14, "{assembly}");
}
