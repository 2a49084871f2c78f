//! How large convolutions are, and which blocks of channels fit them.

use tenon_plugin_api::prelude::*;

use super::Alter;
use crate::convert_to_dots::rounded_up;
use crate::panels::Panels;

/// The channels of a convolution, and what its vectors may be of.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) channels: i64,
    pub(super) outputs: i64,
    pub(super) groups: i64,
    /// Input channels of a group.
    pub(super) per_group: i64,
    /// Pixels of an image of the data, where somebody knows.
    pixels: Option<i64>,
    /// Whether each pixel is computed of that pixel alone.
    is_of_pixels: bool,
    /// The blocks that the data is in already.
    at_hand: Option<i64>,
}

impl Sizes {
    /// Those of a convolution in plain layouts.
    pub(super) fn of(alter: &mut Alter<'_>, [x, weight]: [Expr; 2], attrs: Attrs) -> Option<Self> {
        let groups = alter.body.terms().attrs(attrs).int("groups").unwrap_or(1);
        let (input, kernel) = (alter.shape(x)?, alter.shape(weight)?);
        let at_hand = alter.blocked_of(x).map(|blocked| blocked.block);
        let one = alter.rw.cx().dim(1);
        let is_of_pixels =
            kernel.iter().skip(2).all(|&taps| taps == one) && is_in_place(alter, attrs);
        let (&[_, channels, ref image @ ..], &[outputs, per_group, ..]) =
            (input.as_slice(), kernel.as_slice())
        else {
            return None;
        };
        let known = |dim| alter.body.terms().dim_value(dim);
        let per_group = known(per_group)?;
        Some(Self {
            // A kernel says how many channels there are where the data do not.
            channels: known(channels).unwrap_or(groups * per_group),
            outputs: known(outputs)?,
            groups,
            per_group,
            pixels: image.iter().map(|&dim| known(dim)).product(),
            is_of_pixels,
            at_hand,
        })
    }

    /// Whether each channel has filters of its own, and more than one.
    pub(super) fn has_filters(self) -> bool {
        self.groups > 1
            && self.groups == self.channels
            && self.per_group == 1
            && self.outputs > self.channels
    }

    fn is_depthwise(self) -> bool {
        self.groups == self.channels && self.outputs == self.channels && self.per_group == 1
    }

    /// The blocks of data and result.
    pub(super) fn blocks(self, panels: Panels) -> Option<[i64; 2]> {
        let Self { channels, outputs, groups, per_group, at_hand, .. } = self;
        // Several groups in a block: vectors are as short as groups are, but data stays in the blocks that it is in.
        let is_of_groups = |&block: &i64| {
            let is_part = (1..block).contains(&per_group) && block % per_group == 0;
            groups > 1 && outputs == channels && is_part
        };
        let is_open_filter = self.is_depthwise() && self.pixels.is_none();
        let of_data = at_hand.or_else(|| panels.block_of(channels));
        if let Some(block) = of_data.or(is_open_filter.then_some(channels)).filter(is_of_groups) {
            return Some([block; 2]);
        }
        // One block of all channels of a group, unless vectors are of pixels otherwise, which is as good for one tap.
        let is_of_all = !(self.is_of_pixels && self.pixels.is_some());
        let is_one = groups == 1 && is_of_all;
        let input_block = at_hand
            .filter(|block| per_group % block == 0)
            .or_else(|| panels.block_of(per_group))
            .or_else(|| {
                (is_of_all || groups == 1 && channels < panels.lanes).then_some(per_group)
            })?;
        let is_wide =
            |&block: &i64| !is_one || 2 * block >= panels.lanes || outputs <= panels.lanes;
        let output_block = panels.block_of(outputs / groups).filter(is_wide);
        let all = is_of_all.then_some(outputs / groups);
        Some([input_block, output_block.or(all)?])
    }

    /// Whether pixels side by side fill vectors better than channels of these blocks, by half at least: leaving blocks has its price.
    pub(super) fn is_fuller(self, [inner, output_block]: [i64; 2], lanes: i64) -> bool {
        if self.is_depthwise() || !self.is_of_pixels {
            return false;
        }
        match self.pixels {
            // Vectors of pixels of which nobody knows how many there are end anywhere.
            None => 2 * output_block < lanes,
            Some(pixels) => {
                2 * pixels * lanes >= 3 * inner.min(output_block) * rounded_up(pixels, lanes)
            }
        }
    }
}

/// Whether a convolution goes in steps of one, over data without padding.
fn is_in_place(alter: &Alter<'_>, attrs: Attrs) -> bool {
    let read = alter.body.terms().attrs(attrs);
    [("strides", 1), ("padding", 0)]
        .iter()
        .all(|&(key, plain)| read.ints(key).is_none_or(|all| all.iter().all(|&each| each == plain)))
}
