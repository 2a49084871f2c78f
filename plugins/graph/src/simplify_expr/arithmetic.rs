//! Rules on numbers.

use tenon_plugin_api::prelude::*;

use super::At;

/// `x + -0`, `x - 0`, `x * 1`, `x / 1 => x`. Of integers there is one zero.
pub(super) fn neutral(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let &[a, b] = at.args else { return None };
    let is_float = rw.tensor(a)?.0.is_float();
    let is_neutral = |number: f64| match at.op {
        "add" => number == 0.0 && (number.is_sign_negative() || !is_float),
        "subtract" => number == 0.0 && number.is_sign_positive(),
        _ => number == 1.0,
    };
    if rw.splat(b).is_some_and(is_neutral) {
        return Some(a);
    }
    let is_commutative = matches!(at.op, "add" | "multiply");
    (is_commutative && rw.splat(a).is_some_and(is_neutral)).then_some(b)
}

/// `x - x`, `x * 0 => 0` of integers.
pub(super) fn zero(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let &[a, b] = at.args else { return None };
    let (dtype, shape) = rw.terms().static_tensor(at.ty)?;
    let is_zero = match at.op {
        "subtract" => rw.definition(a) == rw.definition(b),
        _ => rw.splat(a) == Some(0.0) || rw.splat(b) == Some(0.0),
    };
    if !dtype.is_int() || !is_zero {
        return None;
    }
    let zero = rw.number(dtype, 0.0)?;
    if shape.is_empty() {
        return Some(zero);
    }
    let dims: Vec<Dim> = shape.iter().map(|&extent| rw.cx().dim(extent)).collect();
    let shape = rw.shape(&dims);
    Some(rw.apply("broadcast_to", &[zero, shape]))
}

/// `x / c => x * (1 / c)` of floats, where `c` is a power of two whose inverse is no denormal.
pub(super) fn divide_by_power_of_two(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let &[x, divisor] = at.args else { return None };
    let (dtype, dims) = rw.tensor(divisor)?;
    let number = rw.splat(divisor).filter(|_| dtype.is_float() && dims.is_empty())?;
    let mantissa = number.to_bits() & ((1 << 52) - 1);
    // The smallest normal f16 is 2^-14, so these are exact in each dtype.
    if mantissa != 0 || !(1.0 / 16384.0..=16384.0).contains(&number.abs()) {
        return None;
    }
    let inverse = rw.number(dtype, 1.0 / number)?;
    Some(rw.apply("multiply", &[x, inverse]))
}

/// `(x + c) + d => x + (c + d)` for constants `c` and `d`.
pub(super) fn add_of_constants(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let (inner, outer) = split_constant(rw, at.args)?;
    let inner = rw.call_of(inner, "add")?;
    let (x, constant) = split_constant(rw, &inner.args)?;
    let sum = rw.apply("add", &[constant, outer]);
    Some(rw.apply("add", &[x, sum]))
}

/// The other argument and the constant one, where exactly one is constant.
fn split_constant(rw: &mut Rewriter, args: &[Expr]) -> Option<(Expr, Expr)> {
    let &[a, b] = args else { return None };
    match (rw.is_constant(a), rw.is_constant(b)) {
        (false, true) => Some((a, b)),
        (true, false) => Some((b, a)),
        _ => None,
    }
}

/// `f(x, x) => x`; a choice between equals does not depend on its condition.
pub(super) fn equal_arguments(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let &[.., a, b] = at.args else { return None };
    (rw.definition(a) == rw.definition(b)).then_some(a)
}

/// `where(true, x, y) => x`, `where(false, x, y) => y`.
pub(super) fn known_condition(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let &[cond, then, otherwise] = at.args else { return None };
    let is_true = rw.splat(cond)? != 0.0;
    Some(if is_true { then } else { otherwise })
}

/// `f(f(x)) => x`.
pub(super) fn inverse_of_itself(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let inner = rw.call_of(*at.args.first()?, at.op)?;
    inner.args.first().copied()
}

/// `f(f(x)) => f(x)`; whole numbers are not rounded, and absolute values are not negative, but for that of the least
/// signed integer, which is itself.
pub(super) fn idempotent(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let &[x] = at.args else { return None };
    let (dtype, _) = rw.tensor(x)?;
    let inner: &[&str] = match at.op {
        "nn.relu" if dtype.is_signed() => &["nn.relu"],
        "nn.relu" => &["nn.relu", "abs"],
        "abs" => &["abs"],
        _ => &["floor", "ceil", "round"],
    };
    inner.iter().any(|op| rw.call_of(x, op).is_some()).then_some(x)
}

/// `|-x| => |x|`, but of unsigned integers, which have no sign to lose.
pub(super) fn abs_of_negative(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let (dtype, _) = rw.terms().tensor(at.ty)?;
    if !dtype.is_float() && !dtype.is_signed() {
        return None;
    }
    let negated = rw.call_of(*at.args.first()?, "negative")?;
    Some(rw.apply("abs", &negated.args))
}

/// `clip(clip(x)) => clip(x)` with the inner bounds, where the outer ones cut nothing more.
pub(super) fn clip_of_clip(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let &[x] = at.args else { return None };
    let (min, max) = bounds(rw, at.attrs);
    if (min, max) == (f64::NEG_INFINITY, f64::INFINITY) {
        return Some(x);
    }
    let inner = rw.call_of(x, "clip")?;
    let (inner_min, inner_max) = bounds(rw, inner.attrs);
    (min <= inner_min && inner_min <= inner_max && inner_max <= max).then_some(x)
}

fn bounds(rw: &Rewriter, attrs: Attrs) -> (f64, f64) {
    let attrs = rw.terms().attrs(attrs);
    let bound = |name, default| attrs.float(name).unwrap_or(default);
    (bound("min", f64::NEG_INFINITY), bound("max", f64::INFINITY))
}

/// `cast(x) => x` to the same type, and `cast(cast(x)) => cast(x)` where the first one loses nothing.
pub(super) fn cast_of_cast(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let &[x] = at.args else { return None };
    if rw.body().ty(x) == Some(at.ty) {
        return Some(x);
    }
    let inner = rw.call_of(x, "cast")?;
    let (from, _) = rw.tensor(inner.args[0])?;
    let (through, _) = rw.tensor(x)?;
    if !is_lossless(from, through) {
        return None;
    }
    match rw.body().ty(inner.args[0]) == Some(at.ty) {
        true => Some(inner.args[0]),
        false => Some(rw.call_op("cast", &inner.args, at.attrs)),
    }
}

/// Whether every element of `from` is one of `to`.
fn is_lossless(from: DType, to: DType) -> bool {
    let is_wider = from.bits() < to.bits();
    match (from, to) {
        (DType::F16 | DType::BF16, _) | (DType::F32, DType::F64) => to.is_float() && is_wider,
        _ if from.is_bool() => to.is_int() || to.is_float(),
        _ if from.is_int() && to.is_int() => is_wider && (to.is_signed() || !from.is_signed()),
        _ => false,
    }
}
