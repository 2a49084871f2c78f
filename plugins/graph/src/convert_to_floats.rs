//! Computes products and convolutions of bytes with constants in floats that hold their sums exactly, where no instruction for dot
//! products does.
//!
//! ```ir
//! %a = subtract(cast(%x) { dtype = "i32" }, %z)                     %x: u8[n, 64, 56, 56], %z: i32[]
//! %y = nn.conv2d(%a, const(i32[64, 64, 3, 3], …))
//!                        =>
//! %d = nn.conv2d(cast(%a) { dtype = "f32" }, const(f32[64, 64, 3, 3], …))
//! %y = cast(%d) { dtype = "i32" }
//! ```
//!
//! An f32 holds every integer up to 2^24. What the data can be at most and the constants of a column say how large a sum of any of its
//! terms can be, in whatever order; where that is no more, floats compute the same integers. They have schedules and layouts that integers
//! lack, and an instruction that multiplies and adds at once. It comes behind `relax.ConvertToWinograd`, whose tiles would round.

use tenon_plugin_api::prelude::*;

/// Integers up to this one are all numbers of f32.
const EXACT: i64 = 1 << 24;

/// Computes products and convolutions of bytes with constants in floats, where these hold their sums.
#[pass(
    name = "relax.ConvertToFloats",
    opt_level = 3,
    phase = "optimize",
    after = ["relax.ConvertToDots", "relax.ConvertToShortDots", "relax.ConvertToWinograd"],
    before = ["relax.AlterOpLayout"]
)]
fn convert_to_floats(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let (Some(op @ ("matmul" | "nn.conv2d" | "nn.conv3d")), &[data, weights]) =
            (body.op_name(callee), &args.to_vec()[..])
        else {
            continue;
        };
        if rw.tensor(expr).is_none_or(|(dtype, _)| dtype != DType::I32)
            || !are_exact(&mut rw, op, data, weights, attrs)
        {
            continue;
        }
        let operands = [data, weights].map(|each| rw.in_dtype(each, DType::F32));
        let sums = rw.call_op(op, &operands, attrs);
        let made = rw.in_dtype(sums, DType::I32);
        if rw.body().ty(made) == body.ty(expr) {
            rw.replace(expr, made);
        }
    }
    rw.finish()
}

/// Whether all sums of terms of a product are integers that f32 holds.
fn are_exact(rw: &mut Rewriter, op: &str, data: Expr, weights: Expr, attrs: Attrs) -> bool {
    let columns = columns_of(rw, op, weights, attrs);
    let (Some(bounds), Some(columns)) = (bounds_of(rw, data), columns) else { return false };
    columns.into_iter().all(|[negative, positive]| {
        let [least, most] = bounds;
        let largest = (most * positive + least * negative).max(most * negative + least * positive);
        largest <= EXACT
    })
}

/// How far below and above zero numbers can be that are bytes, or bytes without their zero.
fn bounds_of(rw: &mut Rewriter, data: Expr) -> Option<[i64; 2]> {
    let (cast, zero) = match rw.call_of(data, "subtract") {
        Some(difference) => (difference.args[0], Some(difference.args[1])),
        None => (data, None),
    };
    let x = rw.call_of(cast, "cast")?.args[0];
    let (least, most) = byte_bounds(rw, x)?;
    let (low, high) = match zero {
        None => (0, 0),
        Some(zero) => match rw.splat(zero) {
            Some(zero) => (zero as i64, zero as i64),
            None => {
                let zero = rw.call_of(zero, "cast")?.args[0];
                byte_bounds(rw, zero)?
            }
        },
    };
    Some([(high - least).max(0), (most - low).max(0)])
}

fn byte_bounds(rw: &Rewriter, expr: Expr) -> Option<(i64, i64)> {
    let (dtype, _) = rw.tensor(expr)?;
    matches!(dtype, DType::U8 | DType::I8).then(|| dtype.int_bounds())
}

/// For each column of constants, or each output channel, the sums of its negative and of its positive elements, both without sign.
fn columns_of(rw: &mut Rewriter, op: &str, weights: Expr, attrs: Attrs) -> Option<Vec<[i64; 2]>> {
    let shape = rw.extents(weights)?;
    let attrs = rw.terms().attrs(attrs);
    let axis = match op {
        "matmul" => shape.len() - 1 - usize::from(attrs.bool("transpose_b") == Some(true)),
        _ => attrs.str("kernel_layout").unwrap_or("OIHW").find('O')?,
    };
    let columns = usize::try_from(*shape.get(axis)?).ok()?;
    let inner: i64 = shape[axis + 1..].iter().product();
    let inner = usize::try_from(inner).ok()?.max(1);
    let definition = rw.definition(weights);
    let View::Constant(constant) = rw.view(definition) else { return None };
    let mut sums = vec![[0i64; 2]; columns];
    for (at, element) in constant.bytes.as_chunks::<4>().0.iter().enumerate() {
        let value = i64::from(i32::from_le_bytes(*element));
        let sum = &mut sums[at / inner % columns][usize::from(value > 0)];
        *sum = sum.saturating_add(value.abs()).min(2 * EXACT);
    }
    Some(sums)
}
