//! Operators on tensors whose shapes are broadcast against each other, aligned at the last dimension.

use crate::eval::kernels::binary;
use crate::ir::{Context, DType, Dim, Type};
use crate::ops::{Arity, InferCx, OpDef, OpError, OpPattern, legalize};

macro_rules! binary {
    ($($name:literal $summary:literal $infer:ident $evaluate:ident;)*) => {$(
        inventory::submit! { OpDef {
            name: $name,
            summary: $summary,
            args: Arity::exactly(2),
            pattern: OpPattern::Broadcast,
            infer: $infer,
            evaluate: Some(binary::$evaluate),
            legalize: Some(legalize::binary),
            ..OpDef::ELEMENTWISE
        } }
    )*};
}

binary! {
    "add" "a + b" number add;
    "subtract" "a - b" number sub;
    "multiply" "a * b" number mul;
    "divide" "a / b; integers are truncated towards zero" number div;
    "maximum" "The larger of two" number larger;
    "minimum" "The smaller of two" number smaller;
    "power" "a to the power of b" number pow;
    "equal" "Whether a = b" comparison equal;
    "not_equal" "Whether a and b differ" comparison not_equal;
    "less" "Whether a < b" comparison less;
    "less_equal" "Whether a <= b" comparison less_equal;
    "greater" "Whether a > b" comparison greater;
    "greater_equal" "Whether a >= b" comparison greater_equal;
    "logical_and" "Whether both are true" truth logical_and;
    "logical_or" "Whether one is true" truth logical_or;
}

inventory::submit! { OpDef {
    name: "where",
    summary: "Elements of the second argument where the first is true, of the third elsewhere",
    args: Arity::exactly(3),
    pattern: OpPattern::Broadcast,
    infer: choose,
    evaluate: Some(binary::choose),
    legalize: Some(legalize::choose),
    ..OpDef::ELEMENTWISE
} }

fn number(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.check_same_dtype(1)?;
    let found = cx.tensor(0)?.dtype;
    match found.is_bool() {
        true => Err(OpError::WrongDType { index: 0, expected: "a number".into(), found }),
        false => broadcast_all(cx, found, 0),
    }
}

fn comparison(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.check_same_dtype(1)?;
    broadcast_all(cx, DType::BOOL, 0)
}

fn truth(cx: &InferCx<'_>) -> Result<Type, OpError> {
    for index in 0..2 {
        check_bool(cx, index)?;
    }
    broadcast_all(cx, DType::BOOL, 0)
}

fn choose(cx: &InferCx<'_>) -> Result<Type, OpError> {
    check_bool(cx, 0)?;
    let (expected, found) = (cx.tensor(1)?.dtype, cx.tensor(2)?.dtype);
    match expected == found {
        true => broadcast_all(cx, expected, 0),
        false => Err(OpError::WrongDType { index: 2, expected: expected.to_string(), found }),
    }
}

fn check_bool(cx: &InferCx<'_>, index: usize) -> Result<(), OpError> {
    let found = cx.tensor(index)?.dtype;
    match found.is_bool() {
        true => Ok(()),
        false => Err(OpError::WrongDType { index, expected: "bool".into(), found }),
    }
}

/// The tensor type of all arguments from `first` on, broadcast against each other.
fn broadcast_all(cx: &InferCx<'_>, dtype: DType, first: usize) -> Result<Type, OpError> {
    let mut dims: Option<Vec<Dim>> = Some(Vec::new());
    for index in first..cx.args.len() {
        dims = match (dims, cx.tensor(index)?.dims) {
            (Some(left), Some(right)) => Some(broadcast(cx, &left, right)?),
            _ => None,
        };
    }
    Ok(cx.tensor_type(dtype, dims.as_deref()))
}

/// The shape that two shapes are broadcast to.
pub(super) fn broadcast(
    cx: &InferCx<'_>,
    left: &[Dim],
    right: &[Dim],
) -> Result<Vec<Dim>, OpError> {
    let rank = left.len().max(right.len());
    let mut dims = Vec::with_capacity(rank);
    for axis in 0..rank {
        let at = |dims: &[Dim]| (axis + dims.len()).checked_sub(rank).map(|index| dims[index]);
        dims.push(match (at(left), at(right)) {
            (Some(a), Some(b)) => {
                broadcast_dim(cx, a, b).ok_or_else(|| cx.mismatch("the shapes", left, right))?
            }
            (Some(dim), None) | (None, Some(dim)) => dim,
            (None, None) => unreachable!("one of them has the rank"),
        });
    }
    Ok(dims)
}

/// The dimension that two are broadcast to: equal ones are themselves, and 1 gives way. What is not known
/// to fail is left to run time, where two dimensions that fit are either equal or one of them is 1.
fn broadcast_dim(cx: &InferCx<'_>, a: Dim, b: Dim) -> Option<Dim> {
    match (cx.value(a), cx.value(b)) {
        _ if a == b => Some(a),
        (Some(1), _) => Some(b),
        (_, Some(1)) => Some(a),
        (Some(_), Some(_)) => None,
        (Some(_), None) => Some(a),
        (None, Some(_)) => Some(b),
        (None, None) => Some(cx.cx.dim_max(a, b)),
    }
}
