//! Gives convolutions the layouts that vector units want, and packs constant weights for them.
//!
//! ```ir
//! %c = nn.conv2d(%x, %w)                %p = layout_transform(%x)   { NCHW → NCHW16c }
//! %d = nn.relu(%c)               =>     %q = layout_transform(%w)   { OIHW → OIHW16i16o }
//! %e = nn.conv2d(%d, %v)                %c = nn.conv2d(%p, %q) { data_layout = "NCHW16c", … }
//!                                       %d = nn.relu(%c)
//!                                       %e = nn.conv2d(%d, …)
//! ```
//!
//! In the layout `NCHW16c` the channels of a block lie side by side, so one vector holds one place of all
//! of them (Liu et al., 2019, "Optimizing CNN Model Inference on CPUs"). Calls that do not care about the
//! order of axes are carried along in the blocked layout, so that data is transformed only where the
//! graph enters and leaves such regions. Each carried call has a transform back behind it, which what is
//! not carried reads; the transforms that nothing reads go with `relax.DeadCodeElimination`.
//!
//! Convolutions over three axes are in the layout `NCDHW16c` likewise. Channels must be known; all other extents may be symbols. Weights must be constants, or computed of constants, as those of
//! Winograd's algorithm are: `relax.FoldConstant` behind it computes them once, in the layout that is wanted, so that none of them is
//! in memory twice. Products with constant right matrices are
//! packed likewise, as `NK16n`, unless they are large, or fill no panel, and something else reads them as they lie: packed ones would be a
//! second copy. A product of one row takes as long as its weights take to be read: its panels are as wide as the tile of sums that
//! stays in registers, `NK128n`, so that memory is read from one end to the other. The last panel may be filled up.

mod channels_last;
mod images;

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

use self::images::{Blocked, Images};
use crate::constants::ReadAsTheyLie;
use crate::convert_to_dots::{padded, rounded_up};
use crate::convert_to_short_dots::has_fast_pairs;
use crate::panels::Panels;

/// Elements from which a second copy of weights costs more than a product that is a third faster gains.
const LARGE: i64 = 1 << 18;
/// Input channels whose bytes an instruction multiplies and adds for each output channel.
const QUAD: i64 = 4;
/// Those of bf16.
const PAIR: i64 = 2;
/// By how much constants may grow where they are folded: as much as weights do by Winograd's algorithm.
const MAX_GROWTH: i64 = 4;

/// Gives convolutions and products the blocked layouts of the target's vector units.
#[pass(
    name = "relax.AlterOpLayout",
    aliases = ["relay._transform.AlterOpLayout"],
    opt_level = 3,
    phase = "optimize",
    after = ["relax.FoldScaleAxis"]
)]
fn alter_op_layout(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    if cx.keeps_floats() {
        return Ok(func);
    }
    let body = func.view();
    let panels = Panels::of_target(cx);
    let mut rw = func.edit();
    let shared = ReadAsTheyLie::of(&mut rw, body, |op, index| {
        matches!(op, "nn.dense" | "matmul") && index == 1
    });
    let known = SideTable::new(body, false);
    let mut alter = Alter { body, cx, panels, shared, rw, known, blocked: HashMap::new() };
    for expr in body.post_order() {
        alter.known[expr] = alter.will_fold(expr);
        alter.call(expr);
    }
    alter.rw.finish()
}

struct Alter<'a> {
    body: BodyView<'a>,
    cx: &'a PassContext,
    panels: Panels,
    /// Constants that are read otherwise than as weights of products.
    shared: ReadAsTheyLie,
    rw: Rewriter,
    /// Which expressions of the function are constants, or will be when constants are folded.
    known: SideTable<bool>,
    /// For a call of the function, its value in a blocked layout.
    blocked: HashMap<Expr, Blocked>,
}

impl Alter<'_> {
    fn call(&mut self, expr: Expr) {
        let View::Call { callee, args, attrs } = self.body.view(expr) else { return };
        let Some(op) = self.body.op_name(callee) else { return };
        let args = args.to_vec();
        let blocked = match (op, args.as_slice()) {
            ("nn.conv2d", &[x, weight]) => self.plain(Images::Flat, x, weight, attrs),
            ("nn.conv3d", &[x, weight]) => self.plain(Images::Deep, x, weight, attrs),
            ("nn.byte_conv2d", &[x, weight, beyond]) => self.bytes(x, weight, beyond, attrs),
            ("nn.conv2d_winograd", &[x, weight]) => self.winograd(x, weight, attrs),
            ("nn.dense" | "matmul", &[x, weight]) => {
                let packed = match op {
                    "matmul" => self.matmul(x, weight, attrs),
                    _ => self.dense(x, weight, attrs),
                };
                if let Some(packed) = packed {
                    self.rw.replace(expr, packed);
                }
                return;
            }
            ("transpose", &[x]) => {
                if let Some(transposed) = self.transposed(expr, x, attrs) {
                    self.rw.replace(expr, transposed);
                }
                return;
            }
            (
                "nn.max_pool2d"
                | "nn.avg_pool2d"
                | "nn.global_avg_pool2d"
                | "nn.global_max_pool2d"
                | "nn.lrn",
                &[x],
            ) => self.with_layout_attr(op, x, attrs),
            ("image.resize1d", &[x, size]) => self.resized(x, size, attrs),
            ("reshape" | "squeeze" | "expand_dims", &[x, ..]) => self.of_one_row(expr, x),
            ("concatenate", &[fields]) => self.concatenate(fields, attrs),
            ("mean" | "sum" | "max" | "min", &[x]) => self.over_pixels(op, x, attrs),
            _ => self.elementwise(expr, op, &args, attrs),
        };
        if let Some(blocked) = blocked {
            self.blocked.insert(expr, blocked);
            let back = self.plain_again(expr, blocked);
            self.rw.replace(expr, back);
        }
    }

    /// Whether an expression is a constant, or computed of constants alone and not much larger than these.
    fn will_fold(&mut self, expr: Expr) -> bool {
        let (callee, args) = match self.body.view(expr) {
            View::Constant(_) => return true,
            View::Call { callee, args, .. } => (callee, args.to_vec()),
            _ => return false,
        };
        let is_pure = self.body.op_symbol(callee).is_some_and(|op| self.cx.is_pure_op(op));
        if args.is_empty() || !is_pure || !args.iter().all(|&arg| self.is_known(arg)) {
            return false;
        }
        let elements = |expr| {
            let (_, shape) = self.body.terms().static_tensor(self.body.ty(expr)?)?;
            Some(shape.iter().product::<i64>())
        };
        let read: Option<i64> = args.into_iter().map(elements).sum();
        elements(expr).zip(read).is_some_and(|(made, read)| made <= MAX_GROWTH * read)
    }

    fn is_known(&mut self, expr: Expr) -> bool {
        let origin = self.origin(expr);
        self.known[origin]
    }

    /// Blocks a convolution whose channels divide into blocks; `None` leaves it as it is.
    fn plain(&mut self, images: Images, x: Expr, weight: Expr, attrs: Attrs) -> Option<Blocked> {
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
        let (channels, outputs, per_group) = (known(channels)?, known(outputs)?, known(per_group)?);
        let at_hand = self.blocked_of(x).map(|blocked| blocked.block);
        let is_depthwise = groups == channels && outputs == channels && per_group == 1;
        let [input_block, output_block] =
            self.blocks_of([channels, outputs, groups, per_group], at_hand)?;
        let inner = input_block.min(per_group);
        let block = inner.min(output_block);
        let (dtype, _) = self.rw.tensor(x)?;
        let is_of_pairs = dtype == DType::BF16
            && inner % PAIR == 0
            && 2 * output_block >= self.panels.lanes
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
        if !is_depthwise && self.is_of_pixels(weight, attrs) && self.is_fuller(&input, block) {
            return None;
        }
        let kernel_layout = format!("{}{inner}i{output_block}o", images.plain_kernel());
        let blocks = [input_block, output_block];
        self.convolution(images.convolution(), &[x, weight], attrs, blocks, kernel_layout)
    }

    /// The blocks of data and result of a convolution of so many channels to others, in groups, of so many in each.
    fn blocks_of(
        &self,
        [channels, outputs, groups, per_group]: [i64; 4],
        at_hand: Option<i64>,
    ) -> Option<[i64; 2]> {
        // Several groups in a block: vectors are as short as groups are, but data stays in the blocks that it is in.
        let is_of_groups = |&block: &i64| {
            let is_part = (1..block).contains(&per_group) && block % per_group == 0;
            groups > 1 && outputs == channels && is_part
        };
        if let Some(block) = at_hand.or_else(|| self.panels.block_of(channels)).filter(is_of_groups)
        {
            return Some([block; 2]);
        }
        let input_block = at_hand
            .filter(|block| per_group % block == 0)
            .or_else(|| self.panels.block_of(per_group))
            .or_else(|| (groups == 1 && channels < self.panels.lanes).then_some(channels))?;
        Some([input_block, self.panels.block_of(outputs / groups)?])
    }

    /// Blocks a convolution of bytes, whose kernels lie by quads of input channels.
    fn bytes(&mut self, x: Expr, weight: Expr, beyond: Expr, attrs: Attrs) -> Option<Blocked> {
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
    fn is_fuller(&self, shape: &[Dim], block: i64) -> bool {
        let lanes = self.panels.lanes;
        let known = |dim: &Dim| self.body.terms().dim_value(*dim);
        let Some(pixels) = shape[2..].iter().map(known).product::<Option<i64>>() else {
            return 2 * block < lanes;
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
    fn winograd(&mut self, x: Expr, weight: Expr, attrs: Attrs) -> Option<Blocked> {
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

    /// A convolution of data in blocks, whose result is in blocks, with a kernel in a layout; of its arguments these are the first.
    fn convolution(
        &mut self,
        op: &str,
        args: &[Expr],
        attrs: Attrs,
        [input_block, block]: [i64; 2],
        kernel_layout: String,
    ) -> Option<Blocked> {
        let images = Images::of_rank(self.shape(args[0])?.len())?;
        let data = self.as_blocked(args[0], images, input_block);
        let weight = self.transform_of(args[1], images.plain_kernel(), &kernel_layout);
        let others = args[2..].iter().map(|&arg| self.rw.body().resolve(arg));
        let args: Vec<Expr> = [data, weight].into_iter().chain(others).collect();
        let cx = self.rw.cx();
        let mut attrs = cx.with_attr(attrs, "data_layout", images.blocked(input_block).into());
        attrs = cx.with_attr(attrs, "kernel_layout", kernel_layout.into());
        if block != input_block {
            attrs = cx.with_attr(attrs, "out_layout", images.blocked(block).into());
        }
        Some(Blocked { value: self.rw.call_op(op, &args, attrs), block, images })
    }

    /// Packs the weights of a product: `[N, K]` becomes `[N/16, K, 16]`.
    fn dense(&mut self, x: Expr, weight: Expr, attrs: Attrs) -> Option<Expr> {
        let layout = self.body.terms().attrs(attrs).str("weight_layout").unwrap_or("NK");
        if layout != "NK" {
            return None;
        }
        self.packed(x, weight, "NK", attrs)
    }

    /// Packs the right matrix of a product, `[K, N]` or `[N, K]`, in the same way.
    fn matmul(&mut self, x: Expr, weight: Expr, attrs: Attrs) -> Option<Expr> {
        let read = self.body.terms().attrs(attrs);
        if read.bool("transpose_a") == Some(true) {
            return None;
        }
        let layout = if read.bool("transpose_b") == Some(true) { "NK" } else { "KN" };
        let cx = self.rw.cx();
        let attrs = cx.without_attr(cx.without_attr(attrs, "transpose_a"), "transpose_b");
        self.packed(x, weight, layout, attrs)
    }

    /// The product of rows with a constant matrix of a layout, packed.
    fn packed(&mut self, x: Expr, weight: Expr, layout: &str, attrs: Attrs) -> Option<Expr> {
        let (_, shape) = self.body.terms().static_tensor(self.body.ty(weight)?)?;
        if shape.len() != 2 || !self.is_known(weight) {
            return None;
        }
        let axis = layout.find('N')?;
        let columns = shape[axis];
        let block = self.panels.of(&self.rw, x, columns)?;
        let beyond = rounded_up(columns, block) - columns;
        let is_large = shape.iter().product::<i64>() >= LARGE;
        if (is_large || beyond > 0) && self.shared.contains(&mut self.rw, weight) {
            return None;
        }
        let packed = format!("NK{block}n");
        let mut weight = self.rw.body().resolve(weight);
        let mut attrs = self.rw.cx().with_attr(attrs, "weight_layout", packed.as_str().into());
        if beyond > 0 {
            let filled = if axis == 0 { [beyond, 0] } else { [0, beyond] };
            weight = padded(&mut self.rw, weight, filled);
            attrs = self.rw.cx().with_attr(attrs, "units", columns.into());
        }
        let weight = self.transform(weight, layout, &packed);
        let x = self.rw.body().resolve(x);
        Some(self.rw.call_op("nn.dense", &[x, weight], attrs))
    }

    /// Carries a call along that says its layout in an attribute.
    fn with_layout_attr(&mut self, op: &str, x: Expr, attrs: Attrs) -> Option<Blocked> {
        let read = self.body.terms().attrs(attrs);
        if read.str("layout").is_some_and(|layout| layout != "NCHW")
            || read.int("axis").is_some_and(|axis| axis != 1)
        {
            return None;
        }
        let Blocked { value, block, images } = self.blocked_of(x)?;
        if images == Images::Line {
            return None;
        }
        let attrs = self.rw.cx().with_attr(attrs, "layout", images.blocked(block).into());
        Some(Blocked { value: self.rw.call_op(op, &[value], attrs), block, images })
    }

    /// Carries an axis along that is put in front of lines, or taken from there.
    fn of_one_row(&mut self, expr: Expr, x: Expr) -> Option<Blocked> {
        let blocked = self.blocked_of(x)?;
        let (own, shape) = (self.shape(x)?, self.shape(expr)?);
        let other = Images::of_rank(shape.len())?;
        let pair = [blocked.images, other];
        let one = self.rw.cx().dim(1);
        let is_one = blocked.images.in_rows(&own, one) == other.in_rows(&shape, one);
        let is_between =
            pair == [Images::Line, Images::Flat] || pair == [Images::Flat, Images::Line];
        (is_between && is_one).then_some(Blocked { images: other, ..blocked })
    }

    /// Carries a resized axis of pixels along: vectors of channels are moved then, where it would be single elements. Where channels lie
    /// last already, it is put into blocks for that.
    fn resized(&mut self, x: Expr, size: Expr, attrs: Attrs) -> Option<Blocked> {
        let axis = self.body.terms().attrs(attrs).int("axis")?;
        let Blocked { value, block, images } = match self.blocked_of(x) {
            Some(blocked) => blocked,
            None => self.of_channels_last(x)?,
        };
        if !(2..images.rank() as i64).contains(&axis) {
            return None;
        }
        let size = self.rw.body().resolve(size);
        let axis = if images == Images::Line { axis + 1 } else { axis };
        let attrs = self.rw.cx().with_attr(attrs, "axis", axis.into());
        let value = self.rw.call_op("image.resize1d", &[value, size], attrs);
        Some(Blocked { value, block, images })
    }

    /// Carries a concatenation of channels along when its fields are blocked alike, or have their channels last.
    fn concatenate(&mut self, fields: Expr, attrs: Attrs) -> Option<Blocked> {
        let axis = self.body.terms().attrs(attrs).int("axis")?;
        let tuple = self.origin(fields);
        let View::Tuple(fields) = self.body.view(tuple) else { return None };
        let fields: Vec<Expr> = fields.iter().collect();
        let like = fields.iter().find_map(|&field| self.blocked_of(field))?;
        if axis != 1 {
            return None;
        }
        let mut values = Vec::with_capacity(fields.len());
        for field in fields {
            let blocked = match self.blocked_of(field) {
                Some(blocked) => blocked,
                None => self.of_channels_last(field)?,
            };
            blocked.is_laid_out_as(like).then_some(())?;
            values.push(blocked.value);
        }
        let tuple = self.rw.tuple(&values);
        Some(Blocked { value: self.rw.call_op("concatenate", &[tuple], attrs), ..like })
    }

    /// Carries a reduction over all spatial axes along, which leaves one pixel.
    fn over_pixels(&mut self, op: &str, x: Expr, attrs: Attrs) -> Option<Blocked> {
        let read = self.body.terms().attrs(attrs);
        let mut axes = read.ints("axis")?;
        let keeps_axes = read.bool("keepdims") == Some(true);
        let Blocked { value, block, images } = self.blocked_of(x)?;
        let rank = images.rank() as i64;
        axes.iter_mut().for_each(|axis| *axis = axis.rem_euclid(rank));
        axes.sort_unstable();
        if !keeps_axes || !axes.iter().copied().eq(2..rank) {
            return None;
        }
        if images == Images::Line {
            axes.push(rank);
        }
        let attrs = self.rw.cx().with_attr(attrs, "axis", axes.into());
        Some(Blocked { value: self.rw.call_op(op, &[value], attrs), block, images })
    }

    /// Carries an element-wise call along: at least one argument of the whole shape is blocked already, and the others are
    /// single numbers, constants of one number a channel or blocked pixels, or have the whole shape.
    fn elementwise(
        &mut self,
        expr: Expr,
        op: &str,
        args: &[Expr],
        attrs: Attrs,
    ) -> Option<Blocked> {
        if self.cx.op_info(op)?.pattern > OpPattern::Broadcast {
            return None;
        }
        let whole = self.shape(expr)?;
        let of_whole = |each: &mut Self, arg: Expr| {
            each.blocked_of(arg).filter(|_| each.shape(arg).as_ref() == Some(&whole))
        };
        let like @ Blocked { block, images, .. } =
            args.iter().find_map(|&arg| of_whole(self, arg))?;
        // All arguments are looked at before anything is built.
        let forms: Option<Vec<Form>> =
            args.iter().map(|&arg| self.form_of(arg, &whole, like)).collect();
        let values: Vec<Expr> =
            args.iter().zip(forms?).map(|(&arg, form)| self.take_form(arg, form, like)).collect();
        Some(Blocked { value: self.rw.call_op(op, &values, attrs), block, images })
    }

    fn form_of(&mut self, arg: Expr, whole: &[Dim], like: Blocked) -> Option<Form> {
        let (shape, one) = (self.shape(arg)?, self.rw.cx().dim(1));
        let rank = like.images.rank();
        if let Some(blocked) = self.blocked_of(arg).filter(|blocked| blocked.is_laid_out_as(like)) {
            // Axes are repeated as they would be, but for channels, which lie in blocks.
            let is_repeated = |axis: usize| shape[axis] == one && axis != 1;
            let fits = (0..rank).all(|axis| shape[axis] == whole[axis] || is_repeated(axis));
            return fits.then_some(Form::Blocked(blocked.value));
        }
        if shape.len() > rank {
            return None;
        }
        if shape.iter().all(|&extent| extent == one) {
            return Some(Form::Number);
        }
        let full: Vec<Dim> =
            std::iter::repeat_n(one, rank - shape.len()).chain(shape.iter().copied()).collect();
        let is_one = |extent: &Dim| *extent == one;
        let is_channel = full[1] == whole[1] && full[0] == one && full[2..].iter().all(is_one);
        if full == whole || (is_channel && self.is_known(arg)) {
            return Some(Form::Plain(full));
        }
        None
    }

    fn take_form(&mut self, arg: Expr, form: Form, like: Blocked) -> Expr {
        match form {
            Form::Blocked(value) => value,
            Form::Number => {
                let arg = self.rw.body().resolve(arg);
                self.rw.reshape(arg, &[])
            }
            Form::Plain(full) if rank_of(&self.rw, arg) == Some(full.len()) => {
                self.put_into_blocks(arg, like.images, like.block)
            }
            Form::Plain(full) => {
                let arg = self.rw.body().resolve(arg);
                let rows = like.images.in_rows(&full, self.rw.cx().dim(1));
                let arg = self.rw.reshape(arg, &rows);
                self.transform(arg, like.images.plain(), &like.images.blocked(like.block))
            }
        }
    }

    /// The value in blocks of `block` channels: as it is at hand, or transformed.
    fn as_blocked(&mut self, x: Expr, images: Images, block: i64) -> Expr {
        match self.blocked_of(x) {
            Some(blocked) if blocked.block == block => blocked.value,
            _ => self.put_into_blocks(x, images, block),
        }
    }

    /// Plain images in blocks of `block` channels.
    fn put_into_blocks(&mut self, x: Expr, images: Images, block: i64) -> Expr {
        if let Some(last) = self.channels_last(x, images) {
            return self.transform(last, images.channels_last(), &images.blocked(block));
        }
        let x = self.rw.body().resolve(x);
        let x = match self.rw.tensor(x) {
            Some((_, dims)) if images == Images::Line => {
                let rows = images.in_rows(&dims, self.rw.cx().dim(1));
                self.rw.reshape(x, &rows)
            }
            _ => x,
        };
        self.transform(x, images.plain(), &images.blocked(block))
    }

    /// What takes the place of an expression, of its value in blocks.
    fn plain_again(&mut self, expr: Expr, Blocked { value, block, images }: Blocked) -> Expr {
        let plain = self.transform(value, &images.blocked(block), images.plain());
        match self.shape(expr) {
            Some(shape) => self.rw.reshape(plain, &shape),
            None => plain,
        }
    }

    fn transform_of(&mut self, x: Expr, from: &str, to: &str) -> Expr {
        let x = self.rw.body().resolve(x);
        self.transform(x, from, to)
    }

    fn transform(&mut self, x: Expr, from: &str, to: &str) -> Expr {
        let attrs = self.rw.cx().attrs(&[("src_layout", from.into()), ("dst_layout", to.into())]);
        self.rw.call_op("layout_transform", &[x], attrs)
    }

    fn blocked_of(&mut self, expr: Expr) -> Option<Blocked> {
        let origin = self.origin(expr);
        self.blocked.get(&origin).copied()
    }

    /// The node of the function, before any change, that an expression stands for.
    fn origin(&mut self, expr: Expr) -> Expr {
        self.rw.original_definition(expr)
    }

    fn shape(&self, expr: Expr) -> Option<Vec<Dim>> {
        self.body.terms().tensor(self.body.ty(expr)?).map(|(_, dims)| dims.to_vec())
    }
}

/// How an argument of a carried call is passed.
enum Form {
    /// It is blocked already.
    Blocked(Expr),
    /// It is a single number, whatever its rank.
    Number,
    /// It has this shape, of as many axes, once axes are added in front, and is then transformed.
    Plain(Vec<Dim>),
}

fn rank_of(rw: &Rewriter, expr: Expr) -> Option<usize> {
    rw.terms().tensor(rw.body().ty(expr)?).map(|(_, dims)| dims.len())
}
