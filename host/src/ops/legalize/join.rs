//! Tensors put together and taken apart: a copy for each part.
//!
//! ```text
//! concatenate((a: f32[2, 8], b: f32[3, 8]))      for i in 2 { for j in 8 { out[i, j] = a[i, j] } }
//!                                                for i in 3 { for j in 8 { out[i + 2, j] = b[i, j] } }
//! ```
//!
//! The programs have several stores and are opaque to fusion; every copy is contiguous as far as the
//! tensors are.

use crate::ops::{LegalizeCx, OpError, OpPattern};

use super::program::{axis_of, program};

/// `concatenate`.
pub(crate) fn concatenate(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    let axis = cx.attrs.int("axis")?;
    program(cx, OpPattern::Opaque, |kernel, inputs, outputs| {
        let out = &outputs[0];
        let axis = axis_of(axis, out.shape.len())?;
        let mut block = kernel.block();
        let mut first = 0;
        for input in inputs.iter().filter(|input| !input.shape.contains(&0)) {
            block.push(kernel.nest(&input.shape, |indices| {
                let mut target = indices.to_vec();
                target[axis] = indices[axis] + first;
                out.set(&target, input.at(indices))
            }));
            first += input.shape[axis];
        }
        Ok(block.finish())
    })
}

/// `split`.
pub(crate) fn split(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    let axis = cx.attrs.int("axis")?;
    program(cx, OpPattern::Opaque, |kernel, inputs, outputs| {
        let input = &inputs[0];
        let axis = axis_of(axis, input.shape.len())?;
        let mut block = kernel.block();
        let mut first = 0;
        for output in outputs {
            if !output.shape.contains(&0) {
                block.push(kernel.nest(&output.shape, |indices| {
                    let mut source = indices.to_vec();
                    source[axis] = indices[axis] + first;
                    output.set(indices, input.at(&source))
                }));
            }
            first += output.shape[axis];
        }
        Ok(block.finish())
    })
}
