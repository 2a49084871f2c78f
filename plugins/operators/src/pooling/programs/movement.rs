//! How windows move, and what becomes of their elements.

use tenon_plugin_api::op::Layout;

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
    /// Whether the last window may reach over the end of the padded data.
    pub(crate) ceil_mode: bool,
}

impl Windows<'_> {
    /// How many elements each window counts, where that is one number.
    pub(crate) fn count(&self) -> Option<i64> {
        let is_full = match self.method {
            Method::Max => false,
            Method::Mean { counts_padding: true } => !self.ceil_mode,
            Method::Mean { counts_padding: false } => !self.ceil_mode && self.padding == [0; 4],
        };
        is_full.then(|| self.size.iter().product())
    }
}
