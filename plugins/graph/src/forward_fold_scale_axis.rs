//! Moves a scale of each channel into the weights of the convolutions and products behind it.
//!
//! ```ir
//! %a = multiply(%x, %s)                %b = nn.relu(%x)
//! %b = nn.relu(%a)               =>    %c = add(%b, divide(%t, %s))
//! %c = add(%b, %t)                     %d = nn.conv2d(%c, multiply(%w, reshape(%s)))
//! %d = nn.conv2d(%c, %w)
//! ```
//!
//! `conv(multiply(x, s), w)` is `conv(x, w * s)` when `s` is constant along everything but the channels of the
//! data, because each of these meets weights of its own. A positive scale passes `nn.relu`, and passes the
//! addition of a constant, which is divided by it. All readers of what is scaled must be products that take the
//! scale, and each value in between has one use: it changes. Padding is zeros, which no scale changes.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

use crate::product::{Product, is_positive, with_constant};

/// Moves constant scales of channels forward into the weights behind them.
#[pass(
    name = "relax.ForwardFoldScaleAxis",
    aliases = ["relay._transform.ForwardFoldScaleAxis"],
    opt_level = 3,
    phase = "optimize",
    requires = ["relax.FoldConstant"]
)]
fn forward_fold_scale_axis(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    if cx.keeps_floats() {
        return Ok(func);
    }
    let body = func.view();
    let uses = Uses::of(body);
    let mut rw = func.edit();
    // For data that is scaled, the chain behind it and the products that take the scale.
    let mut chains: HashMap<Expr, (Chain, Vec<(Expr, Product)>)> = HashMap::new();
    let mut order = Vec::new();
    for expr in body.post_order() {
        let View::Call { .. } = body.view(expr) else { continue };
        let Some(product) = Product::of(&mut rw, expr) else { continue };
        let Some(axes) = product.input else { continue };
        let Some(chain) = Chain::behind(&mut rw, &uses, product.data) else { continue };
        if !product.is_scale(&mut rw, chain.scale, axes) {
            continue;
        }
        let data = product.data;
        let entry = chains.entry(data).or_insert_with(|| {
            order.push(data);
            (chain, Vec::new())
        });
        entry.1.push((expr, product));
    }
    for data in order {
        let (chain, readers) = &chains[&data];
        if uses.count(data) as usize != readers.len() {
            continue;
        }
        let unscaled = chain.without_scale(&mut rw);
        if rw.body().ty(unscaled) != rw.body().ty(data) {
            continue;
        }
        for (expr, product) in readers {
            let axis = product.input.map_or(0, |(_, axis)| axis);
            if let Some(folded) = product.scaled(&mut rw, unscaled, axis, chain.scale) {
                rw.replace(*expr, folded);
            }
        }
    }
    rw.finish()
}

/// A scaled value, and what is done with it: `add(… relu(multiply(x, scale)) …)`.
struct Chain {
    x: Expr,
    scale: Expr,
    /// From the product back to the scale.
    links: Vec<Link>,
}

enum Link {
    Add(Expr),
    Relu,
}

impl Chain {
    /// The chain that `value` stands for, with one use at every link before the last.
    fn behind(rw: &mut Rewriter, uses: &Uses, mut value: Expr) -> Option<Self> {
        let mut links = Vec::new();
        loop {
            let definition = rw.definition(value);
            if uses.count(definition) != 1 || (!links.is_empty() && !uses.is_single(rw, value)) {
                return None;
            }
            if let Some(call) = rw.call_of(value, "multiply") {
                let (x, scale) = with_constant(rw, &call)?;
                let is_fit = links.is_empty() || is_positive(rw, scale);
                return is_fit.then_some(Self { x, scale, links });
            } else if let Some(call) = rw.call_of(value, "add") {
                let (next, addend) = with_constant(rw, &call)?;
                links.push(Link::Add(addend));
                value = next;
            } else {
                value = rw.call_of(value, "nn.relu")?.args[0];
                links.push(Link::Relu);
            }
        }
    }

    /// The chain without the scale: what is added is divided by it.
    fn without_scale(&self, rw: &mut Rewriter) -> Expr {
        self.links.iter().rev().fold(self.x, |value, link| match link {
            Link::Add(addend) => {
                let divided = rw.apply("divide", &[*addend, self.scale]);
                rw.apply("add", &[value, divided])
            }
            Link::Relu => rw.apply("nn.relu", &[value]),
        })
    }
}
