//! Convolution in any layout, one element of the result after the other.

use super::fixed::{Args, Conv};
use super::padding::{out_indices, source};
use crate::program::fixed::{Block, Loops, Stmt, compute_dtype};
use crate::program::layout_index::{Coordinate, place};

pub(super) fn direct(args: Args<'_, '_>, conv: &Conv) -> Stmt {
    let Args { kernel, data, weight, out } = args;
    let dtype = compute_dtype(weight.dtype);
    let outputs = conv.out_channels / conv.groups;
    let [height, width] = conv.out;

    let mut program = Block::new(kernel);
    let source = source(kernel, &mut program, conv, data, 1);
    program.push(kernel.parallel("p", conv.batch * conv.out_channels * height, |p| {
        let mut task = Block::new(kernel);
        let n = task.bind("n", p / (conv.out_channels * height));
        let channel = task.bind("oc", p / height % conv.out_channels);
        let y = task.bind("y", p % height);
        let first = match conv.groups {
            1 => kernel.index(0),
            _ => task.bind("ic0", channel / outputs * conv.depth()),
        };
        task.push(kernel.serial("x", width, |x| {
            let mut body = Block::new(kernel);
            let zero = [kernel.index(0)];
            let acc = body.local("acc", dtype, &[1]);
            body.push(acc.set(&zero, kernel.literal(dtype, 0.0)));
            body.push(kernel.serial("ic", conv.depth(), |ic| {
                kernel.serial("ky", conv.taps[0], |ky| {
                    kernel.serial("kx", conv.taps[1], |kx| {
                        let value = source.at(
                            n,
                            Coordinate::whole(first + ic),
                            y * conv.strides[0] + ky * conv.dilation[0],
                            x * conv.strides[1] + kx * conv.dilation[1],
                        );
                        let weight = weight.wide(&place(&conv.kernel_layout, |axis| {
                            Coordinate::whole(match axis {
                                b'O' => channel,
                                b'I' => ic,
                                b'H' => ky,
                                _ => kx,
                            })
                        }));
                        acc.set(&zero, acc.at(&zero) + value * weight)
                    })
                })
            }));
            let indices = out_indices(conv, n, Coordinate::whole(channel), y, x);
            body.push(out.set(&indices, acc.at(&zero)));
            body.finish()
        }));
        task.finish()
    }));
    program.finish()
}
