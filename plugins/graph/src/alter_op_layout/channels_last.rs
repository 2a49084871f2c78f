//! Images whose channels lie last, as those of sequences of pixels do.
//!
//! ```ir
//! %t = transpose(%s) { axes = [0, 2, 1] }               %r = reshape(%s, shape(1, 56, 56, 64))
//! %i = reshape(%t, shape(1, 64, 56, 56))          =>    %b = layout_transform(%r)   { NHWC → NCHW16c }
//! %c = nn.conv2d(%i, …)                                 %c = nn.conv2d(%b, …) { data_layout = "NCHW16c", … }
//! %j = reshape(%c, shape(1, 64, 3136))                  %l = layout_transform(%c)   { NCHW16c → NHWC }
//! %u = transpose(%j) { axes = [0, 2, 1] }               %u = reshape(%l, shape(1, 3136, 64))
//! ```
//!
//! A block of channels lies side by side in both layouts, so that vectors are moved, and each of them once.

use tenon_plugin_api::prelude::*;

use super::{Alter, Blocked, Images};

impl Alter<'_> {
    /// Data with its channels last of which `x`, plain images, is the transpose, as images of rows. Its pixels may have been one axis.
    pub(super) fn channels_last(&mut self, x: Expr, images: Images) -> Option<Expr> {
        let shape = self.shape(x)?;
        let rank = images.rank();
        if shape.len() != rank {
            return None;
        }
        let last = rank as i64 - 1;
        let to_plain: Vec<i64> = [0, last].into_iter().chain(1..last).collect();
        if let Some(y) = self.argument_of_transpose(x, &to_plain) {
            let y = self.rw.body().resolve(y);
            return match shape.as_slice() {
                &[n, c, l] => Some(self.rw.reshape(y, &[n, self.rw.cx().dim(1), l, c])),
                _ => Some(y),
            };
        }
        let line = self.argument_of_reshape(x)?;
        let y = self.argument_of_transpose(line, &[0, 2, 1])?;
        let &[n, _, c] = self.shape(y)?.as_slice() else { return None };
        let y = self.rw.body().resolve(y);
        let pixels = shape[2..].iter().copied();
        let dims: Vec<Dim> = [n].into_iter().chain(pixels).chain([c]).collect();
        ([n, c] == shape[..2]).then(|| self.rw.reshape(y, &dims))
    }

    /// Images that are the transpose of ones with their channels last, in blocks.
    pub(super) fn of_channels_last(&mut self, x: Expr) -> Option<Blocked> {
        let shape = self.shape(x)?;
        let images = Images::of_rank(shape.len())?;
        let block = self.panels.block_of(self.body.terms().dim_value(shape[1])?)?;
        let last = self.channels_last(x, images)?;
        let value = self.transform(last, images.channels_last(), &images.blocked(block));
        Some(Blocked { value, block, images })
    }

    /// A transpose, of images in blocks or of these with their pixels as one axis, that puts channels last.
    pub(super) fn transposed(&mut self, expr: Expr, x: Expr, attrs: Attrs) -> Option<Expr> {
        let axes = self.body.terms().attrs(attrs).ints("axes")?;
        let shape = self.shape(expr)?;
        let Blocked { value, block, images } = match self.blocked_of(x) {
            Some(blocked) => {
                let behind: Vec<i64> = (2..blocked.images.rank() as i64).collect();
                (axes == [&[0], behind.as_slice(), &[1]].concat()).then_some(blocked)?
            }
            None => {
                let of = self.argument_of_reshape(x)?;
                let keeps = |whole: &[Dim]| whole.get(..2) == Some(&[shape[0], shape[2]]);
                (axes == [0, 2, 1] && keeps(&self.shape(of)?)).then_some(())?;
                self.blocked_of(of)?
            }
        };
        let last = self.transform(value, &images.blocked(block), images.channels_last());
        Some(self.rw.reshape(last, &shape))
    }

    /// What an expression is the transpose of, with these axes.
    fn argument_of_transpose(&mut self, expr: Expr, axes: &[i64]) -> Option<Expr> {
        let (args, attrs) = self.call_of(expr, "transpose")?;
        let own = self.body.terms().attrs(attrs).ints("axes")?;
        (own == axes).then(|| args[0])
    }

    fn argument_of_reshape(&mut self, expr: Expr) -> Option<Expr> {
        let ops = ["reshape", "expand_dims", "squeeze"];
        ops.into_iter().find_map(|op| Some(self.call_of(expr, op)?.0[0]))
    }

    /// Arguments and attributes of a call of an operator.
    pub(super) fn call_of(&mut self, expr: Expr, op: &str) -> Option<(Vec<Expr>, Attrs)> {
        let origin = self.origin(expr);
        let View::Call { callee, args, attrs } = self.body.view(origin) else { return None };
        (self.body.op_name(callee) == Some(op)).then(|| (args.to_vec(), attrs))
    }
}
