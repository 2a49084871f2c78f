//! Gives convolutions another layout, and carries along what stands around them.
//!
//! ```ir
//! %c = nn.conv2d(%x, %w)          %p = transpose(%x) { axes = [0, 2, 3, 1] }
//! %d = nn.relu(%c)          =>    %q = transpose(%w) { axes = [0, 2, 3, 1] }
//! ret %d                          %c = nn.conv2d(%p, %q) { data_layout = "NHWC", kernel_layout = "OHWI" }
//!                                 %d = nn.relu(%c)
//!                                 ret transpose(%d) { axes = [0, 3, 1, 2] }
//! ```
//!
//! A carried value is one with its axes in another order. What reads it follows where it can: element-wise
//! calls, and those whose operator has a rule of the facet `layout`: pooling, and what has attributes that name axes. A
//! rule also begins it, as that of convolutions does. All that cannot follow reads the value transposed back, and transposes that nothing reads go with `relax.DeadCodeElimination`. Dimensions may be symbolic; data
//! of unknown rank is not carried. Choices, closures and results are in the order they had.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;
use tenon_plugin_api::rule::{Carried, FollowLayout, LayoutArg, Leaf, Rules};

/// Gives convolutions another layout, and carries along what stands around them.
#[pass(
    name = "relax.ConvertLayout",
    aliases = ["relax.transform.ConvertLayout", "relay._transform.ConvertLayout"],
    opt_level = 3,
    phase = "optimize",
    requires = ["relax.Normalize"],
    before = ["relax.FoldConstant"],
    asks = ["layout"],
    idempotent = true
)]
fn convert_layout(
    func: Function,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    let body = func.view();
    let mut rules = cx.rules();
    let mut convert = Convert {
        body,
        cx,
        rw: func.edit(),
        desired: desired(cx, &mut rules, &options.desired_layouts)?,
        rules,
        carried: HashMap::new(),
        tuples: HashMap::new(),
    };
    for expr in body.post_order() {
        match body.view(expr) {
            View::Call { callee, .. } => {
                let View::Op { name } = body.view(callee) else { continue };
                if let Some(carried) = convert.call(expr, name)? {
                    convert.set(expr, carried);
                }
            }
            View::TupleGetItem { tuple, index } => convert.item(expr, tuple, index),
            _ => {}
        }
    }
    convert.rw.finish()
}

#[derive(Options)]
struct Options {
    /// operators with the layouts that calls of them are to have, as in "nn.conv2d NHWC OHWI"; of others their own rules say
    #[option(default = [])]
    desired_layouts: Vec<String>,
}

/// By operator, the layouts that are wanted of it.
fn desired(
    cx: &PassContext,
    rules: &mut Rules<FollowLayout>,
    texts: &[String],
) -> Result<HashMap<Symbol, Vec<String>>> {
    let mut desired = HashMap::new();
    for text in texts {
        let mut words = text.split_whitespace().map(str::to_owned);
        let op = words.next().unwrap_or_default();
        let layouts: Vec<String> = words.collect();
        if layouts.is_empty() {
            return Err(PassError::new(format!(
                "`desired_layouts` has {text:?}, which is no operator with its layouts, as in \
                 \"nn.conv2d NHWC OHWI\""
            )));
        }
        if !rules.has(cx.symbol(&op))? {
            return Err(PassError::new(format!(
                "`desired_layouts`: no plugin gives layouts to `{op}`"
            )));
        }
        desired.insert(cx.symbol(&op), layouts);
    }
    Ok(desired)
}

struct Convert<'a> {
    /// The function as it was.
    body: BodyView<'a>,
    cx: &'a PassContext,
    rw: Rewriter,
    rules: Rules<FollowLayout>,
    desired: HashMap<Symbol, Vec<String>>,
    /// For values of the function, the value with its axes in another order.
    carried: HashMap<Expr, Carried>,
    /// For tuples, the tuple of such values, all in one order.
    tuples: HashMap<Expr, Carried>,
}

impl Convert<'_> {
    /// The call with its axes in another order, where it is one that follows or is wanted so.
    fn call(&mut self, expr: Expr, op: Symbol) -> Result<Option<Carried>> {
        if !self.rules.has(op)? {
            return Ok(self.elementwise(expr, op));
        }
        let args = self.body.operands(expr).skip(1).to_vec();
        let inputs: Vec<LayoutArg> = args.iter().map(|&arg| self.input(arg)).collect();
        let desired = self.desired.get(&op).map_or(&[][..], Vec::as_slice);
        self.rules.followed(&mut self.rw, op, expr, &inputs, desired)
    }

    fn input(&mut self, arg: Expr) -> LayoutArg {
        let definition = self.rw.original_definition(arg);
        match self.body.view(definition) {
            View::Tuple(fields) => {
                LayoutArg::Tuple(fields.iter().map(|field| self.leaf(field)).collect())
            }
            _ => LayoutArg::One(self.leaf(arg)),
        }
    }

    fn leaf(&mut self, expr: Expr) -> Leaf {
        Leaf { plain: self.rw.body().resolve(expr), carried: self.carried(expr) }
    }

    /// Sets what a value is in its own order; what does not follow reads it transposed back.
    fn set(&mut self, expr: Expr, carried: Carried) {
        if let Some(TypeView::Tuple(_)) = self.body.ty(expr).map(|ty| self.body.terms().ty(ty)) {
            self.tuples.insert(expr, carried);
            return;
        }
        let back: Vec<i64> = (0..carried.order.len() as i64)
            .filter_map(|axis| carried.place(axis).map(|place| place as i64))
            .collect();
        let plain = self.rw.transpose(carried.value, &back);
        self.rw.replace(expr, plain);
        self.carried.insert(expr, carried);
    }

    fn item(&mut self, expr: Expr, tuple: Expr, index: usize) {
        let tuple = self.rw.original_definition(tuple);
        if let Some(Carried { value, order }) = self.tuples.get(&tuple).cloned() {
            let value = self.rw.tuple_get_item(value, index as u32);
            self.set(expr, Carried { value, order });
        }
    }

    fn carried(&mut self, expr: Expr) -> Option<Carried> {
        let definition = self.rw.original_definition(expr);
        self.carried.get(&definition).cloned()
    }

    /// A value with its axes in an order: as it is carried, or transposed.
    fn in_order(&mut self, expr: Expr, order: &[usize]) -> Option<Expr> {
        if let Some(carried) = self.carried(expr).filter(|carried| carried.order == order) {
            return Some(carried.value);
        }
        let plain = self.rw.body().resolve(expr);
        let axes: Vec<i64> = order.iter().map(|&axis| axis as i64).collect();
        (self.rank(expr)? == order.len()).then(|| self.rw.transpose(plain, &axes))
    }

    fn rank(&self, expr: Expr) -> Option<usize> {
        self.body.terms().tensor(self.body.ty(expr)?).map(|(_, dims)| dims.len())
    }

    /// An element-wise call of the rank of its carried arguments. Others are numbers, or are given axes in
    /// front and transposed.
    fn elementwise(&mut self, expr: Expr, op: Symbol) -> Option<Carried> {
        let View::Call { args, attrs, .. } = self.body.view(expr) else { return None };
        let args = args.to_vec();
        let order = args.iter().find_map(|&arg| self.carried(arg))?.order;
        let op = self.body.terms().str(op);
        let info = self.cx.op_info(op)?;
        if !info.is_pure || info.pattern > OpPattern::Broadcast {
            return None;
        }
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
        let whole = self.rw.expand_dims(plain, &front);
        let axes: Vec<i64> = order.iter().map(|&axis| axis as i64).collect();
        Some(self.rw.transpose(whole, &axes))
    }
}
