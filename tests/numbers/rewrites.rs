//! Rules that rewrite expressions, at the extremes of all element types: not a bit of the result changes.

use libtest_mimic::Failed;
use tenon_compiler::eval::Tensor;
use tenon_compiler::ir::{Bytes, DType};

use crate::float::{ALL, Format};
use crate::run::rewritten;

/// Element types that a rule is tried with.
const INTEGERS: &str = "i8 i16 i32 i64 u8 u16 u32 u64";
const FLOATS: &str = "f16 bf16 f32 f64";
const NUMBERS: &str = "i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64";

/// By element types, expressions of `%x` that rules of `relax.SimplifyExpr` look at; `T` is the element type. Sums of two
/// float constants, the one rule that rounds differently, are tried with integers.
const RULES: &[(&str, &str)] = &[
    (NUMBERS, "add(%x, const(T[], 0))"),
    (FLOATS, "add(%x, const(T[], -0.0))"),
    (NUMBERS, "subtract(%x, const(T[], 0))"),
    (NUMBERS, "multiply(const(T[], 1), %x)"),
    (NUMBERS, "divide(%x, const(T[], 1))"),
    (NUMBERS, "subtract(%x, %x)"),
    (NUMBERS, "multiply(%x, const(T[], 0))"),
    (FLOATS, "divide(%x, const(T[], 16384))"),
    (FLOATS, "divide(%x, const(T[], -0.0009765625))"),
    (NUMBERS, "divide(%x, const(T[], 4))"),
    (INTEGERS, "add(add(%x, const(T[], 100)), const(T[], 120))"),
    (NUMBERS, "maximum(%x, %x)"),
    (NUMBERS, "minimum(%x, %x)"),
    (NUMBERS, "where(less(%x, const(T[], 1)), %x, %x)"),
    (NUMBERS, "where(const(bool[], false), const(T[], 1), %x)"),
    (NUMBERS, "negative(negative(%x))"),
    (NUMBERS, "logical_not(logical_not(less(%x, const(T[], 1))))"),
    (NUMBERS, "nn.relu(nn.relu(%x))"),
    (NUMBERS, "nn.relu(abs(%x))"),
    (NUMBERS, "abs(abs(%x))"),
    (NUMBERS, "abs(negative(%x))"),
    (FLOATS, "floor(round(%x))"),
    (FLOATS, "round(ceil(%x))"),
    (NUMBERS, "clip(%x)"),
    (NUMBERS, "clip(clip(%x) { max = 90.5, min = -2.5 }) { max = 100.0, min = -3.0 }"),
    (NUMBERS, "clip(clip(%x) { max = 300.0, min = 200.0 }) { max = 1e30, min = -1e30 }"),
    (NUMBERS, "clip(clip(%x) { max = -5.0, min = -10.0 }) { max = -4.0, min = -20.0 }"),
    (NUMBERS, "cast(%x) { dtype = \"T\" }"),
    (NUMBERS, "cast(cast(%x) { dtype = \"f64\" }) { dtype = \"T\" }"),
    (NUMBERS, "cast(cast(%x) { dtype = \"f32\" }) { dtype = \"bf16\" }"),
    (NUMBERS, "cast(cast(%x) { dtype = \"f32\" }) { dtype = \"i8\" }"),
    (NUMBERS, "cast(cast(%x) { dtype = \"i64\" }) { dtype = \"f32\" }"),
    (NUMBERS, "cast(cast(%x) { dtype = \"i64\" }) { dtype = \"u8\" }"),
    (NUMBERS, "cast(cast(%x) { dtype = \"u64\" }) { dtype = \"f16\" }"),
    (NUMBERS, "cast(cast(%x) { dtype = \"i32\" }) { dtype = \"bool\" }"),
    (NUMBERS, "cast(cast(%x) { dtype = \"bool\" }) { dtype = \"T\" }"),
];

/// Evaluates each expression as it is written and as the rules leave it.
pub(crate) fn check() -> Result<(), Failed> {
    let (mut params, mut inputs, mut calls) = (vec![], vec![], vec![]);
    for dtype in NUMBERS.split(' ') {
        let elements = extremes(dtype);
        params.push(format!("%x_{dtype}: {dtype}[{}]", elements.shape()[0]));
        inputs.push(elements);
    }
    for &(dtypes, rule) in RULES {
        for dtype in dtypes.split(' ') {
            let call =
                rule.replace("T[", &format!("{dtype}[")).replace("\"T\"", &format!("\"{dtype}\""));
            calls.push(call.replace("%x", &format!("%x_{dtype}")));
        }
    }
    let lines: String =
        calls.iter().enumerate().map(|(at, call)| format!("  %r{at} = {call}\n")).collect();
    let names: Vec<String> = (0..calls.len()).map(|at| format!("%r{at}")).collect();
    let text =
        format!("fn @main({}) {{\n{lines}  ret ({})\n}}\n", params.join(", "), names.join(", "));
    let [before, after] = rewritten(&text, "relax.Normalize, relax.SimplifyExpr", &inputs)?;
    for ((call, before), after) in calls.iter().zip(before).zip(after) {
        let format = ALL.into_iter().find(|format| format.name == before.dtype().to_string());
        let is_same = match format {
            Some(format) => are_same(format, before.bytes(), after.bytes()),
            None => before.bytes()[..] == after.bytes()[..],
        };
        if !is_same {
            return Err(format!("{call} is something else when it is simpler").into());
        }
    }
    Ok(())
}

/// Whether floats are the same bit by bit, or both no numbers.
fn are_same(format: Format, a: &[u8], b: &[u8]) -> bool {
    let mut pairs = format.bits(a).into_iter().zip(format.bits(b));
    pairs.all(|(a, b)| a == b || format.is_nan(a) && format.is_nan(b))
}

/// Least and greatest values, those beside them and around zero, infinities and what is no number.
fn extremes(dtype: &str) -> Tensor {
    let parsed = DType::from_name(dtype).expect("the name of an element type");
    let size = parsed.bits() as usize / 8;
    let bits: Vec<u64> = match ALL.into_iter().find(|format| format.name == dtype) {
        Some(format) => {
            let infinity = format.infinity();
            let sizes = [0, 1, 2, infinity - 1, infinity, infinity + 1];
            let numbers =
                [0.5, 1.0, 1.5, 2.5, 3.0, 127.5, 250.0, 1e4, 6e4].map(|x| format.nearest(x));
            let sign = format.nearest(-0.0);
            sizes.into_iter().chain(numbers).flat_map(|bits| [bits, bits | sign]).collect()
        }
        None => {
            let top = 1u64 << (8 * size - 1);
            let near = [0, 1, 2, 3, 5, 99, 100, 101].map(i64::cast_unsigned);
            near.into_iter()
                .flat_map(|x| [x, x.wrapping_neg(), top.wrapping_add(x), top.wrapping_sub(x)])
                .collect()
        }
    };
    let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()[..size].to_vec()).collect();
    Tensor::new(parsed, vec![bits.len()], Bytes::new(bytes))
        .expect("as many bytes as the shape says")
}
