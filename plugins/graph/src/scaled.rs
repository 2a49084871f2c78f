//! Bytes on a scale, as models quantize numbers and make numbers of them again.

use tenon_plugin_api::prelude::*;

/// Numbers made of bytes: `(x - zero) * scale`.
pub(crate) struct Scaled {
    /// `x - zero` in i32.
    pub(crate) integers: Expr,
    /// In a byte each.
    pub(crate) bytes: Expr,
    pub(crate) zero: Option<Expr>,
    pub(crate) scale: Expr,
}

impl Scaled {
    /// What f32 were made of, by multiplication with a scale.
    pub(crate) fn of(rw: &mut Rewriter, expr: Expr) -> Option<Self> {
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
        (is_scaled && is_byte(rw.body(), bytes)).then_some(Self { integers, bytes, zero, scale })
    }

    /// The same, with a reshape in between if there is one: the bytes are reshaped. Zero and scale are one number each, or one for each place
    /// of the first axis, which the reshape has to keep.
    pub(crate) fn of_reshaped(rw: &mut Rewriter, expr: Expr) -> Option<Self> {
        let Some(call) = rw.call_of(expr, "reshape") else { return Self::of(rw, expr) };
        let inner = Self::of(rw, call.args[0])?;
        let (_, dims) = rw.tensor(expr)?;
        let bytes = rw.reshape(inner.bytes, &dims);
        let mut integers = rw.in_dtype(bytes, DType::I32);
        let mut zero = None;
        if let Some(own) = inner.zero {
            let own = along_first(rw, own, &dims)?;
            integers = rw.apply("subtract", &[integers, own]);
            zero = Some(own);
        }
        let scale = along_first(rw, inner.scale, &dims)?;
        Some(Self { integers, bytes: inner.bytes, zero, scale })
    }
}

/// A number, or one for each place of the first axis of a tensor, as it is broadcast to a tensor of these dimensions.
fn along_first(rw: &mut Rewriter, expr: Expr, dims: &[Dim]) -> Option<Expr> {
    let (_, own) = rw.tensor(expr)?;
    let one = rw.cx().dim(1);
    match own.as_slice() {
        [] => Some(expr),
        [first, rest @ ..] if dims.first() == Some(first) && rest.iter().all(|&dim| dim == one) => {
            let mut shape = vec![one; dims.len()];
            shape[0] = *first;
            Some(rw.reshape(expr, &shape))
        }
        _ => None,
    }
}

/// Bytes made of numbers: `x / scale` to the nearest integer, moved by a zero and clipped to the bytes.
pub(crate) struct Rounded {
    pub(crate) x: Expr,
    pub(crate) scale: f64,
    pub(crate) zero: f64,
}

impl Rounded {
    /// What bytes were made of, on one scale that is known.
    pub(crate) fn of(rw: &mut Rewriter, expr: Expr) -> Option<Self> {
        if !is_byte(rw.body(), expr) {
            return None;
        }
        let (least, most) = rw.tensor(expr)?.0.int_bounds();
        let cast = rw.call_of(expr, "cast")?;
        let of = Clipped::of(rw, cast.args[0])?;
        let is_all = of.bounds == [least as f64, most as f64];
        is_all.then_some(Self { x: of.x, scale: of.scale, zero: of.moved })
    }
}

/// `clip(round(x / scale) + zero)`, of a scale and a zero that are known.
pub(crate) struct Clipped {
    pub(crate) x: Expr,
    pub(crate) scale: f64,
    /// None where nothing is added.
    pub(crate) zero: Option<Expr>,
    /// What the zero is.
    pub(crate) moved: f64,
    pub(crate) bounds: [f64; 2],
    pub(crate) attrs: Attrs,
}

impl Clipped {
    pub(crate) fn of(rw: &mut Rewriter, expr: Expr) -> Option<Self> {
        let clip = rw.call_of(expr, "clip")?;
        let attrs = rw.terms().attrs(clip.attrs);
        let bounds = [attrs.float("min")?, attrs.float("max")?];
        let (rounded, zero) = match rw.call_of(clip.args[0], "add") {
            Some(sum) => (sum.args[0], Some(sum.args[1])),
            None => (clip.args[0], None),
        };
        let moved = zero.map_or(Some(0.0), |zero| rw.splat(zero))?;
        let round = rw.call_of(rounded, "round")?;
        let quotient = rw.call_of(round.args[0], "divide")?;
        let &[x, scale] = quotient.args.as_slice() else { return None };
        let scale = rw.splat(scale)?;
        Some(Self { x, scale, zero, moved, bounds, attrs: clip.attrs })
    }
}

/// Whether the elements of a tensor are bytes.
pub(crate) fn is_byte(body: BodyView<'_>, expr: Expr) -> bool {
    let tensor = body.ty(expr).and_then(|ty| body.terms().tensor(ty));
    tensor.is_some_and(|(dtype, _)| matches!(dtype, DType::U8 | DType::I8))
}
