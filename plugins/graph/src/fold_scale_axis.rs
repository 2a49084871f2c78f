//! Moves a scale of each channel into the weights of the convolution or product in front of it.
//!
//! ```ir
//! %c = nn.conv2d(%x, %w)               %c = nn.conv2d(%x, multiply(%w, reshape(%s)))
//! %d = add(%c, %b)               =>    %d = add(%c, multiply(%b, %s))
//! %e = multiply(%d, %s)                ret %d
//! ret %e
//! ```
//!
//! `multiply(conv(x, w), s)` is `conv(x, w * s)` when `s` is constant along everything but the output
//! channels, because each output element is a sum of products with the weights of its channel. Addition of
//! a constant in between distributes. Every value in between must have one use: it changes. Weights,
//! scale and addend are constants, so `relax.FoldConstant` behind this pass leaves no work for run time.

use tenon_plugin_api::prelude::*;

/// Moves constant scales of channels backward into the weights in front of them.
#[pass(
    name = "relax.FoldScaleAxis",
    aliases = ["relay._transform.FoldScaleAxis", "relay._transform.BackwardFoldScaleAxis",
               "relax.transform.FoldBatchnormToConv2D"],
    opt_level = 1,
    phase = "optimize",
    requires = ["relax.FoldConstant"]
)]
fn fold_scale_axis(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let uses = count_uses(body);
    let mut rw = func.edit();
    for expr in body.post_order() {
        let Some(("multiply", args, _)) = call_of(body, expr) else { continue };
        let &[a, b] = args.as_slice() else { continue };
        let (value, scale) = match (rw.is_constant(a), rw.is_constant(b)) {
            (false, true) => (a, b),
            (true, false) => (b, a),
            _ => continue,
        };
        let Some(chain) = Chain::behind(&mut rw, &uses, value) else { continue };
        if let Some(folded) = chain.fold(&mut rw, scale) {
            rw.replace(expr, folded);
        }
    }
    rw.finish()
}

/// A convolution or product, and constants added to it: `add(… add(heavy, c₀) …, cₙ)`.
struct Chain {
    op: &'static str,
    data: Expr,
    weight: Expr,
    attrs: Attrs,
    addends: Vec<Expr>,
}

impl Chain {
    /// The chain that `value` stands for, with one use at every link.
    fn behind(rw: &mut Rewriter, uses: &[u32], value: Expr) -> Option<Self> {
        let mut addends = Vec::new();
        let mut link = value;
        loop {
            if link.index() < uses.len() && uses[link.index()] != 1 {
                return None;
            }
            let definition = rw.definition(link);
            if definition.index() < uses.len() && uses[definition.index()] != 1 {
                return None;
            }
            let (op, args, attrs) = {
                let now = rw.body();
                let View::Call { callee, args, attrs } = now.view(definition) else { return None };
                (now.op_name(callee)?.to_owned(), args.to_vec(), attrs)
            };
            match (op.as_str(), args.as_slice()) {
                ("add", &[a, b]) => {
                    let (next, addend) = match (rw.is_constant(a), rw.is_constant(b)) {
                        (false, true) => (a, b),
                        (true, false) => (b, a),
                        _ => return None,
                    };
                    addends.push(addend);
                    link = next;
                }
                ("nn.conv2d", &[data, weight]) if is_plain_conv(rw, attrs) => {
                    let op = "nn.conv2d";
                    return rw.is_constant(weight).then_some(Self {
                        op,
                        data,
                        weight,
                        attrs,
                        addends,
                    });
                }
                ("nn.dense", &[data, weight]) if rw.terms().attrs(attrs).is_empty() => {
                    let op = "nn.dense";
                    return rw.is_constant(weight).then_some(Self {
                        op,
                        data,
                        weight,
                        attrs,
                        addends,
                    });
                }
                _ => return None,
            }
        }
    }

    /// The chain with `scale` inside; `None` when the scale is not one of the output channels.
    fn fold(self, rw: &mut Rewriter, scale: Expr) -> Option<Expr> {
        let weight_rank = rank_of(rw, self.weight)?;
        let channels = static_shape(rw, self.weight)?[0];
        // Axes behind the channel axis in the result.
        let behind = if self.op == "nn.conv2d" { 2 } else { 0 };
        let shape = static_shape(rw, scale)?;
        let from_end = shape.len().checked_sub(behind + 1);
        let count: i64 = shape.iter().product();
        let is_per_channel =
            count == 1 || from_end.is_some_and(|axis| shape[axis] == channels && count == channels);
        if !is_per_channel {
            return None;
        }
        let mut weight_scale = vec![1; weight_rank];
        weight_scale[0] = count;
        let dims: Vec<Dim> = weight_scale.iter().map(|&extent| rw.cx().dim(extent)).collect();
        let shape = rw.shape(&dims);
        let as_weight = rw.call_op("reshape", &[scale, shape], Attrs::NONE);
        let weight = rw.call_op("multiply", &[self.weight, as_weight], Attrs::NONE);
        let mut value = rw.call_op(self.op, &[self.data, weight], self.attrs);
        for addend in self.addends.into_iter().rev() {
            let scaled = rw.call_op("multiply", &[addend, scale], Attrs::NONE);
            value = rw.call_op("add", &[value, scaled], Attrs::NONE);
        }
        Some(value)
    }
}

/// Whether a convolution has its channels where NCHW and OIHW have them.
fn is_plain_conv(rw: &Rewriter, attrs: Attrs) -> bool {
    let attrs = rw.terms().attrs(attrs);
    attrs.str("data_layout").unwrap_or("NCHW") == "NCHW"
        && attrs.str("kernel_layout").unwrap_or("OIHW") == "OIHW"
        && matches!(attrs.str("out_layout").unwrap_or(""), "" | "NCHW")
}

fn call_of(body: BodyView<'_>, expr: Expr) -> Option<(&str, Vec<Expr>, Attrs)> {
    match body.view(expr) {
        View::Call { callee, args, attrs } => Some((body.op_name(callee)?, args.to_vec(), attrs)),
        _ => None,
    }
}

fn static_shape(rw: &mut Rewriter, expr: Expr) -> Option<Vec<i64>> {
    let definition = rw.definition(expr);
    let ty = rw.body().ty(definition)?;
    rw.terms().static_tensor(ty).map(|(_, shape)| shape)
}

fn rank_of(rw: &mut Rewriter, expr: Expr) -> Option<usize> {
    static_shape(rw, expr).map(|shape| shape.len())
}

/// How often each node is read; the place that binds a variable is not a use.
fn count_uses(body: BodyView<'_>) -> Vec<u32> {
    let mut uses = vec![0; body.len()];
    for expr in body.post_order() {
        for (position, operand) in body.operands(expr).iter().enumerate() {
            if !body.is_binder(expr, position) {
                uses[operand.index()] += 1;
            }
        }
    }
    uses
}
