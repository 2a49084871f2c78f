//! Pooling.

use crate::onnx::import::builder::Value;
use crate::onnx::import::error::{Problem, invalid};
use crate::onnx::import::node::NodeCx;

use super::window::{Image, Window};

type Outputs = Result<Vec<Value>, Problem>;

/// `MaxPool`, without the indices.
pub(in crate::onnx::import) fn max(cx: &mut NodeCx<'_, '_>) -> Outputs {
    // The order of the indices.
    cx.ignore("storage_order");
    pool(cx, "nn.max_pool2d")
}

/// `AveragePool`.
pub(in crate::onnx::import) fn average(cx: &mut NodeCx<'_, '_>) -> Outputs {
    pool(cx, "nn.avg_pool2d")
}

fn pool(cx: &mut NodeCx<'_, '_>, op: &'static str) -> Outputs {
    let image = Image::of(cx, cx.input(0)?)?;
    let Some(kernel) = image.pair(cx, "kernel_shape")? else {
        return invalid("its attribute `kernel_shape` is missing");
    };
    let window = Window::of(cx, image, kernel)?;
    let mut attrs = window.attrs();
    attrs.push(("pool_size", window.kernel.to_vec().into()));
    attrs.push(("ceil_mode", cx.flag("ceil_mode", false)?.into()));
    if op == "nn.avg_pool2d" {
        attrs.push(("count_include_pad", cx.flag("count_include_pad", false)?.into()));
    }
    let y = cx.call(op, &[image.value], &attrs)?;
    Ok(vec![image.restore(cx, y)?])
}

/// `GlobalAveragePool`.
pub(in crate::onnx::import) fn global_average(cx: &mut NodeCx<'_, '_>) -> Outputs {
    global(cx, "nn.global_avg_pool2d", "mean")
}

/// `GlobalMaxPool`.
pub(in crate::onnx::import) fn global_max(cx: &mut NodeCx<'_, '_>) -> Outputs {
    global(cx, "nn.global_max_pool2d", "max")
}

fn global(cx: &mut NodeCx<'_, '_>, pool: &'static str, reduce: &'static str) -> Outputs {
    let x = cx.input(0)?;
    let rank = cx.dims(x)?.len();
    if rank == 4 {
        return Ok(vec![cx.apply(pool, &[x])?]);
    }
    let axes: Vec<i64> = (2..rank as i64).collect();
    if axes.is_empty() {
        return invalid(format!("its data have {rank} dimensions"));
    }
    let attrs = [("axis", axes.into()), ("keepdims", true.into())];
    Ok(vec![cx.call(reduce, &[x], &attrs)?])
}
