//! The types that operators on bits take.

use tenon_plugin_api::op::prelude::*;

use crate::broadcast::types::broadcast_all;

/// Integers of one type, which is that of the result.
pub(crate) fn integers(cx: &InferCx<'_>) -> Result<Type> {
    let found = cx.tensor(0)?.dtype;
    if !found.is_int() {
        return Err(OpError::WrongDType { index: 0, expected: "an integer type".into(), found });
    }
    for index in 1..cx.args.len() {
        cx.check_same_dtype(index)?;
    }
    broadcast_all(cx, found)
}
