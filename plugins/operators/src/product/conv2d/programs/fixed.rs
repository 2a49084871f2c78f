//! Convolution where the extents are known: which program, and what it needs to know.

use tenon_plugin_api::op::Layout;

use super::super::Conv2d;
use super::{blocked, depthwise, direct, rows};
use crate::program::fixed::{Buffer, Fixed, Kernel, Stmt};
use crate::program::layout_index::extent;

/// The program where the extents are known.
pub(crate) fn fixed(op: &Conv2d, kernel: &Kernel) -> Option<Stmt> {
    let args = Fixed::of(kernel)?;
    let conv = Conv::of(op, &args)?;
    let [data, weight] = [0, 1].map(|index| &args.inputs[index]);
    let args = Args { kernel, data, weight, out: &args.outputs[0] };
    Some(match conv.method() {
        Method::Blocked => blocked::blocked(args, &conv),
        Method::Depthwise => depthwise::depthwise(args, &conv),
        Method::Rows => rows::rows(args, &conv),
        Method::Direct => direct::direct(args, &conv),
    })
}

/// The buffers of a convolution.
pub(super) struct Args<'a, 'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) data: &'a Buffer<'k>,
    pub(super) weight: &'a Buffer<'k>,
    pub(super) out: &'a Buffer<'k>,
}

/// A convolution: its layouts, extents and how the window moves.
pub(super) struct Conv {
    pub(super) data_layout: Layout,
    pub(super) kernel_layout: Layout,
    pub(super) out_layout: Layout,
    pub(super) batch: i64,
    pub(super) channels: i64,
    pub(super) data: [i64; 2],
    pub(super) out_channels: i64,
    pub(super) out: [i64; 2],
    pub(super) taps: [i64; 2],
    pub(super) strides: [i64; 2],
    pub(super) before: [i64; 2],
    pub(super) dilation: [i64; 2],
    pub(super) groups: i64,
    /// Lanes of a vector of the dtype that is summed in.
    pub(super) lanes: i64,
    pub(super) registers: i64,
}

enum Method {
    Blocked,
    Depthwise,
    Rows,
    Direct,
}

impl Conv {
    fn of(op: &Conv2d, args: &Fixed<'_>) -> Option<Self> {
        let (data_layout, kernel_layout) = (op.data_layout.clone(), op.kernel_layout.clone());
        let out_layout = op.result_layout()?;
        let [data, kernel] = [0, 1].map(|index| &args.inputs[index].shape);
        let out = &args.outputs[0].shape;
        let [top, left, _, _] = op.padding;
        Some(Self {
            batch: extent(&data_layout, data, b'N'),
            channels: extent(&data_layout, data, b'C'),
            data: [b'H', b'W'].map(|axis| extent(&data_layout, data, axis)),
            out_channels: extent(&kernel_layout, kernel, b'O'),
            out: [b'H', b'W'].map(|axis| extent(&out_layout, out, axis)),
            taps: [b'H', b'W'].map(|axis| extent(&kernel_layout, kernel, axis)),
            strides: op.strides,
            before: [top, left],
            dilation: op.dilation,
            groups: op.groups,
            lanes: args.lanes_of(args.inputs[0].dtype),
            registers: args.registers,
            data_layout,
            kernel_layout,
            out_layout,
        })
    }

    fn method(&self) -> Method {
        let kernel = &self.kernel_layout;
        let depth = self.channels / self.groups;
        let outputs = self.out_channels / self.groups;
        let data_block = self.data_layout.block(b'C');
        let has_plain_taps = kernel.axes() == b"OIHW";
        match kernel.blocks() {
            &[(b'I', 1), (b'O', o)]
                if has_plain_taps && depth == 1 && outputs == 1 && data_block == Some(o) =>
            {
                Method::Depthwise
            }
            &[(b'I', i), (b'O', o)]
                if has_plain_taps
                    && depth % i == 0
                    && outputs % o == 0
                    && data_block == Some(i) =>
            {
                Method::Blocked
            }
            [] if has_plain_taps
                && self.data_layout.text() == "NCHW"
                && self.out_layout.text() == "NCHW"
                && self.strides[1] == 1 =>
            {
                Method::Rows
            }
            _ => Method::Direct,
        }
    }

    /// How far the windows reach along spatial axis `axis`, from the first padded element on.
    pub(super) fn reach(&self, axis: usize) -> i64 {
        (self.out[axis] - 1) * self.strides[axis] + (self.taps[axis] - 1) * self.dilation[axis] + 1
    }

    /// Number of channels that an output channel is summed over.
    pub(super) fn depth(&self) -> i64 {
        self.channels / self.groups
    }

    /// Whether vectors of channel blocks of `size` are contiguous in the result.
    pub(super) fn writes_channels(&self, size: i64) -> bool {
        match (self.out_layout.blocks(), self.out_layout.axes()) {
            (&[.., (b'C', block)], _) => block == size,
            ([], [.., b'C']) => true,
            _ => false,
        }
    }
}
