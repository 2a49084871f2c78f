//! Adding parts to a tensor along an axis.
//!
//! ```text
//! for o in outer { for a in extent { for n in inner { out[o, a, n] = data[o, a, n] } } }
//! for i in indices { for o in outer { for n in inner { out[o, index[i], n] += parts[o, i, n] } } }
//! ```
//!
//! Two indices may be equal, so the loops over them run in order.

use crate::ops::{LegalizeCx, OpError, OpPattern};

use super::injective::index_at;
use super::program::{axis_of, check_count, program};
use super::scalar::compute_dtype;

/// `index_add` over the arguments data, indices, parts.
pub(crate) fn index_add(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    check_count(cx, 3)?;
    let axis = cx.attrs.int("axis")?;
    program(cx, OpPattern::Opaque, |kernel, inputs, outputs| {
        let [data, indices, parts] = [&inputs[0], &inputs[1], &inputs[2]];
        let out = &outputs[0];
        let axis = axis_of(axis, data.shape.len())?;
        let (extent, index_rank) = (data.shape[axis], indices.shape.len());
        let copy = kernel.nest(&out.shape, |i| out.set(i, data.at(i)));
        let add = kernel.nest(&parts.shape, |i| {
            let mut target = i[..axis].to_vec();
            target.push(index_at(indices, &i[axis..axis + index_rank], extent));
            target.extend(&i[axis + index_rank..]);
            let dtype = compute_dtype(out.dtype);
            out.set(&target, out.at(&target).cast(dtype) + parts.wide(i))
        });
        Ok(kernel.seq(&[copy, add]))
    })
}
