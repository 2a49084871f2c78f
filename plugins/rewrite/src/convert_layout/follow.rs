//! How calls follow a value whose axes are in another order.

use tenon_plugin_api::prelude::*;

use super::{Carried, Convert};

impl Convert<'_> {
    /// The call on carried arguments; `None` where it reads them transposed back.
    pub(super) fn follow(
        &mut self,
        expr: Expr,
        op: &str,
        args: &[Expr],
        attrs: Attrs,
    ) -> Option<Carried> {
        let read = self.body.terms().attrs(attrs);
        let first = args.first().copied()?;
        match op {
            "nn.max_pool2d" | "nn.avg_pool2d" | "nn.global_max_pool2d" | "nn.global_avg_pool2d" => {
                let x = self.carried(first)?;
                let layout = read.str("layout").unwrap_or("NCHW").as_bytes();
                if layout.len() != x.order.len() {
                    return None;
                }
                let layout: String = x.order.iter().map(|&axis| layout[axis] as char).collect();
                self.with_attr(op, x, &[], attrs, "layout", layout.into())
            }
            "nn.softmax" | "nn.log_softmax" | "split" => {
                let default = if op == "split" { 0 } else { -1 };
                self.along_axis(op, first, &[], attrs, default)
            }
            "nn.batch_norm" | "nn.bias_add" => self.along_axis(op, first, &args[1..], attrs, 1),
            "nn.group_norm" | "nn.instance_norm" => {
                let x = self.carried(first).filter(|x| x.order.first() == Some(&0))?;
                let place = x.place(read.int("channel_axis").unwrap_or(1))? as i64;
                self.with_attr(op, x, &args[1..], attrs, "channel_axis", place.into())
            }
            "nn.layer_norm" => self.along_axes(op, first, &args[1..], attrs, "axes"),
            "nn.l2_normalize" => self.along_axes(op, first, &[], attrs, "axis"),
            "concatenate" => self.concatenate(first, attrs),
            "sum" | "mean" | "max" | "min" | "prod" => self.reduce(op, first, attrs),
            "strided_slice" => {
                let x = self.carried(first)?;
                let count = read.ints("begin")?.len() as i64;
                let axes = read.ints("axes").unwrap_or_else(|| (0..count).collect());
                let places = places(&x, &axes)?;
                self.with_attr(op, x, &[], attrs, "axes", places.into())
            }
            "nn.pad" => {
                let x = self.carried(first)?;
                let width = read.ints("pad_width")?;
                let width: Option<Vec<&[i64]>> =
                    x.order.iter().map(|&axis| width.get(2 * axis..2 * axis + 2)).collect();
                self.with_attr(op, x, &[], attrs, "pad_width", width?.concat().into())
            }
            "expand_dims" => self.expand_dims(first, &read.ints("axis")?),
            "squeeze" => self.squeeze(first, read.ints("axis")),
            "broadcast_to" | "full" => None,
            _ => self.elementwise(expr, op, args, attrs),
        }
    }

    /// A call with one attribute set to what it is in the order of the axes, which stays.
    fn with_attr(
        &mut self,
        op: &str,
        x: Carried,
        rest: &[Expr],
        attrs: Attrs,
        name: &str,
        value: AttrValue,
    ) -> Option<Carried> {
        let attrs = self.rw.cx().with_attr(attrs, name, value);
        let args: Vec<Expr> = [x.value]
            .into_iter()
            .chain(rest.iter().map(|&arg| self.rw.body().resolve(arg)))
            .collect();
        Some(Carried { value: self.rw.call_op(op, &args, attrs), order: x.order })
    }

    /// A call whose attribute `axis` names an axis.
    fn along_axis(
        &mut self,
        op: &str,
        x: Expr,
        rest: &[Expr],
        attrs: Attrs,
        default: i64,
    ) -> Option<Carried> {
        let x = self.carried(x)?;
        let axis = self.body.terms().attrs(attrs).int("axis").unwrap_or(default);
        let place = x.place(axis)? as i64;
        self.with_attr(op, x, rest, attrs, "axis", place.into())
    }

    /// A call whose attribute names several axes, the last one by default. What else it reads has these axes in
    /// their order, which must be the same.
    fn along_axes(
        &mut self,
        op: &str,
        x: Expr,
        rest: &[Expr],
        attrs: Attrs,
        name: &str,
    ) -> Option<Carried> {
        let x = self.carried(x)?;
        let read = self.body.terms().attrs(attrs);
        let axes = read.ints(name).or_else(|| read.int(name).map(|axis| vec![axis]));
        let places = places(&x, &axes.unwrap_or_else(|| vec![-1]))?;
        let are_ascending = places.windows(2).all(|pair| pair[0] < pair[1]);
        if !are_ascending && !rest.is_empty() {
            return None;
        }
        self.with_attr(op, x, rest, attrs, name, places.into())
    }

    fn concatenate(&mut self, fields: Expr, attrs: Attrs) -> Option<Carried> {
        let tuple = self.rw.original_definition(fields);
        let View::Tuple(fields) = self.body.view(tuple) else { return None };
        let fields = fields.to_vec();
        let x = fields.iter().find_map(|&field| self.carried(field))?;
        let axis = self.body.terms().attrs(attrs).int("axis").unwrap_or(0);
        let place = x.place(axis)? as i64;
        let values: Option<Vec<Expr>> =
            fields.iter().map(|&field| self.in_order(field, &x.order)).collect();
        let value = self.rw.tuple(&values?);
        self.with_attr(
            "concatenate",
            Carried { value, order: x.order },
            &[],
            attrs,
            "axis",
            place.into(),
        )
    }

    fn reduce(&mut self, op: &str, x: Expr, attrs: Attrs) -> Option<Carried> {
        let x = self.carried(x)?;
        let read = self.body.terms().attrs(attrs);
        let all = 0..x.order.len() as i64;
        let axes = read.ints("axis").or_else(|| read.int("axis").map(|axis| vec![axis]));
        let places = places(&x, &axes.unwrap_or_else(|| all.collect()))?;
        let keeps = read.bool("keepdims").unwrap_or(false);
        let reduced = self.with_attr(op, x, &[], attrs, "axis", places.clone().into())?;
        Some(if keeps { reduced } else { without(reduced, &places) })
    }

    /// New axes go to the front.
    fn expand_dims(&mut self, x: Expr, axes: &[i64]) -> Option<Carried> {
        let x = self.carried(x)?;
        let rank = x.order.len() + axes.len();
        let new: Vec<usize> =
            axes.iter().map(|axis| axis.rem_euclid(rank as i64) as usize).collect();
        let old: Vec<usize> = (0..rank).filter(|axis| !new.contains(axis)).collect();
        let front: Vec<i64> = (0..new.len() as i64).collect();
        let value = self.rw.apply_with("expand_dims", &[x.value], &[("axis", front.into())]);
        let mut order = new;
        order.sort_unstable();
        order.extend(x.order.iter().map(|&axis| old[axis]));
        Some(Carried { value, order })
    }

    fn squeeze(&mut self, x: Expr, axes: Option<Vec<i64>>) -> Option<Carried> {
        let carried = self.carried(x)?;
        let (_, dims) = self.body.terms().tensor(self.body.ty(x)?)?;
        let is_one = |dim: &Dim| self.body.terms().dim_value(*dim) == Some(1);
        let ones =
            || (0..).zip(dims).filter(|(_, dim)| is_one(dim)).map(|(axis, _)| axis).collect();
        let places = places(&carried, &axes.unwrap_or_else(ones))?;
        let value =
            self.rw.apply_with("squeeze", &[carried.value], &[("axis", places.clone().into())]);
        Some(without(Carried { value, order: carried.order }, &places))
    }

    /// An element-wise call of the rank of its carried arguments. Others are numbers, or are given axes in
    /// front and transposed.
    fn elementwise(
        &mut self,
        expr: Expr,
        op: &str,
        args: &[Expr],
        attrs: Attrs,
    ) -> Option<Carried> {
        let info = self.cx.op_info(op)?;
        if !info.is_pure || info.pattern > OpPattern::Broadcast {
            return None;
        }
        let order = args.iter().find_map(|&arg| self.carried(arg))?.order;
        let ranks: Option<Vec<usize>> = args.iter().map(|&arg| self.rank(arg)).collect();
        if self.rank(expr)? != order.len() || ranks?.iter().any(|&rank| rank > order.len()) {
            return None;
        }
        let values: Option<Vec<Expr>> = args.iter().map(|&arg| self.operand(arg, &order)).collect();
        Some(Carried { value: self.rw.call_op(op, &values?, attrs), order })
    }

    fn operand(&mut self, arg: Expr, order: &[usize]) -> Option<Expr> {
        let missing = order.len() - self.rank(arg)?;
        if missing == order.len() {
            return Some(self.rw.body().resolve(arg));
        }
        if missing == 0 {
            return self.in_order(arg, order);
        }
        let plain = self.rw.body().resolve(arg);
        let front: Vec<i64> = (0..missing as i64).collect();
        let whole = self.rw.apply_with("expand_dims", &[plain], &[("axis", front.into())]);
        let axes: Vec<i64> = order.iter().map(|&axis| axis as i64).collect();
        Some(self.rw.transpose(whole, &axes))
    }
}

/// Where axes of what a value stands for are.
fn places(x: &Carried, axes: &[i64]) -> Option<Vec<i64>> {
    axes.iter().map(|&axis| x.place(axis).map(|place| place as i64)).collect()
}

/// The order that is left when the axes at `places` are gone.
fn without(x: Carried, places: &[i64]) -> Carried {
    let is_gone = |place: usize| places.contains(&(place as i64));
    let gone: Vec<usize> =
        (0..x.order.len()).filter(|&at| is_gone(at)).map(|at| x.order[at]).collect();
    let left = (0..x.order.len()).filter(|&at| !is_gone(at)).map(|at| x.order[at]);
    let order =
        left.map(|axis| axis - gone.iter().filter(|&&other| other < axis).count()).collect();
    Carried { value: x.value, order }
}
