//! Convolution.

use crate::ir::Context;
use crate::onnx::import::builder::Value;
use crate::onnx::import::error::{Problem, invalid, unsupported};
use crate::onnx::import::node::NodeCx;

use super::shape::reshape_to;
use super::window::{Image, Window};

/// `Conv` over one or two spatial axes; the bias is added for each channel.
pub(in crate::onnx::import) fn conv(cx: &mut NodeCx<'_, '_>) -> Result<Vec<Value>, Problem> {
    cx.check_arity(2, 3)?;
    let (x, weight) = (cx.input(0)?, cx.input(1)?);
    let image = Image::of(cx, x)?;
    let weight = Image::of(cx, weight)?;
    let extents = [2, 3].map(|axis| cx.terms().dim_value(weight.dims[axis]));
    let kernel = match (extents, image.pair(cx, "kernel_shape")?) {
        ([Some(h), Some(w)], None) => [h, w],
        ([Some(h), Some(w)], Some(given)) if given == [h, w] => given,
        ([Some(h), Some(w)], Some(given)) => {
            return invalid(format!("its kernel_shape is {given:?}, but the weight's is {h}, {w}"));
        }
        (_, Some(given)) => given,
        (_, None) => return unsupported("a kernel of unknown size"),
    };
    let window = Window::of(cx, image, kernel)?;
    let mut attrs = window.attrs();
    attrs.push(("groups", cx.int_or("group", 1)?.into()));
    let mut y = cx.call("nn.conv2d", &[image.value, weight.value], &attrs)?;
    if let Some(bias) = cx.optional(2) {
        let bias = per_channel(cx, bias, 2)?;
        y = cx.apply("add", &[y, bias])?;
    }
    Ok(vec![image.restore(cx, y)?])
}

/// A vector of one element per channel, with `spatial` axes of extent 1 behind the channels.
fn per_channel(cx: &mut NodeCx<'_, '_>, vector: Value, spatial: usize) -> Result<Value, Problem> {
    let &[channels] = cx.dims(vector)?.as_slice() else {
        return invalid("a vector of one element per channel is expected");
    };
    let one = cx.cx().dim(1);
    let mut dims = vec![one, channels];
    dims.resize(2 + spatial, one);
    reshape_to(cx, vector, &dims)
}
