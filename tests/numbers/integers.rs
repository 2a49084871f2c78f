//! Operators on integers at the extremes of their types, against arithmetic of 128 bits.

use libtest_mimic::Failed;
use tenon_compiler::eval::Tensor;
use tenon_compiler::ir::{Bytes, DType};

use crate::run::{Machine, run};

const DTYPES: [DType; 8] =
    [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];

type Function = fn(i128, i128, Range) -> i128;

/// The least and the greatest number of a type.
type Range = (i128, i128);

/// By operator, what it computes before the result is brought back to its type.
const BINARY: [(&str, Function); 7] = [
    ("add", |a, b, _| a + b),
    ("subtract", |a, b, _| a - b),
    ("multiply", |a, b, _| a.wrapping_mul(b)),
    ("divide", |a, b, _| a / b),
    ("maximum", |a, b, _| a.max(b)),
    ("minimum", |a, b, _| a.min(b)),
    ("power", power),
];

/// Operators of one argument; those with attributes are written out.
const UNARY: [(&str, Function); 6] = [
    ("negative(%)", |a, _, _| -a),
    ("abs(%)", |a, _, range| if range.0 == 0 { a } else { a.abs() }),
    ("nn.relu(%)", |a, _, _| a.max(0)),
    ("nn.relu(abs(%))", |a, _, range| wrapped(a.abs(), range).max(0)),
    ("abs(negative(%))", |a, _, range| wrapped(-a, range).abs()),
    ("clip(%) { max = 100.0, min = -3.5 }", |a, _, _| a.clamp(-3, 100)),
];

/// Exact, and what truncation leaves for a negative exponent; nothing of zero.
fn power(base: i128, exponent: i128, _: Range) -> i128 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 => 1 - 2 * (exponent & 1),
            _ => 0,
        };
    }
    let (mut result, mut square, mut rest) = (1u128, base as u128, exponent);
    while rest > 0 {
        if rest % 2 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest /= 2;
    }
    result as i128
}

fn range(dtype: DType) -> Range {
    let bits = dtype.bits();
    match dtype.is_signed() {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    }
}

/// A number modulo the size of a type.
fn wrapped(value: i128, (low, high): Range) -> i128 {
    low + value.wrapping_sub(low).rem_euclid(high - low + 1)
}

fn numbers((low, high): Range) -> Vec<i128> {
    let near = [
        -129, -128, -101, -7, -3, -2, -1, 0, 1, 2, 3, 5, 6, 7, 10, 31, 100, 101, 127, 128, 255, 256,
    ];
    let mut numbers: Vec<i128> =
        near.into_iter().chain([low, low + 1, low / 2, high / 2, high - 1, high]).collect();
    numbers.retain(|&number| low <= number && number <= high);
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

pub(crate) fn check(machine: Machine) -> Result<(), Failed> {
    let (mut params, mut calls, mut inputs, mut expected) = (vec![], vec![], vec![], vec![]);
    for dtype in DTYPES {
        let range = range(dtype);
        let numbers = numbers(range);
        let count = numbers.len();
        let pairs: Vec<(i128, i128)> =
            numbers.iter().flat_map(|&a| numbers.iter().map(move |&b| (a, b))).collect();
        // An integer divided by zero is an error of its own.
        let divisors: Vec<i128> = numbers.iter().map(|&b| if b == 0 { 9 } else { b }).collect();
        for (name, shape, elements) in [
            ("a", format!("[{count}, 1]"), &numbers),
            ("b", format!("[{count}]"), &numbers),
            ("d", format!("[{count}]"), &divisors),
        ] {
            params.push(format!("%{name}_{dtype}: {dtype}{shape}"));
            let shape = if name == "a" { vec![count, 1] } else { vec![count] };
            inputs.push(tensor(dtype, shape, elements));
        }
        for (op, function) in BINARY {
            let right = if op == "divide" { "d" } else { "b" };
            calls.push(format!("{op}(%a_{dtype}, %{right}_{dtype})"));
            let results = pairs.iter().map(|&(a, b)| {
                let b = if op == "divide" && b == 0 { 9 } else { b };
                wrapped(function(a, b, range), range)
            });
            expected.push((
                format!("{op} of {dtype}"),
                dtype,
                pairs.clone(),
                results.collect::<Vec<_>>(),
            ));
        }
        for (call, function) in UNARY {
            calls.push(call.replace('%', &format!("%b_{dtype}")));
            let single = numbers.iter().map(|&a| (a, a)).collect();
            let results = numbers.iter().map(|&a| wrapped(function(a, a, range), range)).collect();
            expected.push((format!("{call} of {dtype}"), dtype, single, results));
        }
    }
    let lines: String =
        calls.iter().enumerate().map(|(at, call)| format!("  %y{at} = {call}\n")).collect();
    let names: Vec<String> = (0..calls.len()).map(|at| format!("%y{at}")).collect();
    let text =
        format!("fn @main({}) {{\n{lines}  ret ({})\n}}\n", params.join(", "), names.join(", "));
    let found = run(&text, &inputs, machine)?;
    for (found, (what, dtype, arguments, results)) in found.iter().zip(expected) {
        let expected = tensor(dtype, vec![results.len()], &results);
        let size = dtype.bits() as usize / 8;
        let mut pairs = found.bytes().chunks(size).zip(expected.bytes().chunks(size));
        if let Some(at) = pairs.position(|(found, expected)| found != expected) {
            let (bytes, right) = (&found.bytes()[size * at..][..size], results[at]);
            return Err(format!("{what}: {:?} gives {bytes:?}, not {right}", arguments[at]).into());
        }
    }
    Ok(())
}

fn tensor(dtype: DType, shape: Vec<usize>, elements: &[i128]) -> Tensor {
    let size = dtype.bits() as usize / 8;
    let bytes: Vec<u8> =
        elements.iter().flat_map(|number| number.to_le_bytes()[..size].to_vec()).collect();
    Tensor::new(dtype, shape, Bytes::new(bytes)).expect("as many bytes as the shape says")
}
