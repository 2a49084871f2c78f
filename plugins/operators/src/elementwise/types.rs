//! The types that operators on each element by itself take.

use tenon_plugin_api::op::prelude::*;

/// Any number; the result is of its type.
pub(crate) fn number(cx: &InferCx<'_>) -> Result<Type> {
    let found = cx.tensor(0)?.dtype;
    match found.is_bool() {
        true => Err(OpError::WrongDType { index: 0, expected: "a number".into(), found }),
        false => cx.arg(0),
    }
}

/// A float; the result is of its type.
pub(crate) fn float(cx: &InferCx<'_>) -> Result<Type> {
    cx.check_float(0)?;
    cx.arg(0)
}

/// A truth value; so is the result.
pub(crate) fn truth(cx: &InferCx<'_>) -> Result<Type> {
    let found = cx.tensor(0)?.dtype;
    match found.is_bool() {
        true => cx.arg(0),
        false => Err(OpError::WrongDType { index: 0, expected: "bool".into(), found }),
    }
}
