//! Pooling over windows, and over everything.

use tenon_plugin_api::rule::prelude::*;

use super::window::{Image, Window};

pub(crate) fn pool(node: &mut Node<'_>, op: &'static str) -> Outputs {
    let image = Image::of(node, node.input(0)?)?;
    let Some(kernel) = image.pair(node, "kernel_shape")? else {
        return invalid("its attribute `kernel_shape` is missing");
    };
    let window = Window::of(node, image, kernel)?;
    let mut attrs = window.attrs();
    attrs.push(("pool_size", window.kernel.to_vec().into()));
    attrs.push(("ceil_mode", node.flag("ceil_mode", false)?.into()));
    if op == "nn.avg_pool2d" {
        attrs.push(("count_include_pad", node.flag("count_include_pad", false)?.into()));
    }
    let y = node.call(op, &[image.value], &attrs)?;
    Ok(vec![image.restore(node, y)?])
}

pub(crate) fn global(node: &mut Node<'_>, pool: &'static str, reduce: &'static str) -> Outputs {
    let x = node.input(0)?;
    let rank = node.dims(x)?.len();
    if rank == 4 {
        return Ok(vec![node.apply(pool, &[x])?]);
    }
    let axes: Vec<i64> = (2..rank as i64).collect();
    if axes.is_empty() {
        return invalid(format!("its data have {rank} dimensions"));
    }
    let attrs = [("axis", axes.into()), ("keepdims", true.into())];
    Ok(vec![node.call(reduce, &[x], &attrs)?])
}
