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
//! calls, pooling, and calls whose attributes name axes ([`follow`]). All that cannot reads the value transposed
//! back, and transposes that nothing reads go with `relax.DeadCodeElimination`. Dimensions may be symbolic; data
//! of unknown rank is not carried. Choices, closures and results are in the order they had.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

mod follow;

/// Gives convolutions another layout, and carries along what stands around them.
#[pass(
    name = "relax.ConvertLayout",
    aliases = ["relax.transform.ConvertLayout", "relay._transform.ConvertLayout"],
    opt_level = 3,
    phase = "optimize",
    requires = ["relax.Normalize"],
    before = ["relax.FoldConstant"],
    idempotent = true
)]
fn convert_layout(
    func: Function,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    let layouts: Vec<&str> = options.conv2d.iter().map(String::as_str).collect();
    let &[data, kernel] = layouts.as_slice() else {
        return Err(PassError::new(
            "`conv2d` is a list of two layouts, such as [\"NHWC\", \"OHWI\"]",
        ));
    };
    for (layout, axes) in [(data, "NCHW"), (kernel, "OIHW")] {
        if order(axes, layout).is_none() {
            let text =
                format!("the layout {layout:?} does not have each of the axes of {axes} once");
            return Err(PassError::new(text));
        }
    }
    let body = func.view();
    let rw = func.edit();
    let mut convert = Convert { body, cx, rw, carried: HashMap::new(), tuples: HashMap::new() };
    for expr in body.post_order() {
        match body.view(expr) {
            View::Call { callee, attrs, .. } => {
                let Some(op) = body.op_name(callee) else { continue };
                let args = body.operands(expr).skip(1).to_vec();
                let carried = match op {
                    "nn.conv2d" => convert.conv2d(&args, attrs, [data, kernel]),
                    _ => convert.follow(expr, op, &args, attrs),
                };
                if let Some(carried) = carried {
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
    /// the layout of the data of convolutions, and that of their weights
    #[option(default = ["NHWC", "OHWI"])]
    conv2d: Vec<String>,
}

struct Convert<'a> {
    /// The function as it was.
    body: BodyView<'a>,
    cx: &'a PassContext,
    rw: Rewriter,
    /// For values of the function, the value with its axes in another order.
    carried: HashMap<Expr, Carried>,
    /// For tuples, the tuple of such values, all in one order.
    tuples: HashMap<Expr, Carried>,
}

/// A value with its axes in another order: axis `i` is axis `order[i]` of what it stands for.
#[derive(Clone)]
struct Carried {
    value: Expr,
    order: Vec<usize>,
}

impl Carried {
    /// Where axis `axis` of what it stands for is.
    fn place(&self, axis: i64) -> Option<usize> {
        let axis = axis.rem_euclid(self.order.len() as i64) as usize;
        self.order.iter().position(|&other| other == axis)
    }
}

impl Convert<'_> {
    fn conv2d(
        &mut self,
        args: &[Expr],
        attrs: Attrs,
        [data, kernel]: [&str; 2],
    ) -> Option<Carried> {
        let read = self.body.terms().attrs(attrs);
        let own = read.str("data_layout").unwrap_or("NCHW");
        let own_kernel = read.str("kernel_layout").unwrap_or("OIHW");
        let out = read.str("out_layout").unwrap_or("");
        let is_plain = out.is_empty() || out == own;
        if !is_plain || (own, own_kernel) == (data, kernel) {
            return None;
        }
        let (order, kernel_order) = (order(own, data)?, order(own_kernel, kernel)?);
        let x = self.in_order(args[0], &order)?;
        let weight = self.in_order(args[1], &kernel_order)?;
        let cx = self.rw.cx();
        let attrs = cx.without_attr(attrs, "out_layout");
        let attrs = cx.with_attr(attrs, "data_layout", data.into());
        let attrs = cx.with_attr(attrs, "kernel_layout", kernel.into());
        let value = self.rw.call_op("nn.conv2d", &[x, weight], attrs);
        Some(Carried { value, order })
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
}

/// For each axis of `to`, where it is in `from`; `None` when the axes are not the same four letters.
fn order(from: &str, to: &str) -> Option<Vec<usize>> {
    let places: Option<Vec<usize>> = to.chars().map(|axis| from.find(axis)).collect();
    let mut sorted = places.clone()?;
    sorted.sort_unstable();
    (from.len() == 4 && sorted == [0, 1, 2, 3]).then_some(places)?
}
