//! The lanes of a vector folded into one.

use super::{Block, Buffer, Loops, Scalar};

/// Folds the first `lanes` elements of a local buffer, a power of two, into the first of them: the upper
/// half onto the lower one until one is left.
pub(crate) fn fold_lanes<'k>(
    body: &mut Block<'k>,
    acc: &Buffer<'k>,
    lanes: i64,
    combine: &dyn Fn(Scalar<'k>, Scalar<'k>) -> Scalar<'k>,
) {
    let kernel = body.kernel();
    let mut half = lanes / 2;
    while half >= 1 {
        body.push(
            kernel.vectorized("l", half, |l| {
                acc.set(&[l], combine(acc.at(&[l]), acc.at(&[l + half])))
            }),
        );
        half /= 2;
    }
}
