//! The middle of a tensor, with zeros around it where it is too small.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::extent_of;

/// `CenterCropPad`: axes are cut or padded to the extents that the second input says. Of an odd number of elements one
/// more is cut or padded at the end.
#[rule(import.onnx, key = "CenterCropPad", since = 18)]
fn center_crop_pad(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let wanted = match node.elements(node.input(1)?) {
        Some(known) => known.elements,
        None => return node.not_extents(1),
    };
    let axes = match node.ints("axes")? {
        Some(axes) => node.axes(&axes, dims.len())?,
        None => (0..dims.len()).collect(),
    };
    if axes.len() != wanted.len() {
        return invalid(format!("it has {} extents for {} axes", wanted.len(), axes.len()));
    }
    let (mut begin, mut end, mut cut) = (Vec::new(), Vec::new(), Vec::new());
    let mut widths = vec![0; 2 * dims.len()];
    for (axis, wanted) in axes.into_iter().zip(wanted) {
        if dims[axis] == wanted {
            continue;
        }
        let (extent, wanted) = (
            extent_of(node, dims[axis], "dimension that is cut or padded")?,
            extent_of(node, wanted, "extent to cut or pad to")?,
        );
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
    Ok(vec![y])
}
