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
//! a constant in between distributes, that of two products moves the scale into both, and `nn.relu` lets positive
//! scales through. Every value in between must have one use: it changes. Weights, scale and addend are constants,
//! so `relax.FoldConstant` behind this pass leaves no work for run time.

use tenon_plugin_api::prelude::*;

use crate::product::{Product, is_positive, with_constant};

/// Moves constant scales of channels backward into the weights in front of them.
#[pass(
    name = "relax.BackwardFoldScaleAxis",
    aliases = ["relay._transform.BackwardFoldScaleAxis"],
    opt_level = 3,
    phase = "optimize",
    requires = ["relax.FoldConstant"]
)]
fn backward_fold_scale_axis(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    if cx.keeps_floats() {
        return Ok(func);
    }
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

/// What stands between products and a scale, each with what it reads.
enum Link {
    Product(Product),
    Add(Expr, usize),
    BiasAdd(Expr, Attrs, usize),
    Sum(usize, usize),
    Relu(usize),
}

/// The products with `scale` inside, when an expression is a value of theirs that is scaled.
fn fold(rw: &mut Rewriter, uses: &Uses, expr: Expr) -> Option<Expr> {
    let call = rw.call_of(expr, "multiply")?;
    let (value, scale) = with_constant(rw, &call)?;
    // What is read stands behind what reads it.
    let mut values = vec![value];
    let mut links = Vec::new();
    while let Some(&value) = values.get(links.len()) {
        if !uses.is_single(rw, value) {
            return None;
        }
        let next = values.len();
        let link = if let Some(product) = Product::of(rw, value) {
            product.is_scale(rw, scale, product.output).then_some(Link::Product(product))?
        } else if let Some(add) = rw.call_of(value, "add") {
            match with_constant(rw, &add) {
                Some((read, addend)) => {
                    values.push(read);
                    Link::Add(addend, next)
                }
                None => {
                    values.extend(&add.args);
                    Link::Sum(next, next + 1)
                }
            }
        } else if let Some(add) = rw.call_of(value, "nn.bias_add") {
            let &[read, bias] = add.args.as_slice() else { return None };
            let axis = rw.terms().attrs(add.attrs).int("axis").unwrap_or(1);
            if !rw.is_constant(bias) || !is_along(rw, scale, read, axis) {
                return None;
            }
            values.push(read);
            Link::BiasAdd(bias, add.attrs, next)
        } else {
            let relu = rw.call_of(value, "nn.relu")?;
            is_positive(rw, scale).then_some(())?;
            values.push(relu.args[0]);
            Link::Relu(next)
        };
        links.push(link);
    }
    for (place, link) in links.into_iter().enumerate().rev() {
        values[place] = match link {
            Link::Product(product) => product.scaled(rw, product.data, product.output.1, scale)?,
            Link::Add(addend, read) => {
                let scaled = rw.apply("multiply", &[addend, scale]);
                rw.apply("add", &[values[read], scaled])
            }
            Link::BiasAdd(bias, attrs, read) => {
                let count = rw.extents(scale)?.iter().product();
                let count = rw.cx().dim(count);
                let scale = rw.reshape(scale, &[count]);
                let scaled = rw.apply("multiply", &[bias, scale]);
                rw.call_op("nn.bias_add", &[values[read], scaled], attrs)
            }
            Link::Sum(left, right) => rw.apply("add", &[values[left], values[right]]),
            Link::Relu(read) => rw.apply("nn.relu", &[values[read]]),
        };
    }
    values.first().copied()
}

/// Whether a scale is one number, or all its numbers are along an axis of a tensor.
fn is_along(rw: &Rewriter, scale: Expr, tensor: Expr, axis: i64) -> bool {
    let (Some(shape), Some(rank)) = (rw.extents(scale), rw.rank(tensor)) else { return false };
    let count: i64 = shape.iter().product();
    let axis = axis.rem_euclid(rank.max(1) as i64) as usize;
    let place = (axis + shape.len()).checked_sub(rank);
    count == 1 || place.is_some_and(|place| shape[place] == count)
}
