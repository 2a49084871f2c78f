//! Calls that do not care about the order of axes, carried along in blocks.

use tenon_plugin_api::prelude::*;

use super::{Alter, Blocked, Images};

impl Alter<'_> {
    /// Carries a call along that says its layout in an attribute.
    pub(super) fn with_layout_attr(&mut self, op: &str, x: Expr, attrs: Attrs) -> Option<Blocked> {
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
    pub(super) fn of_one_row(&mut self, expr: Expr, x: Expr) -> Option<Blocked> {
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

    /// Carries a normalization of groups of channels along, which are one axis for it and are axes again behind it, where blocks do not go
    /// from one group into the next: it is the same whatever the order within a group.
    pub(super) fn of_groups(&mut self, expr: Expr, x: Expr) -> Option<Blocked> {
        let (args, attrs) = self.call_of(x, "nn.instance_norm")?;
        let (from, _) = self.call_of(args[0], "reshape")?;
        let blocked = self.blocked_of(from[0])?;
        let (own, dims, shape) = (self.shape(from[0])?, self.shape(args[0])?, self.shape(expr)?);
        let images = Images::of_rank(shape.len())?;
        let one = self.rw.cx().dim(1);
        let &[batch, count, _] = dims.as_slice() else { return None };
        let [count, channels] = [count, own[1]].map(|dim| self.body.terms().dim_value(dim));
        let is_whole =
            channels? % count.filter(|&count| count > 0)?.saturating_mul(blocked.block) == 0;
        let is_back = blocked.images.in_rows(&own, one) == images.in_rows(&shape, one);
        if !(is_whole && is_back && batch == own[0]) {
            return None;
        }
        let (_, in_blocks) = self.rw.tensor(blocked.value)?;
        let [scale, bias] = [args[1], args[2]].map(|arg| self.rw.body().resolve(arg));
        let flat = self.rw.reshape(blocked.value, &dims);
        let normed = self.rw.call_op("nn.instance_norm", &[flat, scale, bias], attrs);
        Some(Blocked { value: self.rw.reshape(normed, &in_blocks), images, ..blocked })
    }

    /// Carries a resized axis of pixels along: vectors of channels are moved then, where it would be single elements. Where channels lie
    /// last already, it is put into blocks for that.
    pub(super) fn resized(&mut self, x: Expr, size: Expr, attrs: Attrs) -> Option<Blocked> {
        let axis = self.body.terms().attrs(attrs).int("axis")?;
        if !(2..self.shape(x)?.len() as i64).contains(&axis) {
            return None;
        }
        let Blocked { value, block, images } = match self.blocked_of(x) {
            Some(blocked) => blocked,
            None => self.of_channels_last(x)?,
        };
        let size = self.rw.body().resolve(size);
        let axis = if images == Images::Line { axis + 1 } else { axis };
        let attrs = self.rw.cx().with_attr(attrs, "axis", axis.into());
        let value = self.rw.call_op("image.resize1d", &[value, size], attrs);
        Some(Blocked { value, block, images })
    }

    /// Carries a concatenation of channels along when its fields are blocked alike, or have their channels last.
    pub(super) fn concatenate(&mut self, fields: Expr, attrs: Attrs) -> Option<Blocked> {
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
    pub(super) fn over_pixels(&mut self, op: &str, x: Expr, attrs: Attrs) -> Option<Blocked> {
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
    pub(super) fn elementwise(
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
        // A number for each channel, as what scales these, is soon moved.
        let is_of_channels = full[1] == whole[1]
            && (full[0] == one || full[0] == whole[0])
            && full[2..].iter().all(is_one);
        (full == whole || is_of_channels).then_some(Form::Plain(full))
    }

    fn take_form(&mut self, arg: Expr, form: Form, like: Blocked) -> Expr {
        match form {
            Form::Blocked(value) => value,
            Form::Number => {
                let arg = self.rw.body().resolve(arg);
                self.rw.reshape(arg, &[])
            }
            Form::Plain(full) if rank_of(&self.rw, arg) == Some(full.len()) => {
                self.put_into_blocks(arg, like.images, like.block, None)
            }
            Form::Plain(full) => {
                let arg = self.rw.body().resolve(arg);
                let rows = like.images.in_rows(&full, self.rw.cx().dim(1));
                let arg = self.rw.reshape(arg, &rows);
                self.transform(arg, like.images.plain(), &like.images.blocked(like.block))
            }
        }
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
