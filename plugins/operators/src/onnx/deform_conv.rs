//! Convolution whose taps are moved: images read at places, then a product.

use tenon_plugin_api::rule::prelude::*;

use super::spatial::{Spatial, check};
use super::steps::{check_equal, extent_of, reshape_to};

/// `DeformConv`: each tap of each window is read where its offset leads, between elements, and the product with the kernels is one of
/// matrices.
#[rule(import.onnx, key = "DeformConv", since = 19)]
fn deform_conv(node: &mut Node<'_>) -> Outputs {
    node.check_arity(3, 5)?;
    let (x, weight, offset) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let (dims, kernel) = (node.dims(x)?, node.dims(weight)?);
    let (&[batch, channels, height, width], &[outputs, inputs, kernel_h, kernel_w]) =
        (dims.as_slice(), kernel.as_slice())
    else {
        return unsupported(format!("{} spatial axes; 2 are", dims.len().saturating_sub(2)));
    };
    let extents = [kernel_h, kernel_w].map(|dim| extent_of(node, dim, "extent of a kernel"));
    let [kernel_h, kernel_w] = extents;
    let extents = vec![kernel_h?, kernel_w?];
    if let Some(given) = node.ints("kernel_shape")?.filter(|given| *given != extents) {
        return invalid(format!("its kernel_shape is {given:?}, but the weight's is {extents:?}"));
    }
    let window = Spatial::of(node, &[height, width], extents)?;
    let (groups, fields) = (node.int_or("group", 1)?, node.int_or("offset_group", 1)?);
    let count = extent_of(node, channels, "number of channels")?;
    let output_count = extent_of(node, outputs, "number of channels")?;
    let is_whole = |count: i64, parts: i64| parts > 0 && count % parts == 0;
    if !is_whole(count, groups) || !is_whole(output_count, groups) || !is_whole(count, fields) {
        return invalid(format!("{count} channels in {groups} groups, {fields} of offsets"));
    }
    check_equal(node, [inputs, node.cx().dim(count / groups)], "the channels of data and kernel")?;
    let taps = window.kernel.iter().product::<i64>();
    let offsets = node.dims(offset)?;
    let &[_, offset_channels, out_h, out_w] = offsets.as_slice() else {
        return invalid("its offsets have not four dimensions");
    };
    let needed = node.cx().dim(2 * taps * fields);
    check_equal(node, [offset_channels, needed], "the offsets and the taps")?;

    let cx = node.cx().clone();
    let (dim, places) = (|value| cx.dim(value), cx.dim_mul(out_h, out_w));
    let images = cx.dim_mul(batch, dim(fields));
    let grid = reshape_to(node, offset, &[images, dim(taps), dim(2), places])?;
    let grid = node.call("transpose", &[grid], &[("axes", vec![0, 2, 1, 3].into())])?;
    let extent = |dim| extent_of(node, dim, "extent of the result");
    let first = starts(node, &window, [extent(out_h)?, extent(out_w)?], grid)?;
    // The grid has the place along the last axis first.
    let flip = [
        ("axes", vec![1].into()),
        ("begin", vec![-1].into()),
        ("end", vec![i64::MIN].into()),
        ("strides", vec![-1].into()),
    ];
    let grid = node.apply("add", &[grid, first])?;
    let grid = node.call("strided_slice", &[grid], &flip)?;
    let per_field = dim(count / fields);
    let image = reshape_to(node, x, &[images, per_field, height, width])?;
    let mut read =
        node.call("image.grid_sample", &[image, grid], &[("in_elements", true.into())])?;
    if let Some(mask) = node.optional(4) {
        let mask = reshape_to(node, mask, &[images, dim(1), dim(taps), places])?;
        read = node.apply("multiply", &[read, mask])?;
    }
    let depth = dim(count / groups * taps);
    let read = reshape_to(node, read, &[batch, dim(groups), depth, places])?;
    let per_group = dim(output_count / groups);
    let weight = reshape_to(node, weight, &[dim(groups), per_group, depth])?;
    let product = node.apply("matmul", &[weight, read])?;
    let mut y = reshape_to(node, product, &[batch, outputs, out_h, out_w])?;
    if let Some(bias) = node.optional(3) {
        let bias = reshape_to(node, bias, &[dim(1), outputs, dim(1), dim(1)])?;
        y = node.apply("add", &[y, bias])?;
    }
    Ok(vec![y])
}

/// Where each tap of each window is without its offset, `[1, 2, taps, places]`.
fn starts(
    node: &mut Node<'_>,
    window: &Spatial,
    [out_h, out_w]: [i64; 2],
    like: Value,
) -> Result<Value, Problem> {
    let (kernel, dtype) = (&window.kernel, node.dtype(like)?);
    check("kernel_shape", kernel, 2, 1)?;
    let (taps, places) = (kernel[0] * kernel[1], out_h.saturating_mul(out_w));
    let count = usize::try_from(places.saturating_mul(2 * taps)).ok();
    let bytes = count.and_then(|count| count.checked_mul(8));
    if !bytes.is_some_and(|bytes| node.spend(bytes)) {
        return unsupported("a result of this size");
    }
    let mut elements = Vec::new();
    for axis in 0..2 {
        for tap in 0..taps {
            let tap = [tap / kernel[1], tap % kernel[1]][axis] * window.dilations[axis];
            for place in 0..places {
                let place = [place / out_w, place % out_w][axis] * window.strides[axis];
                let at = (place + tap - window.pads[0][axis]) as f64;
                let Some(bytes) = Scalar::bytes_of(dtype, at) else {
                    return unsupported(format!("the element type {dtype}"));
                };
                elements.extend(bytes);
            }
        }
    }
    node.constant(dtype, &[1, 2, taps, places], &elements)
}
