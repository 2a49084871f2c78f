//! Images over two axes and over three, in plain layouts and in those whose channels lie in blocks.

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
    Flat,
    Deep,
}

impl Images {
    /// Those of data of so many axes.
    pub(super) fn of_rank(rank: usize) -> Option<Self> {
        [Self::Flat, Self::Deep].into_iter().find(|images| images.rank() == rank)
    }

    pub(super) fn rank(self) -> usize {
        self.plain().len()
    }

    pub(super) fn plain(self) -> &'static str {
        match self {
            Self::Flat => "NCHW",
            Self::Deep => "NCDHW",
        }
    }

    pub(super) fn channels_last(self) -> &'static str {
        match self {
            Self::Flat => "NHWC",
            Self::Deep => "NDHWC",
        }
    }

    pub(super) fn plain_kernel(self) -> &'static str {
        match self {
            Self::Flat => "OIHW",
            Self::Deep => "OIDHW",
        }
    }

    pub(super) fn blocked(self, block: i64) -> String {
        format!("{}{block}c", self.plain())
    }

    /// The operator that convolves them.
    pub(super) fn convolution(self) -> &'static str {
        match self {
            Self::Flat => "nn.conv2d",
            Self::Deep => "nn.conv3d",
        }
    }
}
