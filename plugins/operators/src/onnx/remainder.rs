//! Remainders.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::fold::{self, Folded};

/// `Mod`: the remainder has the sign of the divisor, with `fmod` that of the dividend.
#[rule(import.onnx, key = "Mod", since = 10)]
fn remainder(node: &mut Node<'_>) -> Outputs {
    let (a, b) = (node.input(0)?, node.input(1)?);
    let is_truncated = node.flag("fmod", false)?;
    let dtype = node.dtype(a)?;
    let rest = match dtype.is_float() {
        true => node.apply("mod", &[a, b])?,
        false => {
            let quotient = node.apply("divide", &[a, b])?;
            let product = node.apply("multiply", &[quotient, b])?;
            node.apply("subtract", &[a, product])?
        }
    };
    if is_truncated || !(dtype.is_signed() || dtype.is_float()) {
        return Ok(vec![rest]);
    }
    // A remainder of the other sign than the divisor is one divisor too low.
    let zero = node.scalar_like(a, 0.0)?;
    let is_below = node.apply("less", &[rest, zero])?;
    let is_divisor_below = node.apply("less", &[b, zero])?;
    let is_other_sign = node.apply("not_equal", &[is_below, is_divisor_below])?;
    let is_something = node.apply("not_equal", &[rest, zero])?;
    let is_low = node.apply("logical_and", &[is_other_sign, is_something])?;
    let raised = node.apply("add", &[rest, b])?;
    Ok(vec![node.apply("where", &[is_low, raised, rest])?])
}

/// `Mod` of dimensions.
#[rule(import.onnx, key = "Mod", since = 10, benefit = 2)]
fn remainder_of_dims(node: &mut Node<'_>) -> Folded {
    if node.flag("fmod", false)? {
        return Ok(None);
    }
    // That of a division rounded down, as long as the divisor is not negative; by 0 it says nothing.
    fold::arithmetic(node, |node, a, b| {
        let is_right = node.terms().dim_lower_bound(b)? >= 0;
        is_right.then(|| node.cx().dim_floor_mod(a, b))
    })
}
