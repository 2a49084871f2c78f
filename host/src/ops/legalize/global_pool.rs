//! Pooling over whole images.
//!
//! ```text
//! acc[c] += data[n, cb, y, x, c]                           over all y and x
//! out[n, cb, 0, 0, c] = acc[c] * (1 / (height * width))
//! ```

use crate::ops::{LegalizeCx, OpError, OpPattern};

use super::layout_index::{Coordinate, extent, place};
use super::pool::channel_block;
use super::program::{check_count, program};
use super::scalar::{compute_dtype, lowest};

/// `nn.global_max_pool2d` and `nn.global_avg_pool2d`.
pub(crate) fn global_pool2d(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    check_count(cx, 1)?;
    let is_max = cx.op.name == "nn.global_max_pool2d";
    let layout = super::layout_attr(cx, "layout")?;
    let (dtype, shape) = cx.static_tensor(cx.inputs()[0])?;
    let lanes = cx.lanes_of(dtype);
    let [batch, channels, height, width] =
        [b'N', b'C', b'H', b'W'].map(|axis| extent(&layout, &shape, axis));
    let size = channel_block(&layout, channels, lanes);
    let blocks = channels / size;
    program(cx, OpPattern::OutFusable, |kernel, inputs, outputs| {
        let (data, out) = (&inputs[0], &outputs[0]);
        let dtype = compute_dtype(dtype);
        Ok(kernel.parallel("p", batch * blocks, |p| {
            let mut task = kernel.block();
            let n = task.bind("n", p / blocks);
            let block = task.bind("cb", p % blocks);
            let indices = |c, y, x| {
                place(&layout, |axis| match axis {
                    b'N' => Coordinate::whole(n),
                    b'C' => Coordinate::split(block, c, size),
                    b'H' => Coordinate::whole(y),
                    _ => Coordinate::whole(x),
                })
            };
            let acc = task.local("acc", dtype, &[size]);
            let start = match is_max {
                true => lowest(kernel, dtype),
                false => kernel.literal(dtype, 0.0),
            };
            task.push(kernel.in_registers("c", size, lanes, |c| acc.set(&[c], start)));
            task.push(kernel.serial("y", height, |y| {
                kernel.serial("x", width, |x| {
                    kernel.in_registers("c", size, lanes, |c| {
                        let value = data.wide(&indices(c, y, x));
                        let sum = acc.at(&[c]);
                        acc.set(&[c], if is_max { sum.max(value) } else { sum + value })
                    })
                })
            }));
            let zero = kernel.index(0);
            task.push(kernel.in_registers("c", size, lanes, |c| {
                let value = match is_max {
                    true => acc.at(&[c]),
                    false => acc.at(&[c]) * (1.0 / (height * width) as f64),
                };
                out.set(&indices(c, zero, zero), value)
            }));
            task.finish()
        }))
    })
}
