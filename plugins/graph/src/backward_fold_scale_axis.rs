//! Moves a scale of each channel into the weights of the convolution or product in front of it.
//!
//! ```ir
//! %c = nn.conv2d(%x, %w)               %c = nn.conv2d(%x, multiply(%w, reshape(%s)))
//! %d = add(%c, %b)               =>    %d = add(%c, multiply(%b, %s))
//! %e = nn.relu(%d)                     %e = nn.relu(%d)
//! %f = multiply(%e, %s)                ret %e
//! ret %f
//! ```
//!
//! `multiply(conv(x, w), s)` is `conv(x, w * s)` when `s` is constant along everything but the output
//! channels, because each output element is a sum of products with the weights of its channel. Addition of
//! a constant in between distributes, and `nn.relu` lets positive scales through. Every value in between must
//! have one use: it changes. Weights, scale and addend are constants, so `relax.FoldConstant` behind this pass
//! leaves no work for run time.

use tenon_plugin_api::prelude::*;

use crate::product::{Product, is_positive, with_constant};

/// Moves constant scales of channels backward into the weights in front of them.
#[pass(
    name = "relax.BackwardFoldScaleAxis",
    aliases = ["relay._transform.BackwardFoldScaleAxis"],
    opt_level = 1,
    phase = "optimize",
    requires = ["relax.FoldConstant"]
)]
fn backward_fold_scale_axis(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let uses = Uses::of(body);
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        if body.op_name(callee) != Some("multiply") {
            continue;
        }
        let folded = fold(&mut rw, &uses, expr);
        if let Some(folded) = folded.filter(|&folded| rw.body().ty(folded) == body.ty(expr)) {
            rw.replace(expr, folded);
        }
    }
    rw.finish()
}

/// What stands between a product and a scale.
enum Link {
    Add(Expr),
    Relu,
}

/// The product with `scale` inside, when an expression is one that is scaled.
fn fold(rw: &mut Rewriter, uses: &Uses, expr: Expr) -> Option<Expr> {
    let call = rw.call_of(expr, "multiply")?;
    let (mut value, scale) = with_constant(rw, &call)?;
    let mut links = Vec::new();
    let product = loop {
        if !uses.is_single(rw, value) {
            return None;
        }
        if let Some(product) = Product::of(rw, value) {
            break product;
        } else if let Some(add) = rw.call_of(value, "add") {
            let (next, addend) = with_constant(rw, &add)?;
            links.push(Link::Add(addend));
            value = next;
        } else {
            value = rw.call_of(value, "nn.relu")?.args[0];
            links.push(Link::Relu);
        }
    };
    let needs_positive = links.iter().any(|link| matches!(link, Link::Relu));
    if !product.is_scale(rw, scale, product.output) || (needs_positive && !is_positive(rw, scale)) {
        return None;
    }
    let mut value = product.scaled(rw, product.data, product.output.1, scale)?;
    for link in links.into_iter().rev() {
        value = match link {
            Link::Add(addend) => {
                let scaled = rw.apply("multiply", &[addend, scale]);
                rw.apply("add", &[value, scaled])
            }
            Link::Relu => rw.apply("nn.relu", &[value]),
        };
    }
    Some(value)
}
