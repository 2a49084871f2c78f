//! Has what is said to lie on one device lie on another.
//!
//! ```ir
//! fn @main(%x: f32[4] on "cuda:0") {                     fn @main(%x: f32[4] on "cuda:1") {
//!   %a: f32[4] on "cuda:0" = exp(%x)                       %a: f32[4] on "cuda:1" = exp(%x)
//!   %b = to_vdevice(%a) { dst = "cpu:0" }      =>          %b = to_vdevice(%a) { dst = "cpu:0" }
//!   ret %b                                                 ret %b
//! }                                                      }
//! ```
//!
//! That is with `from = "cuda:0"` and `to = "cuda:1"`. The device is replaced wherever it stands: in types, in attributes that are
//! types, and where values are moved to. What lies elsewhere stays there, so nothing is on two devices that was on one.
//! Without options nothing is replaced.

use std::collections::HashMap;

use tenon_plugin_api::ir::{TermKind, device_problem};
use tenon_plugin_api::prelude::*;

use crate::realize_vdevice::MOVES;

/// Attribute of a move: the device.
const DST: &str = "dst";

/// Has what is said to lie on one device lie on another.
#[pass(
    name = "relax.UpdateVDevice",
    aliases = ["relax.transform.UpdateVDevice"],
    opt_level = 0,
    phase = "ingest",
    idempotent = true
)]
fn update_vdevice(
    func: Function,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    if options.from.is_empty() && options.to.is_empty() {
        return Ok(func);
    }
    if let Some(problem) = [&options.from, &options.to].iter().find_map(|name| device_problem(name))
    {
        return Err(PassError::new(problem));
    }
    let mut devices = Devices::new(cx, &options);
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let ty = body.ty(expr);
        let moved = ty.map(|ty| Type(devices.apply(ty).0));
        if moved != ty {
            rw.set_type(expr, moved);
        }
        if let View::Call { callee, attrs, .. } = body.view(expr) {
            let mut new = Attrs(devices.apply(attrs).0);
            let is_move = body.op_name(callee).is_some_and(|op| MOVES.contains(&op));
            if is_move && body.terms().attrs(attrs).term(DST) == Some(devices.from.into()) {
                new = cx.with_attr(attrs, DST, AttrValue::Term(devices.to.into()));
            }
            if new != attrs {
                let call = rw.with_attrs(expr, new);
                rw.replace(expr, call);
            }
        }
    }
    if let View::Function { result: Some(result), .. } = body.view(body.root()) {
        let moved = devices.apply(result);
        if moved != result.into() {
            let operands: Vec<Expr> = body.operands_keeping_binders(body.root()).collect();
            let root =
                rw.push(NodeSpec { ty: None, data: moved.0, ..body.spec(body.root()) }, &operands);
            rw.set_root(root);
        }
    }
    rw.finish()
}

#[derive(Options)]
struct Options {
    /// the device that is said, such as "cuda:0"
    #[option(default = "")]
    from: String,
    /// the device that is to be said, such as "cuda:1"
    #[option(default = "")]
    to: String,
}

/// Terms in which one device takes the place of another. What each becomes is remembered.
struct Devices<'a> {
    cx: &'a PassContext,
    from: Symbol,
    to: Symbol,
    done: HashMap<Term, Term>,
}

impl<'a> Devices<'a> {
    fn new(cx: &'a PassContext, options: &Options) -> Self {
        let (from, to) = (cx.symbol(&options.from), cx.symbol(&options.to));
        Self { cx, from, to, done: HashMap::new() }
    }

    /// A type, attributes or any other term with the new device in the place of the old one.
    fn apply(&mut self, term: impl Into<Term>) -> Term {
        let (terms, term) = (self.cx.terms(), term.into());
        let mut stack = vec![term];
        while let Some(&next) = stack.last() {
            let children = terms.children(next);
            let waiting = stack.len();
            stack.extend(children.iter().filter(|child| !self.done.contains_key(child)));
            if stack.len() > waiting {
                continue;
            }
            stack.pop();
            let mut rebuilt: Vec<Term> = children.iter().map(|child| self.done[child]).collect();
            let raw = terms.raw(next);
            if TermKind(raw.kind) == TermKind::PLACED && rebuilt.last() == Some(&self.from.into()) {
                rebuilt.pop();
                rebuilt.push(self.to.into());
            }
            let new = match rebuilt == children {
                true => next,
                false => self.cx.intern(TermKind(raw.kind), raw.flags, raw.bits, &rebuilt),
            };
            self.done.insert(next, new);
        }
        self.done[&term]
    }
}
