//! Convolutions in blocks of channels.

use tenon_plugin_api::prelude::*;

use super::sizes::Sizes;
use super::{Alter, Blocked, Images};
use crate::convert_to_dots::rounded_up;
use crate::convert_to_short_dots::has_fast_pairs;

/// Input channels whose bytes an instruction multiplies and adds for each output channel.
const QUAD: i64 = 4;
/// Those of bf16.
const PAIR: i64 = 2;

impl Alter<'_> {
    /// Blocks a convolution whose channels divide into blocks; `None` leaves it as it is.
    pub(super) fn plain(
        &mut self,
        images: Images,
        x: Expr,
        weight: Expr,
        attrs: Attrs,
    ) -> Option<Blocked> {
        let read = self.body.terms().attrs(attrs);
        let is_plain = |key: &str, plain: &str| read.str(key).is_none_or(|text| text == plain);
        let is_plain_layout = is_plain("data_layout", images.plain())
            && is_plain("kernel_layout", images.plain_kernel())
            && is_plain("out_layout", "");
        if !is_plain_layout || !self.is_known(weight) {
            return None;
        }
        let sizes = Sizes::of(self, [x, weight], attrs)?;
        if sizes.has_filters() {
            return self.of_filters(images, [x, weight], attrs, sizes);
        }
        let blocks = sizes.blocks(self.panels)?;
        let [input_block, output_block] = blocks;
        let (inner, lanes) = (input_block.min(sizes.per_group), self.panels.lanes);
        let (dtype, _) = self.rw.tensor(x)?;
        let is_of_pairs = dtype == DType::BF16
            && inner % PAIR == 0
            && (lanes / 2..=lanes).contains(&output_block)
            && has_fast_pairs(self.cx);
        let panel = if sizes.groups == 1 { output_block.min(lanes) } else { output_block };
        let plain = images.plain_kernel();
        let kernel_layout = match is_of_pairs {
            true => format!("{plain}{output_block}o{PAIR}i"),
            false if sizes.is_fuller([inner, output_block], lanes) => return None,
            false => format!("{plain}{inner}i{panel}o"),
        };
        self.convolution(images.convolution(), &[x, weight], attrs, blocks, kernel_layout)
    }

    /// A convolution with several filters for each channel, as one with a filter for each: of data that has each channel as often, so that
    /// a vector of results is of a vector of data.
    fn of_filters(
        &mut self,
        images: Images,
        [x, weight]: [Expr; 2],
        attrs: Attrs,
        Sizes { channels, outputs, .. }: Sizes,
    ) -> Option<Blocked> {
        let block = self.panels.block_of(outputs)?;
        let x = self.rw.body().resolve(x);
        let (_, mut dims) = self.rw.tensor(x)?;
        dims.insert(2, self.rw.cx().dim(1));
        let apart = self.rw.reshape(x, &dims);
        dims[1..3]
            .copy_from_slice(&[channels, outputs / channels].map(|dim| self.rw.cx().dim(dim)));
        let shape = self.rw.shape(&dims);
        let filled = self.rw.call_op("broadcast_to", &[apart, shape], Attrs::NONE);
        dims.remove(2);
        dims[1] = self.rw.cx().dim(outputs);
        let repeated = self.rw.reshape(filled, &dims);
        let data = self.transform(repeated, images.plain(), &images.blocked(block));
        let kernel_layout = format!("{}1i{block}o", images.plain_kernel());
        let attrs = self.rw.cx().with_attr(attrs, "groups", outputs.into());
        self.of_blocks(images.convolution(), &[data, weight], attrs, [block; 2], kernel_layout)
    }

    /// Blocks a convolution of bytes, whose kernels lie by quads of input channels.
    pub(super) fn bytes(&mut self, op: &str, args: [Expr; 3], attrs: Attrs) -> Option<Blocked> {
        let read = self.body.terms().attrs(attrs);
        if read.str("data_layout").is_some() || read.str("kernel_layout").is_some() {
            return None;
        }
        let [x, weight, _] = args;
        let kernel = self.shape(weight)?;
        let images = Images::of_rank(kernel.len())?;
        let &[outputs, per_group, ..] = kernel.as_slice() else { return None };
        let [outputs, per_group] = [outputs, per_group].map(|dim| self.body.terms().dim_value(dim));
        let (groups, per_group) = (read.int("groups").unwrap_or(1), per_group?);
        let is_of_quads = |block: &i64| block % QUAD == 0 && per_group % block == 0;
        let at_hand = self.blocked_of(x).map(|blocked| blocked.block).filter(is_of_quads);
        let input_block =
            at_hand.or_else(|| self.panels.block_of(per_group)).filter(is_of_quads)?;
        let output_block = self.panels.block_of(outputs? / groups)?;
        let kernel_layout = format!("{}{output_block}o{QUAD}i", images.plain_kernel());
        let blocks = [input_block, output_block];
        self.convolution(op, &args, attrs, blocks, kernel_layout)
    }

    /// Blocks a convolution by Winograd's algorithm, whose kernels lie apart for each point.
    pub(super) fn winograd(&mut self, x: Expr, weight: Expr, attrs: Attrs) -> Option<Blocked> {
        let read = self.body.terms().attrs(attrs);
        if read.str("data_layout").is_some() || read.str("kernel_layout").is_some() {
            return None;
        }
        let &[outputs, inputs, _, _] = self.shape(weight)?.as_slice() else { return None };
        let [outputs, inputs] = [outputs, inputs].map(|dim| self.body.terms().dim_value(dim));
        let at_hand = self.blocked_of(x).map(|blocked| blocked.block);
        let input_block = at_hand.or_else(|| self.panels.block_of(inputs?))?;
        let output_block = self.panels.block_of(outputs?)?;
        let kernel_layout = format!("HWOI{input_block}i{output_block}o");
        let blocks = [input_block, output_block];
        self.convolution("nn.conv2d_winograd", &[x, weight], attrs, blocks, kernel_layout)
    }

    /// A convolution of data that is put into blocks, whose result is in blocks, with a kernel in a layout; of its arguments these are the
    /// first.
    fn convolution(
        &mut self,
        op: &str,
        args: &[Expr],
        attrs: Attrs,
        blocks: [i64; 2],
        kernel_layout: String,
    ) -> Option<Blocked> {
        let images = Images::of_rank(self.shape(args[0])?.len())?;
        let data = match self.blocked_of(args[0]) {
            Some(blocked) if blocked.block == blocks[0] => blocked.value,
            _ => {
                let groups = self.body.terms().attrs(attrs).int("groups").unwrap_or(1);
                let per_group = self.body.terms().dim_value(self.shape(args[1])?[1])?;
                self.put_into_blocks(args[0], images, blocks[0], Some(groups * per_group))
            }
        };
        let args = [&[data], &args[1..]].concat();
        self.of_blocks(op, &args, attrs, blocks, kernel_layout)
    }

    /// The same of data in blocks. Where the result has one of all channels, which fill no whole vectors, the kernel is filled up.
    fn of_blocks(
        &mut self,
        op: &str,
        args: &[Expr],
        attrs: Attrs,
        [input_block, block]: [i64; 2],
        kernel_layout: String,
    ) -> Option<Blocked> {
        let (_, dims) = self.rw.tensor(args[0])?;
        let images = Images::of_rank(dims.len() - 1)?;
        let mut weight = self.rw.body().resolve(args[1]);
        let mut attrs = attrs;
        if self.adds_zeros(&dims[2..dims.len() - 1], args[1], attrs) && self.is_finite(args[1]) {
            attrs = self.rw.cx().with_attr(attrs, "skip_lines", true.into());
        }
        let groups = self.body.terms().attrs(attrs).int("groups").unwrap_or(1);
        if groups == 1 && block > self.panels.lanes {
            let mut widths = vec![0; 2 * images.plain_kernel().len()];
            widths[1] = rounded_up(block, self.panels.lanes) - block;
            weight = self.rw.apply_with("nn.pad", &[weight], &[("pad_width", widths.into())]);
            attrs = self.rw.cx().with_attr(attrs, "channels", block.into());
        }
        let weight = self.transform(weight, images.plain_kernel(), &kernel_layout);
        let others = args[2..].iter().map(|&arg| self.rw.body().resolve(arg));
        let args: Vec<Expr> = [args[0], weight].into_iter().chain(others).collect();
        let cx = self.rw.cx();
        attrs = cx.with_attr(attrs, "data_layout", images.blocked(input_block).into());
        attrs = cx.with_attr(attrs, "kernel_layout", kernel_layout.into());
        if block != input_block {
            attrs = cx.with_attr(attrs, "out_layout", images.blocked(block).into());
        }
        Some(Blocked { value: self.rw.call_op(op, &args, attrs), block, images })
    }
}
