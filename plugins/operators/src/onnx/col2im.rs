//! Blocks of an image put together.

use tenon_plugin_api::rule::prelude::*;

use super::spatial::check;
use super::steps::{extent_of, reshape_to};

/// `Col2Im`: the blocks lie along one axis.
#[rule(import.onnx, key = "Col2Im", since = 18)]
fn col2im(node: &mut Node<'_>) -> Outputs {
    node.check_arity(3, 3)?;
    let x = node.input(0)?;
    let (image, block) = (node.input_dims(1)?, node.input_ints(2)?);
    let (dims, rank) = (node.dims(x)?, block.len());
    let &[batch, channels, blocks] = dims.as_slice() else {
        return invalid(format!("its data have {} dimensions", dims.len()));
    };
    let list = |name: &str, count: usize, least: i64| -> Result<Vec<i64>, Problem> {
        let list = node.ints(name)?.unwrap_or_else(|| vec![least; count]);
        check(name, &list, count, least)?;
        Ok(list)
    };
    check("block_shape", &block, rank, 1)?;
    let (strides, dilations) = (list("strides", rank, 1)?, list("dilations", rank, 1)?);
    let pads = list("pads", 2 * rank, 0)?;
    if image.len() != rank {
        return invalid(format!("an image of {} axes, blocks of {rank}", image.len()));
    }
    let mut apart = vec![batch, channels];
    for (axis, &extent) in image.iter().enumerate() {
        let extent = extent_of(node, extent, "extent of the image")?;
        let padded = extent + pads[axis] + pads[rank + axis];
        let room = padded - (block[axis] - 1) * dilations[axis] - 1;
        if room < 0 {
            return invalid(format!("a block is larger than the image along axis {axis}"));
        }
        apart.push(node.cx().dim(room / strides[axis] + 1));
    }
    let places = node.cx().dim_product(&apart[2..]);
    super::steps::check_equal(node, [blocks, places], "the blocks and their number")?;
    let x = reshape_to(node, x, &apart)?;
    let image = node.shape(&image)?;
    let attrs = [
        ("block_shape", block.into()),
        ("strides", strides.into()),
        ("padding", pads[..rank].to_vec().into()),
        ("dilation", dilations.into()),
    ];
    Ok(vec![node.call("col2im", &[x, image], &attrs)?])
}
