//! The programs of a convolution: [`plain`], for any extents, and where the extents are known four, from the best to the most
//! general:
//!
//! * [`blocked`]: channels in blocks, `NCHW16c` by `OIHW16i16o`. A tile of pixels by output channels is summed in registers; the
//!   weights are read as vectors.
//! * [`depthwise`]: one filter for each channel, `NCHW16c` by `OIHW1i16o`, vectors of channels.
//! * [`rows`]: `NCHW` by `OIHW`, stride 1 along the rows: vectors of pixels.
//! * [`direct`]: everything else, one element after the other.
//!
//! Each of these sums into a local buffer and writes an element of the result once, in one statement. Where the window reaches over
//! the edge, the data is copied into a buffer with a border of zeros first, so that the inner loops have no conditions.

mod blocked;
mod depthwise;
mod direct;
mod fixed;
mod padding;
mod pixel_tile;
mod plain;
mod rows;

pub(super) use fixed::fixed;
pub(super) use plain::plain;
