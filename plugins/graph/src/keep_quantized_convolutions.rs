//! Has convolutions of bytes on a scale compute in integers.
//!
//! ```ir
//! %a = subtract(cast(%x) { dtype = "i32" }, %z)                         %x: u8[n, 64, 56, 56]
//! %w = subtract(cast(const(i8[64, 64, 3, 3])) { dtype = "i32" }, …)
//! %y = nn.conv2d(multiply(cast(%a) { dtype = "f32" }, %s), multiply(cast(%w) { dtype = "f32" }, const(f32[64, 1, 1, 1])))
//!                        =>
//! %y = multiply(cast(nn.conv2d(%a, %w)) { dtype = "f32" }, multiply(const(f32[1, 64, 1, 1]), %s))
//! ```
//!
//! Data of one axis and kernels for them are reshaped, to rows of one row: their bytes are. Sums of integers are exact, so only the scales round. `relax.ConvertToDots` makes dot products of it, so this is done where the
//! processor has them and channels fill them.

use tenon_plugin_api::prelude::*;

use crate::convert_to_dots::{Channels, data_of_dots};
use crate::scaled::Scaled;

/// Has convolutions of bytes on a scale compute in integers.
#[pass(
    name = "relax.KeepQuantizedConvolutions",
    opt_level = 1,
    phase = "optimize",
    before = ["relax.FoldConstant", "relax.ConvertToDots"]
)]
fn keep_quantized_convolutions(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    if cx.keeps_floats() || data_of_dots(cx).is_none() {
        return Ok(func);
    }
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let (Some(op @ ("nn.conv2d" | "nn.conv3d")), &[data, weight]) =
            (body.op_name(callee), &args.to_vec()[..])
        else {
            continue;
        };
        if let Some(made) = of_integers(&mut rw, op, [data, weight], attrs)
            && rw.body().ty(made) == body.ty(expr)
        {
            rw.replace(expr, made);
        }
    }
    rw.finish()
}

/// A convolution of integers, on the product of both scales.
fn of_integers(
    rw: &mut Rewriter,
    op: &str,
    [data, weight]: [Expr; 2],
    attrs: Attrs,
) -> Option<Expr> {
    let kernel = rw.extents(weight)?;
    Channels::of(rw, data, &kernel, attrs)?;
    let (data, weight) = (Scaled::of_reshaped(rw, data)?, Scaled::of_reshaped(rw, weight)?);
    let own_scale = rw.call_of(weight.scale, "reshape").map_or(weight.scale, |call| call.args[0]);
    let is_constant = rw.is_constant(weight.bytes) && rw.is_constant(own_scale);
    if !is_constant || !rw.extents(data.scale)?.is_empty() {
        return None;
    }
    let scale = match rw.extents(weight.scale)?.as_slice() {
        [] => weight.scale,
        [outputs, ones @ ..] if *outputs == kernel[0] && ones.iter().all(|&one| one == 1) => {
            let mut dims = vec![rw.cx().dim(1); kernel.len()];
            dims[1] = rw.cx().dim(*outputs);
            rw.reshape(weight.scale, &dims)
        }
        _ => return None,
    };
    let sums = rw.call_op(op, &[data.integers, weight.integers], attrs);
    let sums = rw.in_dtype(sums, DType::F32);
    let scale = rw.apply("multiply", &[scale, data.scale]);
    Some(rw.apply("multiply", &[sums, scale]))
}
