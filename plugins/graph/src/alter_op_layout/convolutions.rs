//! Convolutions in blocks of channels.

use tenon_plugin_api::prelude::*;

use super::{Alter, Blocked, Images};
use crate::convert_to_dots::rounded_up;
use crate::convert_to_short_dots::has_fast_pairs;

/// Input channels whose bytes an instruction multiplies and adds for each output channel.
const QUAD: i64 = 4;
/// Those of bf16.
const PAIR: i64 = 2;

/// The largest share of a convolution's steps that meet data where those that meet lines of zeros are left out: tiles have to be of one line.
const MOST_INSIDE: f64 = 0.92;

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
        let groups = read.int("groups").unwrap_or(1);
        let input = self.shape(x)?;
        let kernel = self.shape(weight)?;
        let (&[_, channels, ..], &[outputs, per_group, ..]) = (input.as_slice(), kernel.as_slice())
        else {
            return None;
        };
        let known = |dim| self.body.terms().dim_value(dim);
        let (outputs, per_group) = (known(outputs)?, known(per_group)?);
        // A kernel says how many channels there are where the data do not.
        let channels = known(channels).unwrap_or(groups * per_group);
        let is_open = input[2..].iter().any(|&dim| known(dim).is_none());
        let at_hand = self.blocked_of(x).map(|blocked| blocked.block);
        if groups > 1 && groups == channels && per_group == 1 && outputs > channels {
            return self.of_filters(images, x, weight, attrs, [channels, outputs]);
        }
        let is_depthwise = groups == channels && outputs == channels && per_group == 1;
        let is_of_pixels = self.is_of_pixels(weight, attrs);
        let sizes = [channels, outputs, groups, per_group];
        let [input_block, output_block] =
            self.blocks_of(sizes, at_hand, [is_of_pixels && !is_open, is_depthwise && is_open])?;
        let inner = input_block.min(per_group);
        let (dtype, _) = self.rw.tensor(x)?;
        let is_of_pairs = dtype == DType::BF16
            && inner % PAIR == 0
            && (self.panels.lanes / 2..=self.panels.lanes).contains(&output_block)
            && has_fast_pairs(self.cx);
        if is_of_pairs {
            let kernel_layout = format!("{}{output_block}o{PAIR}i", images.plain_kernel());
            let blocks = [input_block, output_block];
            return self.convolution(
                images.convolution(),
                &[x, weight],
                attrs,
                blocks,
                kernel_layout,
            );
        }
        if !is_depthwise && is_of_pixels && self.is_fuller(&input, [inner, output_block]) {
            return None;
        }
        let blocks = [input_block, output_block];
        let panel = if groups == 1 { output_block.min(self.panels.lanes) } else { output_block };
        let kernel_layout = format!("{}{inner}i{panel}o", images.plain_kernel());
        self.convolution(images.convolution(), &[x, weight], attrs, blocks, kernel_layout)
    }

    /// A convolution with several filters for each channel, as one with a filter for each: of data that has each channel as often, so that
    /// a vector of results is of a vector of data.
    fn of_filters(
        &mut self,
        images: Images,
        x: Expr,
        weight: Expr,
        attrs: Attrs,
        [channels, outputs]: [i64; 2],
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

    /// The blocks of data and result of a convolution of so many channels to others, in groups, of so many in each.
    fn blocks_of(
        &self,
        [channels, outputs, groups, per_group]: [i64; 4],
        at_hand: Option<i64>,
        [has_vectors, is_open]: [bool; 2],
    ) -> Option<[i64; 2]> {
        // Several groups in a block: vectors are as short as groups are, but data stays in the blocks that it is in.
        let is_of_groups = |&block: &i64| {
            let is_part = (1..block).contains(&per_group) && block % per_group == 0;
            groups > 1 && outputs == channels && is_part
        };
        let of_data = at_hand.or_else(|| self.panels.block_of(channels));
        if let Some(block) = of_data.or(is_open.then_some(channels)).filter(is_of_groups) {
            return Some([block; 2]);
        }
        // Where vectors are of pixels otherwise, which is as good for one tap, one block may be of all channels.
        let lanes = self.panels.lanes;
        let is_one = groups == 1 && !has_vectors;
        let input_block = at_hand
            .filter(|block| per_group % block == 0)
            .or_else(|| self.panels.block_of(per_group))
            .or_else(|| (is_one || groups == 1 && channels < lanes).then_some(channels))?;
        let is_wide = |&block: &i64| !is_one || 2 * block >= lanes || outputs <= lanes;
        let output_block = self.panels.block_of(outputs / groups).filter(is_wide);
        let all = (is_one && outputs > lanes).then_some(outputs);
        Some([input_block, output_block.or(all)?])
    }

    /// Blocks a convolution of bytes, whose kernels lie by quads of input channels.
    pub(super) fn bytes(
        &mut self,
        x: Expr,
        weight: Expr,
        beyond: Expr,
        attrs: Attrs,
    ) -> Option<Blocked> {
        let read = self.body.terms().attrs(attrs);
        if read.str("data_layout").is_some() || read.str("kernel_layout").is_some() {
            return None;
        }
        let &[outputs, per_group, _, _] = self.shape(weight)?.as_slice() else { return None };
        let [outputs, per_group] = [outputs, per_group].map(|dim| self.body.terms().dim_value(dim));
        let (groups, per_group) = (read.int("groups").unwrap_or(1), per_group?);
        let is_of_quads = |block: &i64| block % QUAD == 0 && per_group % block == 0;
        let at_hand = self.blocked_of(x).map(|blocked| blocked.block).filter(is_of_quads);
        let input_block =
            at_hand.or_else(|| self.panels.block_of(per_group)).filter(is_of_quads)?;
        let output_block = self.panels.block_of(outputs? / groups)?;
        let kernel_layout = format!("OIHW{output_block}o{QUAD}i");
        let blocks = [input_block, output_block];
        let args = [x, weight, beyond];
        self.convolution("nn.byte_conv2d", &args, attrs, blocks, kernel_layout)
    }

    /// Whether pixels side by side fill vectors better than so many channels of a block, by half at least: leaving blocks has its price.
    fn is_fuller(&self, shape: &[Dim], [inner, output_block]: [i64; 2]) -> bool {
        let (lanes, block) = (self.panels.lanes, inner.min(output_block));
        let known = |dim: &Dim| self.body.terms().dim_value(*dim);
        let Some(pixels) = shape[2..].iter().map(known).product::<Option<i64>>() else {
            // Vectors of pixels of which nobody knows how many there are end anywhere.
            return 2 * output_block < lanes;
        };
        2 * pixels * lanes >= 3 * block * rounded_up(pixels, lanes)
    }

    /// Whether a convolution computes each pixel of that pixel alone.
    fn is_of_pixels(&self, weight: Expr, attrs: Attrs) -> bool {
        let read = self.body.terms().attrs(attrs);
        let one = self.rw.cx().dim(1);
        let has_one_tap = self.shape(weight).is_some_and(|shape| shape[2..] == [one, one]);
        let is = |key: &str, plain: i64| {
            read.ints(key).is_none_or(|all| all.iter().all(|&each| each == plain))
        };
        has_one_tap && is("strides", 1) && is("padding", 0)
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

    /// Whether a convolution of images of these extents adds so many lines of zeros that it is worth asking where they are.
    fn adds_zeros(&self, extents: &[Dim], weight: Expr, attrs: Attrs) -> bool {
        let read = self.body.terms().attrs(attrs);
        let ints = |key: &str, plain: i64| read.ints(key).unwrap_or(vec![plain; 2 * extents.len()]);
        let (widths, strides) = (ints("padding", 0), ints("strides", 1));
        let (dilation, last) = (ints("dilation", 1), extents.len() - 1);
        let Some(kernel) = self.shape(weight) else { return false };
        let known = |dim| self.body.terms().dim_value(dim);
        let share = |axis: usize| {
            let (extent, taps) = (known(extents[axis])?, known(kernel[2 + axis])?);
            let (before, stride, apart) = (widths[axis], strides[axis], dilation[axis]);
            let padded = extent + before + widths[axis + extents.len()];
            let steps = (padded - (taps - 1) * apart - 1) / stride + 1;
            let places = (0..steps)
                .flat_map(|step| (0..taps).map(move |tap| step * stride + tap * apart - before));
            let inside = places.filter(|place| (0..extent).contains(place)).count();
            Some(inside as f64 / (steps * taps).max(1) as f64)
        };
        let inside = (0..last).map(share).product::<Option<f64>>();
        inside.is_some_and(|inside| inside <= MOST_INSIDE)
    }

    /// Whether an expression is a constant of finite elements of f32.
    fn is_finite(&mut self, expr: Expr) -> bool {
        let constant = self.rw.definition(expr);
        let View::Constant(constant) = self.rw.view(constant) else { return false };
        let is_f32 =
            self.rw.terms().tensor(constant.ty).is_some_and(|(dtype, _)| dtype == DType::F32);
        let number = |bytes: &[u8]| bytes.try_into().map(f32::from_le_bytes);
        is_f32
            && constant.bytes.chunks_exact(4).all(|bytes| number(bytes).is_ok_and(f32::is_finite))
    }
}
