//! Convolution.
//!
//! Four programs, from the best to the most general:
//!
//! * [`blocked`]: channels in blocks, `NCHW16c` by `OIHW16i16o`. A tile of pixels by output channels is
//!   summed in registers; the weights are read as vectors.
//! * [`depthwise`]: one filter for each channel, `NCHW16c` by `OIHW1i16o`, vectors of channels.
//! * [`rows`]: `NCHW` by `OIHW`, stride 1 along the rows: vectors of pixels.
//! * [`direct`]: everything else, one element after the other.
//!
//! Each sums into a local buffer and writes an element of the result once, in one statement. Where the
//! window reaches over the edge, the data is copied into a buffer with a border of zeros first, so that
//! the inner loops have no conditions.

mod blocked;
mod depthwise;
mod direct;
mod padding;
mod pixel_tile;
mod rows;

use crate::ops::{Layout, LegalizeCx, OpError, OpPattern};

use super::kernel::{Buffer, Kernel};
use super::layout_index::extent;
use super::program::{check_count, program};

/// `nn.conv2d`.
pub(crate) fn conv2d(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    check_count(cx, 2)?;
    let conv = Conv::of(cx)?;
    program(cx, OpPattern::OutFusable, |kernel, inputs, outputs| {
        let args = Args { kernel, data: &inputs[0], weight: &inputs[1], out: &outputs[0] };
        Ok(match conv.method() {
            Method::Blocked => blocked::blocked(args, &conv),
            Method::Depthwise => depthwise::depthwise(args, &conv),
            Method::Rows => rows::rows(args, &conv),
            Method::Direct => direct::direct(args, &conv),
        })
    })
}

/// The buffers of a convolution.
struct Args<'a, 'k> {
    kernel: &'k Kernel,
    data: &'a Buffer<'k>,
    weight: &'a Buffer<'k>,
    out: &'a Buffer<'k>,
}

/// A convolution: its layouts, extents and how the window moves.
struct Conv {
    data_layout: Layout,
    kernel_layout: Layout,
    out_layout: Layout,
    batch: i64,
    channels: i64,
    data: [i64; 2],
    out_channels: i64,
    out: [i64; 2],
    taps: [i64; 2],
    strides: [i64; 2],
    before: [i64; 2],
    dilation: [i64; 2],
    groups: i64,
    /// Lanes of a vector of the dtype that is summed in.
    lanes: i64,
    registers: i64,
}

enum Method {
    Blocked,
    Depthwise,
    Rows,
    Direct,
}

impl Conv {
    fn of(cx: &LegalizeCx<'_>) -> Result<Self, OpError> {
        let data_layout = super::layout_attr(cx, "data_layout")?;
        let kernel_layout = super::layout_attr(cx, "kernel_layout")?;
        let out_layout = match cx.attrs.str("out_layout")? {
            "" => data_layout.clone(),
            _ => super::layout_attr(cx, "out_layout")?,
        };
        let inputs = cx.inputs();
        let (dtype, data) = cx.static_tensor(inputs[0])?;
        let (_, kernel) = cx.static_tensor(inputs[1])?;
        let (_, out) = cx.static_tensor(cx.out)?;
        let [top, left, _, _] = cx.attrs.int_array("padding")?;
        Ok(Self {
            batch: extent(&data_layout, &data, b'N'),
            channels: extent(&data_layout, &data, b'C'),
            data: [b'H', b'W'].map(|axis| extent(&data_layout, &data, axis)),
            out_channels: extent(&kernel_layout, &kernel, b'O'),
            out: [b'H', b'W'].map(|axis| extent(&out_layout, &out, axis)),
            taps: [b'H', b'W'].map(|axis| extent(&kernel_layout, &kernel, axis)),
            strides: cx.attrs.int_array("strides")?,
            before: [top, left],
            dilation: cx.attrs.int_array("dilation")?,
            groups: cx.attrs.int("groups")?,
            lanes: cx.lanes_of(dtype),
            registers: cx.vectors.registers,
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
    fn reach(&self, axis: usize) -> i64 {
        (self.out[axis] - 1) * self.strides[axis] + (self.taps[axis] - 1) * self.dilation[axis] + 1
    }

    /// Number of channels that an output channel is summed over.
    fn depth(&self) -> i64 {
        self.channels / self.groups
    }

    /// Whether vectors of channel blocks of `size` are contiguous in the result.
    fn writes_channels(&self, size: i64) -> bool {
        match (self.out_layout.blocks(), self.out_layout.axes()) {
            (&[.., (b'C', block)], _) => block == size,
            ([], [.., b'C']) => true,
            _ => false,
        }
    }
}
