//! The facet `layout`: how a call is written where its arguments have their axes in another order.
//!
//! ```ir
//! %t = transpose(%x) { axes = [0, 2, 3, 1] }       a carried value: axis i of %t is axis [0, 2, 3, 1][i] of %x
//! mean(%x) { axis = [2] }      =>      mean(%t) { axis = [1] }
//! ```
//!
//! A question is a call, for each argument the value with its axes in another order where there is one, and the layouts that
//! whoever runs the pass wants of the operator. An answer is what the call stands for, and how its axes are ordered. A
//! rule that declines leaves the call as it is: it reads its arguments transposed back. Element-wise operators need no rule.

use std::ops::{Deref, DerefMut};

use crate::ir::{AttrValue, Attrs, Build, Context, Expr, Symbol, Term, Terms};
use crate::pass::{Calls, PassError, Result, Rewriter};

use super::{AboutCall, Facet, Question, Reply, Rules, Site};

/// The facet.
pub struct FollowLayout;

/// A value with its axes in another order: axis `i` is axis `order[i]` of what it stands for. Of a tuple, all fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The value.
    pub value: Expr,
    /// A permutation.
    pub order: Vec<usize>,
}

/// A tensor that a call reads.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The value in the order that the call is written for.
    pub plain: Expr,
    /// The value with its axes in another order, where there is one.
    pub carried: Option<Carried>,
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub enum LayoutArg {
    /// A single value.
    One(Leaf),
    /// The fields of a tuple.
    Tuple(Vec<Leaf>),
}

/// The call that a rule is asked about, with what is carried of its arguments.
pub struct Following<'a> {
    site: Site<'a>,
    /// Its arguments.
    pub inputs: Vec<LayoutArg>,
    /// The layouts that are wanted of calls of this operator, in the operator's own terms; none where nobody says.
    pub desired: Vec<String>,
}

impl Carried {
    /// Where axis `axis`, counted from the end when negative, of what it stands for is.
    pub fn place(&self, axis: i64) -> Option<usize> {
        let axis = axis.rem_euclid(self.order.len().max(1) as i64) as usize;
        self.order.iter().position(|&other| other == axis)
    }

    /// Where axes of what it stands for are.
    pub fn places(&self, axes: &[i64]) -> Option<Vec<i64>> {
        axes.iter().map(|&axis| self.place(axis).map(|place| place as i64)).collect()
    }

    /// The same when the axes at `places` are gone.
    pub fn without(self, places: &[i64]) -> Self {
        let is_gone = |place: usize| places.contains(&(place as i64));
        let at = 0..self.order.len();
        let gone: Vec<usize> =
            at.clone().filter(|&at| is_gone(at)).map(|at| self.order[at]).collect();
        let left = at.filter(|&at| !is_gone(at)).map(|at| self.order[at]);
        let order =
            left.map(|axis| axis - gone.iter().filter(|&&other| other < axis).count()).collect();
        Self { value: self.value, order }
    }
}

impl<'a> Deref for Following<'a> {
    type Target = Site<'a>;

    fn deref(&self) -> &Site<'a> {
        &self.site
    }
}

impl DerefMut for Following<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.site
    }
}

impl AboutCall for Following<'_> {
    fn attrs_of_call(&self) -> (Attrs, Terms<'_>) {
        self.site.attrs_of_call()
    }
}

impl Following<'_> {
    /// What is carried of the first argument, a single value.
    pub fn carried(&self) -> Option<Carried> {
        match self.inputs.first()? {
            LayoutArg::One(leaf) => leaf.carried.clone(),
            LayoutArg::Tuple(_) => None,
        }
    }

    /// A tensor with its axes in an order: as it is carried, or transposed.
    pub fn in_order(&mut self, leaf: &Leaf, order: &[usize]) -> Option<Expr> {
        if let Some(carried) = leaf.carried.as_ref().filter(|carried| carried.order == order) {
            return Some(carried.value);
        }
        let axes: Vec<i64> = order.iter().map(|&axis| axis as i64).collect();
        (self.rank(leaf.plain)? == order.len()).then(|| self.transpose(leaf.plain, &axes))
    }

    /// The call on `x` in the place of its first argument, with one attribute set to what it is in the order of `x`, which
    /// is also that of the result.
    pub fn with_attr(&mut self, x: Carried, name: &str, value: AttrValue) -> Option<Carried> {
        let attrs = self.cx().with_attr(self.call.attrs, name, value);
        let mut args = self.call.args.clone();
        *args.first_mut()? = x.value;
        let value = self.again(&args, attrs)?;
        Some(Carried { value, order: x.order })
    }

    /// The call whose attribute `name` is the axis `axis`.
    pub fn along_axis(&mut self, name: &str, axis: i64) -> Option<Carried> {
        let x = self.carried()?;
        let place = x.place(axis)? as i64;
        self.with_attr(x, name, place.into())
    }

    /// The call whose attribute `name` is the axes `axes`. What else it reads has these axes in their order, which must
    /// stay the same.
    pub fn along_axes(&mut self, name: &str, axes: &[i64]) -> Option<Carried> {
        let x = self.carried()?;
        let places = x.places(axes)?;
        let are_ascending = places.windows(2).all(|pair| pair[0] < pair[1]);
        if !are_ascending && self.call.args.len() > 1 {
            return None;
        }
        self.with_attr(x, name, places.into())
    }

    /// The call of a reduction over `axes`, all when there are none, which its attribute `name` says.
    pub fn reduction(&mut self, name: &str, axes: Option<&[i64]>, keeps: bool) -> Option<Carried> {
        let x = self.carried()?;
        let all: Vec<i64> = (0..x.order.len() as i64).collect();
        let places = x.places(axes.unwrap_or(&all))?;
        let reduced = self.with_attr(x, name, places.clone().into())?;
        Some(if keeps { reduced } else { reduced.without(&places) })
    }

    /// A call of the same operator.
    pub fn again(&mut self, args: &[Expr], attrs: Attrs) -> Option<Expr> {
        let callee = self.body().operands(self.call.expr).get(0)?;
        let op = self.body().op_name(callee)?.to_owned();
        Some(self.call_op(&op, args, attrs))
    }
}

impl Facet for FollowLayout {
    const NAME: &'static str = "layout";
    type Ask<'a> = Following<'a>;
    type Answer = Carried;

    fn ask(question: Question<'_>) -> Result<Following<'_>> {
        let (nodes, data) = (question.nodes(), question.data());
        let site = question.site()?;
        let wrong = || PassError::new("a question of `layout` is not whole");
        let terms = site.terms();
        let (&desired, args) = terms.children(data).split_first().ok_or_else(wrong)?;
        let desired = terms.children(desired).iter().map(|&text| terms.str(text).to_owned());
        let desired: Vec<String> = desired.collect();
        let mut pairs = nodes[1..].chunks_exact(2);
        let mut inputs = Vec::with_capacity(args.len());
        for &arg in args {
            let (&is_tuple, orders) = terms.children(arg).split_first().ok_or_else(wrong)?;
            let mut leaves = Vec::with_capacity(orders.len());
            for &order in orders {
                let &[plain, value] = pairs.next().ok_or_else(wrong)? else { return Err(wrong()) };
                let order: Option<Vec<usize>> =
                    terms.children(order).iter().map(|&axis| axis_of(terms, axis)).collect();
                let order = order.ok_or_else(wrong)?;
                let carried = (value != Reply::NONE).then_some(Carried { value, order });
                leaves.push(Leaf { plain, carried });
            }
            inputs.push(match is_tuple == site.with_cx(|cx| cx.bool(true)) {
                true => LayoutArg::Tuple(leaves),
                false => LayoutArg::One(leaves.pop().ok_or_else(wrong)?),
            });
        }
        Ok(Following { site, inputs, desired })
    }

    fn reply(ask: &mut Following<'_>, answer: Carried) -> Result<Reply> {
        let order: Vec<i64> = answer.order.iter().map(|&axis| axis as i64).collect();
        let data = ask.with_cx(|cx| cx.int_list(&order));
        Ok(Reply { nodes: vec![answer.value], data })
    }
}

fn axis_of(terms: Terms<'_>, axis: Term) -> Option<usize> {
    match terms.view(axis) {
        crate::ir::TermView::Int(axis) => usize::try_from(axis).ok(),
        _ => None,
    }
}

impl Rules<FollowLayout> {
    /// What `call`, a call of operator `op`, is with its axes in another order, where a rule knows it.
    pub fn followed(
        &mut self,
        rw: &mut Rewriter,
        op: Symbol,
        call: Expr,
        inputs: &[LayoutArg],
        desired: &[String],
    ) -> Result<Option<Carried>> {
        let cx = rw.cx();
        let mut nodes = vec![call];
        let mut data = vec![{
            let desired: Vec<Term> = desired.iter().map(|text| cx.symbol(text).into()).collect();
            cx.list(&desired)
        }];
        for input in inputs {
            let (is_tuple, leaves) = match input {
                LayoutArg::One(leaf) => (false, std::slice::from_ref(leaf)),
                LayoutArg::Tuple(leaves) => (true, leaves.as_slice()),
            };
            let mut told = vec![cx.bool(is_tuple)];
            for leaf in leaves {
                let order = leaf.carried.iter().flat_map(|carried| &carried.order);
                let order: Vec<i64> = order.map(|&axis| axis as i64).collect();
                told.push(cx.int_list(&order));
                let value = leaf.carried.as_ref().map_or(Reply::NONE, |carried| carried.value);
                nodes.extend([leaf.plain, value]);
            }
            data.push(cx.list(&told));
        }
        let reply = self.ask(rw, op, &nodes, cx.list(&data)).map_err(|error| error.at(call))?;
        let Some(reply) = reply else { return Ok(None) };
        let wrong =
            || PassError::new("a rule of `layout` answers what is no value in an order").at(call);
        let &[value] = reply.nodes.as_slice() else { return Err(wrong()) };
        let terms = rw.terms();
        let order: Option<Vec<usize>> =
            terms.children(reply.data).iter().map(|&axis| axis_of(terms, axis)).collect();
        let order = order.ok_or_else(wrong)?;
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if value.index() >= rw.body().len() || !sorted.into_iter().eq(0..order.len()) {
            return Err(wrong());
        }
        Ok(Some(Carried { value, order }))
    }
}
