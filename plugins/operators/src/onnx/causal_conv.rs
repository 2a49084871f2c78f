//! Convolution over what came before.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, check_equal, extent_of, joined, not_among, reshape_to, sliced};

/// `CausalConvWithState`: each channel is convolved along a sequence with its own kernel, which reaches back into the
/// state. The new state are the last elements that a kernel reaches back to.
#[rule(import.onnx, key = "CausalConvWithState", since = 27)]
fn causal_conv(node: &mut Node<'_>) -> Outputs {
    node.check_arity(2, 4)?;
    let (x, kernel) = (node.input(0)?, node.input(1)?);
    let (dims, kernel_dims) = (node.dims(x)?, node.dims(kernel)?);
    let (&[_, channels, _], &[outputs, one, taps]) = (dims.as_slice(), kernel_dims.as_slice())
    else {
        return invalid("its input and weight have not three dimensions");
    };
    let unit = node.cx().dim(1);
    check_equal(node, [outputs, channels], "the channels of input and weight")?;
    check_equal(node, [one, unit], "a kernel's channels and the one that it is for")?;
    let reach = extent_of(node, taps, "size of the kernel")? - 1;
    if reach < 0 {
        return invalid("its kernel has no elements");
    }
    let whole = match node.optional(3) {
        Some(state) => joined(node, &[state, x], 2)?,
        None => node.call("nn.pad", &[x], &[("pad_width", vec![0, 0, 0, 0, reach, 0].into())])?,
    };
    let &[batch, _, length] = node.dims(whole)?.as_slice() else {
        return invalid("its state has not three dimensions");
    };
    let image = reshape_to(node, whole, &[batch, channels, unit, length])?;
    let kernel = reshape_to(node, kernel, &[outputs, one, unit, taps])?;
    let groups = extent_of(node, channels, "number of channels")?;
    let dtype = node.dtype(x)?;
    let mut attrs = vec![("groups", groups.into())];
    if matches!(dtype, DType::F16 | DType::BF16) {
        attrs.push(("out_dtype", "f32".into()));
    }
    let mut y = node.call("nn.conv2d", &[image, kernel], &attrs)?;
    if let Some(bias) = node.optional(2) {
        let own = node.dtype(y)?;
        let bias = cast_to(node, bias, own)?;
        let bias = reshape_to(node, bias, &[unit, channels, unit, unit])?;
        y = node.apply("add", &[y, bias])?;
    }
    match node.text("activation", "none")?.as_str() {
        "none" => {}
        "silu" | "swish" => y = node.apply("nn.silu", &[y])?,
        other => return not_among("activation", other, &["none", "silu", "swish"]),
    }
    let y = cast_to(node, y, dtype)?;
    let y = reshape_to(node, y, &dims)?;
    let first = if reach == 0 { i64::MAX } else { -reach };
    Ok(vec![y, sliced(node, whole, 2, [first, i64::MAX])?])
}
