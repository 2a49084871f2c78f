use tenon_compiler::ir::{AttrValue, DType};

use super::problem::{Arg, Attrs, Problem};

const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];
const INTS: [DType; 4] = [DType::I8, DType::U8, DType::I32, DType::I64];

fn check(op: &'static str, args: &[Arg], attrs: Attrs) {
    Problem::new(op, args.to_vec(), attrs).check();
}

fn any(dtype: DType, shape: &[i64]) -> Arg {
    Arg::Any(dtype, shape.to_vec())
}

fn positive(dtype: DType, shape: &[i64]) -> Arg {
    Arg::Positive(dtype, shape.to_vec())
}

#[test]
fn functions_of_floats() {
    let anywhere = [
        "nn.relu",
        "sigmoid",
        "tanh",
        "exp",
        "negative",
        "abs",
        "erf",
        "floor",
        "ceil",
        "round",
        "sin",
        "cos",
        "nn.leaky_relu",
        "nn.gelu",
        "nn.silu",
        "nn.dropout",
    ];
    for dtype in FLOATS {
        for op in anywhere {
            check(op, &[any(dtype, &[3, 1, 5])], vec![]);
        }
        for op in ["log", "sqrt", "rsqrt"] {
            check(op, &[positive(dtype, &[15])], vec![]);
        }
    }
}

#[test]
fn functions_of_integers() {
    for dtype in INTS {
        for op in ["nn.relu", "negative", "abs", "nn.dropout"] {
            check(op, &[any(dtype, &[70])], vec![]);
        }
    }
}

#[test]
fn bounds_are_truncated_for_integers() {
    for dtype in FLOATS.into_iter().chain(INTS) {
        for (min, max) in [(-0.5, 1.25), (-3.5, 50.9), (-1000.0, 1000.0)] {
            let attrs = vec![("min", min.into()), ("max", max.into())];
            check("clip", &[any(dtype, &[40])], attrs);
        }
        check("clip", &[any(dtype, &[40])], vec![("max", AttrValue::Float(-1.0))]);
    }
}

#[test]
fn arithmetic_is_broadcast() {
    let operators = [
        "add",
        "subtract",
        "multiply",
        "maximum",
        "minimum",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
    ];
    for dtype in FLOATS.into_iter().chain(INTS) {
        for op in operators {
            check(op, &[any(dtype, &[4, 1, 3]), any(dtype, &[5, 1])], vec![]);
        }
        check("divide", &[any(dtype, &[4, 70]), positive(dtype, &[70])], vec![]);
    }
    for dtype in FLOATS {
        check("power", &[positive(dtype, &[1, 3]), any(dtype, &[5, 1])], vec![]);
    }
}

#[test]
fn truth_values() {
    let truths = |shape: &[i64]| any(DType::BOOL, shape);
    for op in ["logical_and", "logical_or", "equal", "not_equal"] {
        check(op, &[truths(&[1, 30]), truths(&[5, 1])], vec![]);
    }
    check("logical_not", &[truths(&[9])], vec![]);
    for dtype in [DType::F32, DType::I8, DType::BOOL] {
        let args = [truths(&[4, 1, 3]), any(dtype, &[5, 1]), any(dtype, &[])];
        check("where", &args, vec![]);
    }
}

#[test]
fn conversions() {
    for from in FLOATS.into_iter().chain(INTS).chain([DType::BOOL]) {
        for to in ["f32", "f64", "f16", "bf16", "i8", "i32", "i64", "u8", "bool"] {
            check("cast", &[any(from, &[30])], vec![("dtype", to.into())]);
        }
    }
}

#[test]
fn batch_norm() {
    for dtype in FLOATS {
        let channel = || any(dtype, &[5]);
        let args = [any(dtype, &[2, 5, 3]), channel(), channel(), channel(), positive(dtype, &[5])];
        check("nn.batch_norm", &args, vec![]);
    }
}
