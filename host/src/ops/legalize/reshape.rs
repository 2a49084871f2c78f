//! Operators that keep the elements and change the shape.
//!
//! ```text
//! reshape(a: f32[2, 12]) -> [2, 3, 4]      out[i, j, k] = a[i, j * 4 + k]
//! ```
//!
//! Only the axes that are really joined or divided are computed with: where the shapes agree, indices pass
//! through, so that a loop stays vectorizable.

use crate::ops::{LegalizeCx, OpError, OpPattern};

use super::injective::injective;
use super::kernel::Kernel;
use super::scalar::Scalar;

/// `reshape`, `squeeze` and `expand_dims`: the same elements in the same order.
pub(crate) fn reshape(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    injective(cx, OpPattern::Injective, |kernel, input, out, indices| {
        Ok(input.at(&regroup(kernel, indices, &out.shape, &input.shape)))
    })
}

/// The indices in a tensor of shape `to` of the element that has `indices` in one of shape `from`; both
/// have as many elements, at least one.
pub(super) fn regroup<'k>(
    kernel: &'k Kernel,
    indices: &[Scalar<'k>],
    from: &[i64],
    to: &[i64],
) -> Vec<Scalar<'k>> {
    let mut result = vec![kernel.index(0); to.len()];
    // An axis of extent 1 has the index 0 and says nothing.
    let mut from_axes = (0..from.len()).filter(|&axis| from[axis] != 1);
    let mut to_axes = (0..to.len()).filter(|&axis| to[axis] != 1);
    while let (Some(first), Some(target)) = (from_axes.next(), to_axes.next()) {
        // The smallest groups of axes with as many elements.
        let (mut flat, mut count) = (indices[first], from[first]);
        let (mut group, mut target_count) = (vec![target], to[target]);
        while count != target_count {
            if count < target_count {
                let Some(axis) = from_axes.next() else { break };
                flat = flat * from[axis] + indices[axis];
                count *= from[axis];
            } else {
                let Some(axis) = to_axes.next() else { break };
                group.push(axis);
                target_count *= to[axis];
            }
        }
        let mut stride = target_count;
        for (position, &axis) in group.iter().enumerate() {
            stride /= to[axis];
            let index = flat / stride;
            result[axis] = if position == 0 { index } else { index % to[axis] };
        }
    }
    result
}
