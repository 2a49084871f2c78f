//! Which rules there are for a node.

use std::borrow::Cow;
use std::sync::Arc;

use crate::ir::{Cx, Rule};
use crate::ops::OpError;

/// The oldest version of the standard operators that is known.
pub(super) const OLDEST_VERSION: i64 = 7;
/// The newest one.
pub(super) const NEWEST_VERSION: i64 = 28;

/// Operators of versions before that mean the same in the oldest one, each with the version since when it does.
const OLDER: [(&str, i64); 73] = [
    ("Abs", 6),
    ("ArgMax", 1),
    ("ArgMin", 1),
    ("Cast", 6),
    ("Ceil", 6),
    ("Clip", 6),
    ("Concat", 4),
    ("Constant", 1),
    ("Conv", 1),
    ("ConvTranspose", 1),
    ("DepthToSpace", 1),
    ("Elu", 6),
    ("Exp", 6),
    ("Flatten", 1),
    ("Floor", 6),
    ("Gather", 1),
    ("GlobalAveragePool", 1),
    ("GlobalLpPool", 2),
    ("GlobalMaxPool", 1),
    ("HardSigmoid", 6),
    ("Hardmax", 1),
    ("Identity", 1),
    ("InstanceNormalization", 6),
    ("LRN", 1),
    ("LeakyRelu", 6),
    ("Log", 6),
    ("LogSoftmax", 1),
    ("LpNormalization", 1),
    ("LpPool", 2),
    ("MatMul", 1),
    ("Max", 6),
    ("MaxPool", 1),
    ("MaxRoiPool", 1),
    ("Mean", 6),
    ("Min", 6),
    ("Neg", 6),
    ("Not", 1),
    ("Pad", 2),
    ("RandomNormal", 1),
    ("RandomNormalLike", 1),
    ("RandomUniform", 1),
    ("RandomUniformLike", 1),
    ("Reciprocal", 6),
    ("ReduceL1", 1),
    ("ReduceL2", 1),
    ("ReduceLogSum", 1),
    ("ReduceLogSumExp", 1),
    ("ReduceMax", 1),
    ("ReduceMean", 1),
    ("ReduceMin", 1),
    ("ReduceProd", 1),
    ("ReduceSum", 1),
    ("ReduceSumSquare", 1),
    ("Relu", 6),
    ("Reshape", 5),
    ("Selu", 6),
    ("Shape", 1),
    ("Sigmoid", 6),
    ("Size", 1),
    ("Slice", 1),
    ("Softmax", 1),
    ("Softplus", 1),
    ("Softsign", 1),
    ("SpaceToDepth", 1),
    ("Split", 2),
    ("Sqrt", 6),
    ("Squeeze", 1),
    ("Sum", 6),
    ("Tanh", 6),
    ("Tile", 6),
    ("TopK", 1),
    ("Transpose", 1),
    ("Unsqueeze", 1),
];

/// Whether a standard operator of a version is one that is known.
pub(super) fn is_known(op_type: &str, version: i64) -> bool {
    let is_same = || {
        let at = OLDER.binary_search_by_key(&op_type, |&(name, _)| name);
        at.is_ok_and(|at| version >= OLDER[at].1)
    };
    match version {
        ..OLDEST_VERSION => is_same(),
        _ => version <= NEWEST_VERSION,
    }
}

/// What rules for the nodes of a type are asked by: the type, behind its domain where that is not the standard one.
pub(super) fn key<'a>(domain: &str, op_type: &'a str) -> Cow<'a, str> {
    match domain {
        "" => Cow::Borrowed(op_type),
        domain => Cow::Owned(format!("{domain}::{op_type}")),
    }
}

/// The rules for a key that hold in a version of the domain's operators. The error says why they cannot be used.
pub(super) fn find(cx: &Cx, key: &str, version: i64) -> Result<Arc<[Rule]>, OpError> {
    match u64::try_from(version) {
        Ok(version) => cx.operators().rules(super::FACET, key, version),
        Err(_) => Ok(Arc::new([])),
    }
}
