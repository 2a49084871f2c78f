//! The middle of a tensor, with zeros around it where it is too small.

use tenon_plugin_api::rule::prelude::*;

use crate::movement::pad::with_around;
use crate::onnx::steps::{cast_to, not_below_zero};

/// `CenterCropPad`: axes are cut or padded to the extents that the second input says. Of an odd number of elements one
/// more is cut or padded at the end.
#[rule(import.onnx, key = "CenterCropPad", since = 18)]
fn center_crop_pad(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let wanted = node.input_dims(1)?;
    let axes = match node.ints("axes")? {
        Some(axes) => node.axes(&axes, dims.len())?,
        None => (0..dims.len()).collect(),
    };
    if axes.len() != wanted.len() {
        return invalid(format!("it has {} extents for {} axes", wanted.len(), axes.len()));
    }
    let (mut begin, mut end, mut cut) = (Vec::new(), Vec::new(), Vec::new());
    let mut widths = vec![0; 2 * dims.len()];
    let mut open = Vec::new();
    for (axis, wanted) in axes.into_iter().zip(wanted) {
        if dims[axis] == wanted {
            continue;
        }
        let values = [dims[axis], wanted].map(|dim| node.terms().dim_value(dim));
        let [Some(extent), Some(wanted)] = values else {
            open.push((axis, wanted));
            continue;
        };
        if wanted < 0 {
            return invalid(format!("the extent {wanted}"));
        }
        let (before, more) = ((extent - wanted).abs() / 2, (wanted - extent).max(0));
        if wanted < extent {
            begin.push(before);
            end.push(before + wanted);
            cut.push(axis as i64);
        } else {
            widths[2 * axis] = before;
            widths[2 * axis + 1] = more - before;
        }
    }
    let mut y = x;
    if !cut.is_empty() {
        let attrs = [("begin", begin.into()), ("end", end.into()), ("axes", cut.into())];
        y = node.call("strided_slice", &[y], &attrs)?;
    }
    if widths.iter().any(|&width| width != 0) {
        y = node.call("nn.pad", &[y], &[("pad_width", widths.into())])?;
    }
    Ok(vec![to_open(node, y, &open)?])
}

/// Cuts and pads axes, to extents of which a call says whether they are less than those that are there.
fn to_open(node: &mut Node<'_>, x: Value, wanted: &[(usize, Dim)]) -> Result<Value, Problem> {
    if wanted.is_empty() {
        return Ok(x);
    }
    let (two, dims) = (node.cx().dim(2), node.dims(x)?);
    let (mut first, mut sizes) = (vec![node.cx().dim(0); dims.len()], dims.clone());
    for &(axis, wanted) in wanted {
        let less = not_below_zero(node, node.cx().dim_sub(dims[axis], wanted));
        first[axis] = node.cx().dim_floor_div(less, two);
        sizes[axis] = node.cx().dim_min(dims[axis], wanted);
    }
    // Truth values are padded as bytes.
    let dtype = node.dtype(x)?;
    let own = if dtype == DType::BOOL { DType::U8 } else { dtype };
    let mut y = cast_to(node, x, own)?;
    if sizes != dims {
        let (first, sizes) = (node.known(&Known::vector(first))?, node.shape(&sizes)?);
        y = node.apply("dynamic_slice", &[y, first, sizes])?;
    }
    for &(axis, wanted) in wanted {
        if sizes[axis] == wanted {
            continue;
        }
        let more = not_below_zero(node, node.cx().dim_sub(wanted, dims[axis]));
        let before = node.cx().dim_floor_div(more, two);
        y = with_around(node, y, axis, [before, wanted], 0.0)?;
    }
    cast_to(node, y, dtype)
}
