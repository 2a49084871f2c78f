//! Pooling over whole images, where the extents are known.
//!
//! ```text
//! acc[c] += data[n, cb, y, x, c]                           over all y and x
//! out[n, cb, 0, 0, c] = acc[c] * (1 / (height * width))
//! ```

use tenon_plugin_api::op::Layout;
use tenon_plugin_api::program::Reducer;

use super::channel_block;
use crate::program::fixed::{Block, Fixed, Kernel, Loops, Stmt};
use crate::program::layout_index::{Coordinate, extent, place};

/// The program where the extents are known.
pub(crate) fn whole(kernel: &Kernel, layout: &Layout, is_max: bool) -> Option<Stmt> {
    let args = Fixed::of(kernel)?;
    let (data, out) = (&args.inputs[0], &args.outputs[0]);
    let (lanes, dtype) = (args.lanes_of(data.dtype), data.compute_dtype());
    let [batch, channels, height, width] =
        [b'N', b'C', b'H', b'W'].map(|axis| extent(layout, &data.shape, axis));
    let size = channel_block(layout, channels, lanes);
    let blocks = channels / size;
    let reducer = if is_max { Reducer::Max } else { Reducer::Sum };
    Some(kernel.parallel("p", batch * blocks, |p| {
        let mut task = Block::new(kernel);
        let n = task.bind("n", p / blocks);
        let block = task.bind("cb", p % blocks);
        let indices = |c, y, x| {
            place(layout, |axis| match axis {
                b'N' => Coordinate::whole(n),
                b'C' => Coordinate::split(block, c, size),
                b'H' => Coordinate::whole(y),
                _ => Coordinate::whole(x),
            })
        };
        let acc = task.local("acc", dtype, &[size]);
        let start = reducer.identity(kernel, dtype);
        task.push(kernel.in_registers("c", size, lanes, |c| acc.set(&[c], start)));
        task.push(kernel.serial("y", height, |y| {
            kernel.serial("x", width, |x| {
                kernel.in_registers("c", size, lanes, |c| {
                    let value = data.wide(&indices(c, y, x));
                    let sum = acc.at(&[c]);
                    acc.set(&[c], reducer.combine(sum, value))
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
}
