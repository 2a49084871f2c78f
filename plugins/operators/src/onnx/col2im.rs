//! Blocks of an image put together.

use tenon_plugin_api::rule::prelude::*;

use super::spatial::check;
use super::steps::{check_equal, not_below_zero, reshape_to};

/// `Col2Im`: the blocks lie along one axis.
#[rule(import.onnx, key = "Col2Im", since = 18)]
fn col2im(node: &mut Node<'_>) -> Outputs {
    node.check_arity(3, 3)?;
    let x = node.input(0)?;
    let (image, block) = (node.input_dims(1)?, node.input_dims(2)?);
    let (dims, rank) = (node.dims(x)?, block.len());
    let &[batch, channels, blocks] = dims.as_slice() else {
        return invalid(format!("its data have {} dimensions", dims.len()));
    };
    let list = |name: &str, count: usize, least: i64| -> Result<Vec<i64>, Problem> {
        let list = node.ints(name)?.unwrap_or_else(|| vec![least; count]);
        check(name, &list, count, least)?;
        Ok(list)
    };
    let (strides, dilations) = (list("strides", rank, 1)?, list("dilations", rank, 1)?);
    let pads = list("pads", 2 * rank, 0)?;
    if image.len() != rank {
        return invalid(format!("an image of {} axes, blocks of {rank}", image.len()));
    }
    let cx = node.cx();
    let mut places = Vec::with_capacity(rank);
    for (axis, (&extent, &block)) in image.iter().zip(&block).enumerate() {
        let around = pads[axis] + pads[rank + axis] + dilations[axis] - 1;
        let room = cx.dim_sum(&[(extent, 1), (block, -dilations[axis]), (cx.dim(around), 1)]);
        if node.terms().dim_value(room).is_some_and(|room| room < 0) {
            return invalid(format!("a block is larger than the image along axis {axis}"));
        }
        let steps = cx.dim_floor_div(room, cx.dim(strides[axis]));
        places.push(not_below_zero(node, cx.dim_add(steps, cx.dim(1))));
    }
    check_equal(node, [blocks, cx.dim_product(&places)], "the blocks and their number")?;
    let mut attrs = vec![
        ("strides", strides.into()),
        ("padding", pads[..rank].to_vec().into()),
        ("dilation", dilations.into()),
    ];
    let known: Option<Vec<i64>> = block.iter().map(|&dim| node.terms().dim_value(dim)).collect();
    let apart = match known {
        Some(block) => {
            check("block_shape", &block, rank, 1)?;
            attrs.push(("block_shape", block.into()));
            [&[batch, channels], places.as_slice()].concat()
        }
        None => {
            let all = cx.dim_max(cx.dim_product(&block), cx.dim(1));
            let channels = cx.dim_floor_div(channels, all);
            [&[batch, channels], block.as_slice(), &places].concat()
        }
    };
    let x = reshape_to(node, x, &apart)?;
    let image = node.shape(&image)?;
    Ok(vec![node.call("col2im", &[x, image], &attrs)?])
}
