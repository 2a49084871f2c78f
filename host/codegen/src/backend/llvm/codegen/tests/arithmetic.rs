//! Operations on scalars of every dtype, against Rust.

use half::{bf16, f16};

use super::run::{Program, compile, run_on};
use crate::{backend::Emit, target::Target};
use tenon_eval::{Element, Tensor};
use tenon_ir::{BinaryOp, Build, BuildPrim, DType, Expr, LoopKind};

/// The targets that run here: this machine, and one that has next to nothing.
fn targets() -> Vec<Target> {
    let mut targets = vec![Target::native().unwrap()];
    let baseline: Target = "x86_64-linux-gnu".parse().unwrap();
    if baseline.runs_here() {
        targets.push(baseline);
    }
    targets
}

/// Applies `make` to each pair of `a` and `b`.
fn map<A: Element, B: Element, R: Element>(
    a: &[A],
    b: &[B],
    result: DType,
    target: &Target,
    make: impl Fn(&mut Program, Expr, Expr) -> Expr,
) -> Vec<R> {
    let count = a.len() as i64;
    let mut p = Program::new();
    let x = p.buffer("a", A::DTYPE, &[count]);
    let y = p.buffer("b", B::DTYPE, &[count]);
    let z = p.buffer("c", result, &[count]);
    let i = p.var("i");
    let (x, y) = (p.tx.load(x, &[i]), p.tx.load(y, &[i]));
    let value = make(&mut p, x, y);
    let store = p.tx.store(z, value, &[i]);
    let body = p.tx.for_range(i, count, LoopKind::Serial, store);
    let func = p.finish(1, body);
    let inputs =
        [Tensor::from_vec(vec![a.len()], a.to_vec()), Tensor::from_vec(vec![b.len()], b.to_vec())];
    run_on(&func, &inputs, target, None)[0].elements::<R>().to_vec()
}

fn binary<T: Element>(op: BinaryOp, a: &[T], b: &[T], target: &Target) -> Vec<T> {
    map(a, b, T::DTYPE, target, |p, x, y| p.tx.binary(op, x, y))
}

fn intrinsic<T: Element>(name: &str, a: &[T], target: &Target) -> Vec<T> {
    map(a, a, T::DTYPE, target, |p, x, _| p.tx.intrinsic(name, &[x]))
}

/// All pairs of `values`.
fn pairs<T: Copy>(values: &[T]) -> (Vec<T>, Vec<T>) {
    values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b))).unzip()
}

#[test]
fn integers_wrap_and_never_trap() {
    let (a, b) = pairs(&[i32::MIN, i32::MIN + 1, -8, -7, -1, 0, 1, 3, 8, i32::MAX]);
    for target in &targets() {
        let check = |op, expected: fn(i32, i32) -> Option<i32>| {
            let found = binary(op, &a, &b, target);
            for ((&x, &y), found) in a.iter().zip(&b).zip(found) {
                if let Some(expected) = expected(x, y) {
                    assert_eq!(found, expected, "{x} {} {y} on {target}", op.text());
                }
            }
        };
        check(BinaryOp::Add, |x, y| Some(x.wrapping_add(y)));
        check(BinaryOp::Sub, |x, y| Some(x.wrapping_sub(y)));
        check(BinaryOp::Mul, |x, y| Some(x.wrapping_mul(y)));
        check(BinaryOp::Div, |x, y| (y != 0).then(|| x.wrapping_div(y)));
        check(BinaryOp::FloorDiv, |x, y| {
            (y != 0).then(|| (i64::from(x) as f64 / f64::from(y)).floor() as i64 as i32)
        });
        check(BinaryOp::FloorMod, |x, y| {
            (y != 0).then(|| {
                (i64::from(x) - (f64::from(x) / f64::from(y)).floor() as i64 * i64::from(y)) as i32
            })
        });
        check(BinaryOp::Min, |x, y| Some(x.min(y)));
        check(BinaryOp::Max, |x, y| Some(x.max(y)));
    }
}

#[test]
fn unsigned_integers_divide_as_such() {
    let (a, b) = pairs(&[0u8, 1, 3, 127, 128, 200, 255]);
    for target in &targets() {
        for (op, expected) in [
            (BinaryOp::Div, u8::checked_div as fn(u8, u8) -> Option<u8>),
            (BinaryOp::FloorDiv, u8::checked_div),
            (BinaryOp::FloorMod, u8::checked_rem),
            (BinaryOp::Max, |x, y| Some(x.max(y))),
            (BinaryOp::Sub, |x, y| Some(x.wrapping_sub(y))),
        ] {
            let found = binary(op, &a, &b, target);
            for ((&x, &y), found) in a.iter().zip(&b).zip(found) {
                assert_eq!(expected(x, y).unwrap_or(found), found, "{x} {} {y}", op.text());
            }
        }
    }
}

#[test]
fn rounding_down_by_a_literal() {
    let a: Vec<i64> = (-20..20).chain([i64::MIN, i64::MAX]).collect();
    for target in &targets() {
        for by in [1i64, 3, 4, 8, 10] {
            for (op, expected) in [
                (BinaryOp::FloorDiv, i64::div_euclid as fn(i64, i64) -> i64),
                (BinaryOp::FloorMod, i64::rem_euclid),
            ] {
                let found: Vec<i64> = map(&a, &a, DType::I64, target, |p, x, _| {
                    let by = p.tx.index(by);
                    p.tx.binary(op, x, by)
                });
                let expected: Vec<i64> = a.iter().map(|&x| expected(x, by)).collect();
                assert_eq!(found, expected, "{} {by}", op.text());
            }
        }
    }
}

const FLOATS: [f32; 17] = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    1.5,
    2.5,
    -1.5,
    -2.5,
    1e-40,
    8388607.5,
    -8388609.0,
    3e9,
    -3e9,
    1e30,
    f32::INFINITY,
    f32::NEG_INFINITY,
];

#[test]
fn floats_are_computed_with() {
    let (a, b) = pairs(&FLOATS);
    let same = |x: f32, y: f32| x == y || (x.is_nan() && y.is_nan());
    for target in &targets() {
        for (op, expected) in [
            (BinaryOp::Add, (|x, y| x + y) as fn(f32, f32) -> f32),
            (BinaryOp::Sub, |x, y| x - y),
            (BinaryOp::Mul, |x, y| x * y),
            (BinaryOp::Div, |x, y| x / y),
            (BinaryOp::FloorDiv, |x, y| (x / y).floor()),
            (BinaryOp::Min, f32::min),
            (BinaryOp::Max, f32::max),
        ] {
            let found = binary(op, &a, &b, target);
            for ((&x, &y), found) in a.iter().zip(&b).zip(found) {
                let expected = expected(x, y);
                assert!(same(found, expected), "{x} {} {y}: {found} on {target}", op.text());
            }
        }
        for (name, expected) in [
            ("sqrt", f32::sqrt as fn(f32) -> f32),
            ("abs", f32::abs),
            ("floor", f32::floor),
            ("ceil", f32::ceil),
            ("trunc", f32::trunc),
            ("round", f32::round_ties_even),
        ] {
            let found = intrinsic(name, &FLOATS, target);
            for (x, found) in FLOATS.into_iter().zip(found) {
                let expected = expected(x);
                let signs = found.is_sign_negative() == expected.is_sign_negative();
                assert!(same(found, expected), "{name}({x}) = {found} on {target}");
                assert!(signs || expected.is_nan(), "{name}({x}) = {found} on {target}");
            }
        }
    }
}

#[test]
fn what_is_no_number_is_the_largest_and_the_smallest() {
    let (a, b) = pairs(&[f32::NAN, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY]);
    for target in &targets() {
        for (op, expected) in
            [(BinaryOp::Min, f32::min as fn(f32, f32) -> f32), (BinaryOp::Max, f32::max)]
        {
            for literal in [0.0, f64::NAN] {
                let found: Vec<f32> = map(&a, &a, DType::F32, target, |p, x, _| {
                    let literal = p.tx.float_of(DType::F32, literal);
                    p.tx.binary(op, literal, x)
                });
                for (&x, found) in a.iter().zip(found) {
                    let is_nan = x.is_nan() || literal.is_nan();
                    assert_eq!(is_nan, found.is_nan(), "{literal} {} {x}", op.text());
                    assert!(is_nan || found == expected(x, 0.0), "{literal} {} {x}", op.text());
                }
            }
            let found = binary(op, &a, &b, target);
            for ((&x, &y), found) in a.iter().zip(&b).zip(found) {
                let is_nan = x.is_nan() || y.is_nan();
                assert_eq!(is_nan, found.is_nan(), "{x} {} {y} on {target}", op.text());
                assert!(is_nan || found == expected(x, y), "{x} {} {y} on {target}", op.text());
            }
        }
    }
}

#[test]
fn floats_become_integers_as_far_as_they_go() {
    let a: Vec<f32> = FLOATS.into_iter().chain([f32::NAN, 300.0, -300.0]).collect();
    for target in &targets() {
        macro_rules! check {
            ($($t:ident)*) => {$(
                let found: Vec<$t> = map(&a, &a, $t::DTYPE, target, |p, x, _| p.tx.cast(x, $t::DTYPE));
                let expected: Vec<$t> = a.iter().map(|&x| x as $t).collect();
                assert_eq!(found, expected, "{} on {target}", stringify!($t));
                let back: Vec<f32> =
                    map(&found, &found, DType::F32, target, |p, x, _| p.tx.cast(x, DType::F32));
                let expected: Vec<f32> = found.iter().map(|&x| x as f32).collect();
                assert_eq!(back, expected, "{} on {target}", stringify!($t));
            )*};
        }
        check!(i8 i16 i32 i64 u8 u16 u32 u64);
    }
}

#[test]
fn integers_change_their_width() {
    let a = [-1i32, 0, 1, 127, 128, 255, 256, i32::MIN, i32::MAX];
    for target in &targets() {
        let found: Vec<i8> = map(&a, &a, DType::I8, target, |p, x, _| p.tx.cast(x, DType::I8));
        assert_eq!(found, a.map(|x| x as i8));
        let found: Vec<i64> = map(&a, &a, DType::I64, target, |p, x, _| p.tx.cast(x, DType::I64));
        assert_eq!(found, a.map(i64::from));
        let found: Vec<u64> = map(&a, &a, DType::U64, target, |p, x, _| {
            let x = p.tx.cast(x, DType::U32);
            p.tx.cast(x, DType::U64)
        });
        assert_eq!(found, a.map(|x| u64::from(x as u32)));
        let found: Vec<u8> = map(&a, &a, DType::BOOL, target, |p, x, _| p.tx.cast(x, DType::BOOL));
        assert_eq!(found, a.map(|x| u8::from(x != 0)));
    }
}

#[test]
fn every_short_float_is_converted() {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    let halves: Vec<f16> = all.iter().map(|&bits| f16::from_bits(bits)).collect();
    let brains: Vec<bf16> = all.iter().map(|&bits| bf16::from_bits(bits)).collect();
    for target in &targets() {
        let wide: Vec<f32> =
            map(&halves, &halves, DType::F32, target, |p, x, _| p.tx.cast(x, DType::F32));
        for (half, wide) in halves.iter().zip(wide) {
            let expected = half.to_f32();
            assert!(
                wide.to_bits() == expected.to_bits() || half.is_nan() && wide.is_nan(),
                "{half:?} {wide}"
            );
        }
        let wide: Vec<f32> =
            map(&brains, &brains, DType::F32, target, |p, x, _| p.tx.cast(x, DType::F32));
        for (brain, wide) in brains.iter().zip(wide) {
            assert!(wide.to_bits() == brain.to_f32().to_bits() || brain.is_nan() && wide.is_nan());
        }
    }
}

#[test]
fn floats_are_shortened_to_the_nearest() {
    // Every f16 and what lies around it and around the middle to the next.
    let floats: Vec<f32> = (0..=u16::MAX)
        .flat_map(|bits| {
            let bits = f16::from_bits(bits).to_f32().to_bits();
            [0, 1, 0xfff, 0x1000, 0x1001, 0x1fff]
                .map(|more| f32::from_bits(bits.wrapping_add(more)))
        })
        .chain((0..1000).map(|n| f32::from_bits(n * 4_294_967)))
        .collect();
    for target in &targets() {
        let found: Vec<f16> =
            map(&floats, &floats, DType::F16, target, |p, x, _| p.tx.cast(x, DType::F16));
        for (x, found) in floats.iter().zip(found) {
            let expected = f16::from_f32(*x);
            assert!(
                found.to_bits() == expected.to_bits() || x.is_nan() && found.is_nan(),
                "{x:e}: {found:?} not {expected:?} on {target}"
            );
        }
        let found: Vec<bf16> =
            map(&floats, &floats, DType::BF16, target, |p, x, _| p.tx.cast(x, DType::BF16));
        for (x, found) in floats.iter().zip(found) {
            let expected = bf16::from_f32(*x);
            assert!(
                found.to_bits() == expected.to_bits() || x.is_nan() && found.is_nan(),
                "{x:e}: {found:?} not {expected:?}"
            );
        }
    }
}

#[test]
fn floats_by_way_of_short_integers_keep_their_bounds() {
    let floats =
        [0.0f32, -0.9, 1.9, 127.5, 128.0, -128.9, -129.0, 255.9, 256.0, 7e4, -7e4, f32::NAN];
    let [least, most] = [f32::NEG_INFINITY, f32::INFINITY];
    let floats: Vec<f32> = floats.into_iter().chain([least, most, 3e9, -3e9]).collect();
    for target in &targets() {
        for (short, expected) in [
            (DType::U8, (|x| i32::from(x as u8)) as fn(f32) -> i32),
            (DType::I8, |x| i32::from(x as i8)),
            (DType::U16, |x| i32::from(x as u16)),
            (DType::I16, |x| i32::from(x as i16)),
        ] {
            let found: Vec<i32> = map(&floats, &floats, DType::I32, target, |p, x, _| {
                let short = p.tx.cast(x, short);
                p.tx.cast(short, DType::I32)
            });
            let expected: Vec<i32> = floats.iter().map(|&x| expected(x)).collect();
            assert_eq!(found, expected, "{short} on {target}");
        }
    }
}

#[test]
fn short_floats_round_after_every_operation() {
    let (a, b): (Vec<f16>, Vec<f16>) =
        pairs(&[0.1f32, 2049.0, 1.0, -3.3, 65504.0].map(f16::from_f32));
    for target in &targets() {
        let found: Vec<f16> = map(&a, &b, DType::F16, target, |p, x, y| {
            let product = p.tx.mul(x, y);
            p.tx.add(product, y)
        });
        for ((x, y), found) in a.iter().zip(&b).zip(found) {
            let product = f16::from_f32(x.to_f32() * y.to_f32());
            assert_eq!(found, f16::from_f32(product.to_f32() + y.to_f32()), "{x} {y}");
        }
    }
}

/// The assembly of `c[i] = make(a[i], b[i])` for a processor that may be another one.
fn assembly(dtype: DType, processor: &str, make: fn(&mut Program, Expr, Expr) -> Expr) -> String {
    let mut p = Program::new();
    let [x, y, z] = ["a", "b", "c"].map(|name| p.buffer(name, dtype, &[64]));
    let i = p.var("i");
    let (x, y) = (p.tx.load(x, &[i]), p.tx.load(y, &[i]));
    let value = make(&mut p, x, y);
    let store = p.tx.store(z, value, &[i]);
    let body = p.tx.for_range(i, 64, LoopKind::Serial, store);
    let func = p.finish(1, body);
    let text = compile(&func, &processor.parse().unwrap(), Emit::Assembly).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn what_is_rounded_in_between_is_not_contracted() {
    let sum_of_product = |p: &mut Program, x, y| {
        let product = p.tx.mul(x, y);
        p.tx.add(product, y)
    };
    // By way of the wider type, as tensor programs of operators compute.
    let through_f32 = |p: &mut Program, x, y| {
        let [x, y] = [x, y].map(|value| p.tx.cast(value, DType::F32));
        let product = p.tx.mul(x, y);
        let product = p.tx.cast(product, DType::F16);
        let product = p.tx.cast(product, DType::F32);
        let sum = p.tx.add(product, y);
        p.tx.cast(sum, DType::F16)
    };
    let through_f64 = |p: &mut Program, x, y| {
        let [wide_x, wide_y] = [x, y].map(|value| p.tx.cast(value, DType::F64));
        let product = p.tx.mul(wide_x, wide_y);
        let product = p.tx.cast(product, DType::F32);
        p.tx.add(product, y)
    };
    // With arithmetic on 16-bit floats, with conversions alone, and with nothing.
    for processor in [
        "x86_64-linux-gnu,cpu=sapphirerapids",
        "x86_64-linux-gnu,cpu=znver4",
        "x86_64-linux-gnu,cpu=haswell",
        "aarch64-linux-gnu,cpu=neoverse-v2",
        "aarch64-linux-gnu,cpu=cortex-a53",
    ] {
        let is_fused =
            |text: &str| ["vfmadd", "vfmsub", "fmadd", "fmla"].iter().any(|op| text.contains(op));
        for (dtype, make) in [
            (DType::F16, sum_of_product as fn(&mut Program, Expr, Expr) -> Expr),
            (DType::F16, through_f32),
            (DType::BF16, sum_of_product),
            (DType::F32, through_f64),
        ] {
            let text = assembly(dtype, processor, make);
            assert!(!is_fused(&text), "{dtype} on {processor}:\n{text}");
        }
        for dtype in [DType::F32, DType::F64] {
            let text = assembly(dtype, processor, sum_of_product);
            assert!(is_fused(&text), "{dtype} on {processor}:\n{text}");
        }
    }
}

#[test]
fn bits_are_moved_and_combined() {
    let (a, b) = pairs(&[0u32, 1, 5, 31, 0xffff_0000, 0x1234_5678]);
    for target in &targets() {
        for (name, expected) in [
            ("bitand", (|x, y| x & y) as fn(u32, u32) -> u32),
            ("bitor", |x, y| x | y),
            ("bitxor", |x, y| x ^ y),
            ("shl", |x, y| x.checked_shl(y).unwrap_or(0)),
            ("shr", |x, y| x.checked_shr(y).unwrap_or(0)),
        ] {
            let found: Vec<u32> =
                map(&a, &b, DType::U32, target, |p, x, y| p.tx.intrinsic(name, &[x, y]));
            let expected: Vec<u32> = a.iter().zip(&b).map(|(&x, &y)| expected(x, y)).collect();
            assert_eq!(found, expected, "{name}");
        }
        let floats = [1.0f32, -2.5, 1e-40];
        let found: Vec<u32> = map(&floats, &floats, DType::U32, target, |p, x, _| {
            use tenon_ir::Context;
            let ty = p.tx.cx().scalar_type(DType::U32);
            p.tx.intrinsic_of("reinterpret", &[x], Some(ty))
        });
        assert_eq!(found, floats.map(f32::to_bits));
    }
}
