//! Images over one axis, over two and over three, in plain layouts and in those whose channels lie in blocks.

use tenon_plugin_api::prelude::*;

/// A value in the layout `NCHW{block}c`, or `NCDHW{block}c`.
#[derive(Clone, Copy)]
pub(super) struct Blocked {
    pub(super) value: Expr,
    pub(super) block: i64,
    pub(super) images: Images,
}

impl Blocked {
    pub(super) fn is_laid_out_as(self, other: Self) -> bool {
        (self.block, self.images) == (other.block, other.images)
    }
}

/// Over how many axes images go.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Images {
    /// One, in blocks as images of one row.
    Line,
    Flat,
    Deep,
}

impl Images {
    /// Those of data of so many axes.
    pub(super) fn of_rank(rank: usize) -> Option<Self> {
        [Self::Line, Self::Flat, Self::Deep].into_iter().find(|images| images.rank() == rank)
    }

    /// The axes of data.
    pub(super) fn rank(self) -> usize {
        match self {
            Self::Line => 3,
            Self::Flat => 4,
            Self::Deep => 5,
        }
    }

    /// What data of these dimensions have as images of rows, which layouts are of.
    pub(super) fn in_rows<T: Clone>(self, dims: &[T], one: T) -> Vec<T> {
        let mut all = dims.to_vec();
        if self == Self::Line {
            all.insert(2, one);
        }
        all
    }

    pub(super) fn plain(self) -> &'static str {
        match self {
            Self::Line | Self::Flat => "NCHW",
            Self::Deep => "NCDHW",
        }
    }

    pub(super) fn channels_last(self) -> &'static str {
        match self {
            Self::Line | Self::Flat => "NHWC",
            Self::Deep => "NDHWC",
        }
    }

    pub(super) fn plain_kernel(self) -> &'static str {
        match self {
            Self::Line | Self::Flat => "OIHW",
            Self::Deep => "OIDHW",
        }
    }

    pub(super) fn blocked(self, block: i64) -> String {
        format!("{}{block}c", self.plain())
    }

    /// The operator that convolves them.
    pub(super) fn convolution(self) -> &'static str {
        match self {
            Self::Line | Self::Flat => "nn.conv2d",
            Self::Deep => "nn.conv3d",
        }
    }
}
