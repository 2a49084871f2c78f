//! How windows move, and what becomes of their elements.

use tenon_plugin_api::op::Layout;

use crate::program::fixed::vector_chunk;

/// What becomes of the elements of a window.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Method {
    /// The largest.
    Max,
    /// The mean; of all places of the padded data, or of the elements alone.
    Mean { counts_padding: bool },
}

/// How the windows move: rows and columns.
pub(crate) struct Windows<'a> {
    pub(crate) method: Method,
    pub(crate) layout: &'a Layout,
    pub(crate) size: [i64; 2],
    pub(crate) strides: [i64; 2],
    /// Top, left, bottom, right.
    pub(crate) padding: [i64; 4],
    pub(crate) dilation: [i64; 2],
}

/// Channels that lie side by side in a tensor of layout `layout`: a block, or some where channels are the last axis, or one.
pub(crate) fn channel_block(layout: &Layout, channels: i64, lanes: i64) -> i64 {
    match (layout.block(b'C'), layout.axes()) {
        (Some(block), _) => block,
        (None, [.., b'C']) if layout.blocks().is_empty() => vector_chunk(channels, lanes),
        _ => 1,
    }
}
