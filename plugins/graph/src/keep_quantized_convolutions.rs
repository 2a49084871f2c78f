//! Has convolutions of bytes on a scale compute in integers, and maxima of such bytes stay bytes.
//!
//! ```ir
//! %a = subtract(cast(%x) { dtype = "i32" }, %z)                         %x: u8[n, 64, 56, 56]
//! %w = subtract(cast(const(i8[64, 64, 3, 3])) { dtype = "i32" }, …)
//! %y = nn.conv2d(multiply(cast(%a) { dtype = "f32" }, %s), multiply(cast(%w) { dtype = "f32" }, const(f32[64, 1, 1, 1])))
//!                        =>
//! %y = multiply(cast(nn.conv2d(%a, %w)) { dtype = "f32" }, multiply(const(f32[1, 64, 1, 1]), %s))
//! ```
//!
//! Sums of integers are exact, so only the scales round. `relax.ConvertToDots` makes dot products of it, so this is done where the
//! processor has them and channels fill them.
//!
//! The largest of numbers on a scale is the largest of the bytes: a `nn.max_pool2d` between numbers of one scale reads and writes bytes,
//! which gives the same bytes.

use tenon_plugin_api::prelude::*;

use crate::convert_to_dots::{Channels, has_dots};

/// Has convolutions of bytes on a scale compute in integers, and maxima of such bytes stay bytes.
#[pass(
    name = "relax.KeepQuantizedConvolutions",
    opt_level = 1,
    phase = "optimize",
    before = ["relax.FoldConstant", "relax.ConvertToDots"]
)]
fn keep_quantized_convolutions(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    if cx.keeps_floats() || !has_dots(cx) {
        return Ok(func);
    }
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let args = args.to_vec();
        let made = match (body.op_name(callee), args.as_slice()) {
            (Some("nn.conv2d"), &[data, weight]) => of_integers(&mut rw, [data, weight], attrs),
            (Some("cast"), &[x]) => of_bytes(&mut rw, expr, x),
            _ => None,
        };
        if let Some(made) = made
            && rw.body().ty(made) == body.ty(expr)
        {
            rw.replace(expr, made);
        }
    }
    rw.finish()
}

/// Integers on a scale: `(x - zero) * scale`.
struct Scaled {
    /// `x - zero` in i32.
    integers: Expr,
    /// In a byte each, where it is one.
    bytes: Expr,
    zero: Option<Expr>,
    scale: Expr,
}

impl Scaled {
    /// What f32 were made of, by multiplication with a scale.
    fn of(rw: &mut Rewriter, expr: Expr) -> Option<Self> {
        let scaled = rw.call_of(expr, "multiply")?;
        let &[value, scale] = scaled.args.as_slice() else { return None };
        let cast = rw.call_of(value, "cast")?;
        let &[integers] = cast.args.as_slice() else { return None };
        let moved = rw.call_of(integers, "subtract");
        let (widened, zero) = match moved.as_ref().map(|moved| moved.args.as_slice()) {
            Some(&[x, zero]) => (x, Some(zero)),
            _ => (integers, None),
        };
        let bytes = *rw.call_of(widened, "cast")?.args.first()?;
        let is_of = |rw: &Rewriter, expr, dtype| rw.tensor(expr).is_some_and(|of| of.0 == dtype);
        let is_scaled = is_of(rw, expr, DType::F32) && is_of(rw, integers, DType::I32);
        let is_byte = is_of(rw, bytes, DType::U8) || is_of(rw, bytes, DType::I8);
        (is_scaled && is_byte).then_some(Self { integers, bytes, zero, scale })
    }
}

/// A convolution of integers, on the product of both scales.
fn of_integers(rw: &mut Rewriter, [data, weight]: [Expr; 2], attrs: Attrs) -> Option<Expr> {
    let kernel = rw.extents(weight)?;
    Channels::of(rw, data, &kernel, attrs)?;
    let (data, weight) = (Scaled::of(rw, data)?, Scaled::of(rw, weight)?);
    let is_constant = rw.is_constant(weight.bytes) && rw.is_constant(weight.scale);
    if !is_constant || !rw.extents(data.scale)?.is_empty() {
        return None;
    }
    let scale = match rw.extents(weight.scale)?.as_slice() {
        [] => weight.scale,
        &[outputs, 1, 1, 1] if outputs == kernel[0] => {
            let dims = [1, outputs, 1, 1].map(|extent| rw.cx().dim(extent));
            rw.reshape(weight.scale, &dims)
        }
        _ => return None,
    };
    let sums = rw.call_op("nn.conv2d", &[data.integers, weight.integers], attrs);
    let sums = rw.in_dtype(sums, DType::F32);
    let scale = rw.apply("multiply", &[scale, data.scale]);
    Some(rw.apply("multiply", &[sums, scale]))
}

/// The bytes of a maximum of numbers on a scale, on the same scale: the maximum of their bytes.
fn of_bytes(rw: &mut Rewriter, expr: Expr, x: Expr) -> Option<Expr> {
    let (dtype, _) = rw.tensor(expr)?;
    if !matches!(dtype, DType::U8 | DType::I8) {
        return None;
    }
    let clip = rw.call_of(x, "clip")?;
    let (least, most) = dtype.int_bounds();
    let attrs = rw.terms().attrs(clip.attrs);
    if attrs.float("min") != Some(least as f64) || attrs.float("max") != Some(most as f64) {
        return None;
    }
    let (rounded, zero) = match rw.call_of(clip.args[0], "add") {
        Some(sum) => (sum.args[0], rw.splat(sum.args[1])?),
        None => (clip.args[0], 0.0),
    };
    let round = rw.call_of(rounded, "round")?;
    let quotient = rw.call_of(round.args[0], "divide")?;
    let pool = rw.call_of(quotient.args[0], "nn.max_pool2d")?;
    let of_data = Scaled::of(rw, pool.args[0])?;
    let of_zero = match of_data.zero {
        Some(zero) => rw.splat(zero)?,
        None => 0.0,
    };
    let scales = [rw.splat(quotient.args[1])?, rw.splat(of_data.scale)?];
    // A number of steps, times a step, divided by it, is off by less than half a step.
    let is_one_scale = scales[0] == scales[1] && (1e-30..1e30).contains(&scales[0]);
    if !is_one_scale || zero != of_zero || rw.tensor(of_data.bytes)?.0 != dtype {
        return None;
    }
    Some(rw.call_op("nn.max_pool2d", &[of_data.bytes], pool.attrs))
}
