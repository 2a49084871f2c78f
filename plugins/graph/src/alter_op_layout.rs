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
//! Convolutions over three axes are in the layout `NCDHW16c` likewise. Where the channels that a kernel of several taps makes fill no
//! vectors, as 60 do, all of them are one block, and the kernel is filled up; so they are where the pixels are symbols. Lines of zeros
//! around images are left out where the kernel is finite and they are many. Channels must be known; all other extents may be symbols.
//! Weights must be constants, or computed of constants, as those of Winograd's algorithm are: `relax.FoldConstant` behind it computes
//! them once, in the layout that is wanted, so that none of them is in memory twice. Products with constant right matrices are packed
//! likewise, as `NK16n`, unless they are large, or fill no panel, and something else reads them as they lie: packed ones would be a
//! second copy. A product of one row takes as long as its weights take to be read: its panels are as wide as the tile of sums that
//! stays in registers, `NK128n`, so that memory is read from one end to the other. The last panel may be filled up; for several rows it
//! is wherever columns fill no whole vectors.

mod carried;
mod channels_last;
mod convolutions;
mod images;
mod products;
mod sizes;
mod zeros;

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

use self::images::{Blocked, Images};
use crate::constants::ReadAsTheyLie;
use crate::panels::Panels;

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
            (op @ ("nn.byte_conv2d" | "nn.byte_conv3d"), &[x, weight, beyond]) => {
                self.bytes(op, [x, weight, beyond], attrs)
            }
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
            ("reshape" | "squeeze" | "expand_dims", &[x, ..]) => {
                self.of_one_row(expr, x).or_else(|| self.of_groups(expr, x))
            }
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

    /// Plain images in blocks of `block` channels, of which there are as many as `channels` says where the images do not.
    fn put_into_blocks(
        &mut self,
        x: Expr,
        images: Images,
        block: i64,
        channels: Option<i64>,
    ) -> Expr {
        if let Some(last) = self.channels_last(x, images) {
            let last = self.with_channels(last, channels, |rank| rank - 1);
            return self.transform(last, images.channels_last(), &images.blocked(block));
        }
        let x = self.rw.body().resolve(x);
        let x = self.with_channels(x, channels, |_| 1);
        let x = match self.rw.tensor(x) {
            Some((_, dims)) if images == Images::Line => {
                let rows = images.in_rows(&dims, self.rw.cx().dim(1));
                self.rw.reshape(x, &rows)
            }
            _ => x,
        };
        self.transform(x, images.plain(), &images.blocked(block))
    }

    /// Data with as many channels along an axis as somebody knows, which each call is checked for.
    fn with_channels(
        &mut self,
        x: Expr,
        channels: Option<i64>,
        axis: impl Fn(usize) -> usize,
    ) -> Expr {
        let (Some(channels), Some((_, mut dims))) = (channels, self.rw.tensor(x)) else { return x };
        let axis = axis(dims.len());
        if self.rw.terms().dim_value(dims[axis]).is_none() {
            dims[axis] = self.rw.cx().dim(channels);
        }
        self.rw.reshape(x, &dims)
    }

    /// What takes the place of an expression, of its value in blocks.
    fn plain_again(&mut self, expr: Expr, Blocked { value, block, images }: Blocked) -> Expr {
        let plain = self.transform(value, &images.blocked(block), images.plain());
        match self.shape(expr) {
            Some(shape) => self.rw.reshape(plain, &shape),
            None => plain,
        }
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
