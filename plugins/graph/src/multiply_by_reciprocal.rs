//! Multiplies by the reciprocal of a scale where numbers are divided by it and rounded to bytes.
//!
//! ```ir
//! %y = clip(add(round(divide(%x, 0.1)), 128)) { max = 255.0, min = 0.0 }
//!                        =>
//! %y = clip(add(round(fma(%x, 9.999999, multiply(%x, 8.05e-7))), 128)) { max = 255.0, min = 0.0 }
//! ```
//!
//! A division keeps a processor busy for as long as eight to sixteen multiplications. With the reciprocal in two parts, rounded down and
//! what is left of it, a product and a multiplication that adds come within a hair of the quotient before they round (Brisebarre, Muller
//! and Raina, "Accelerating correctly rounded floating-point division when the divisor is known in advance", 2004). Both ways grow with
//! `x`, so both round to the same integers everywhere if they step from each integer to the next at the same `x`. There are as many steps
//! as the clip leaves, and each of them is tried here; a scale for which one is elsewhere is divided by as before.

use tenon_plugin_api::prelude::*;

use crate::scaled::Clipped;

/// More steps than a byte has are not worth the time to try them; those of 16 bits are.
const MOST_STEPS: f64 = 65536.0;
/// Integers up to here, and the halves between them, are numbers of f32.
const LARGEST: f64 = (1 << 20) as f64;
/// Scales between this and its reciprocal keep all products in question normal.
const SMALLEST: f64 = 1e-30;
/// A quotient's step is at most this many numbers from the product of scale and quotient.
const NEAR: i32 = 4;

/// Multiplies by the reciprocal of a scale where numbers are divided by it and rounded to bytes.
#[pass(
    name = "relax.MultiplyByReciprocal",
    opt_level = 2,
    phase = "optimize",
    after = ["relax.TabulateBytes", "relax.ConvertToDots", "relax.ConvertToFloats", "relax.AlterOpLayout"]
)]
fn multiply_by_reciprocal(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    if !has_fma(cx) {
        return Ok(func);
    }
    for expr in body.post_order() {
        let View::Call { .. } = body.view(expr) else { continue };
        let Some(quantized) = Quantized::of(&mut rw, expr) else { continue };
        let Some(reciprocal) = Reciprocal::of(&quantized) else { continue };
        let Some(made) = reciprocal.apply(&mut rw, &quantized) else { continue };
        if rw.body().ty(made) == body.ty(expr) {
            rw.replace(expr, made);
        }
    }
    rw.finish()
}

/// Whether the processor multiplies and adds with one rounding.
fn has_fma(cx: &PassContext) -> bool {
    match cx.target().str("architecture") {
        Some("x86_64") => cx.has_feature("fma"),
        Some(_) => true,
        None => false,
    }
}

/// `clip(round(x / scale) + zero)`, in f32.
struct Quantized {
    x: Expr,
    scale: f32,
    zero: Option<Expr>,
    clip: Attrs,
    /// The integers that are left of the quotients.
    bounds: [f64; 2],
}

impl Quantized {
    fn of(rw: &mut Rewriter, expr: Expr) -> Option<Self> {
        if rw.tensor(expr)?.0 != DType::F32 {
            return None;
        }
        let of = Clipped::of(rw, expr)?;
        let (x, scale, zero, clip) = (of.x, of.scale as f32, of.zero, of.attrs);
        let bounds = of.bounds.map(|bound| bound - of.moved);
        let are_known = bounds.iter().all(|bound| bound.fract() == 0.0 && bound.abs() < LARGEST);
        let is_usual = (SMALLEST..1.0 / SMALLEST).contains(&f64::from(scale));
        (are_known && is_usual && bounds[1] - bounds[0] < MOST_STEPS).then_some(Self {
            x,
            scale,
            zero,
            clip,
            bounds,
        })
    }
}

/// The reciprocal of a scale: rounded down, and what is left of it.
struct Reciprocal {
    high: f32,
    low: f32,
}

impl Reciprocal {
    /// That of the scale of a quantization, if it gives the same integers for all numbers.
    fn of(of: &Quantized) -> Option<Self> {
        let exact = 1.0 / f64::from(of.scale);
        let near = exact as f32;
        let high = if f64::from(near) > exact { near.next_down() } else { near };
        // Not negative, so that infinities are products of the same sign.
        let reciprocal = Self { high, low: (exact - f64::from(high)) as f32 };
        let [first, last] = of.bounds.map(|bound| bound as i64);
        (first..last)
            .all(|step| reciprocal.is_right_at(step as f32, of.scale))
            .then_some(reciprocal)
    }

    fn quotient(&self, x: f32) -> f32 {
        match self.low {
            0.0 => x * self.high,
            low => x.mul_add(self.high, x * low),
        }
    }

    /// Whether both step from an integer to the next at the same number.
    fn is_right_at(&self, integer: f32, scale: f32) -> bool {
        let ways = |x: f32| [x / scale, self.quotient(x)].map(f32::round_ties_even);
        let mut x = (integer + 0.5) * scale;
        (0..NEAR).for_each(|_| x = x.next_down());
        let starts = ways(x);
        for _ in 0..2 * NEAR {
            x = x.next_up();
            let [divided, multiplied] = ways(x);
            if divided != multiplied {
                return false;
            }
        }
        starts == [integer; 2] && ways(x) == [integer + 1.0; 2]
    }

    fn apply(&self, rw: &mut Rewriter, to: &Quantized) -> Option<Expr> {
        let high = rw.number(DType::F32, self.high.into())?;
        let quotient = match self.low {
            0.0 => rw.apply("multiply", &[to.x, high]),
            low => {
                let low = rw.number(DType::F32, low.into())?;
                let rest = rw.apply("multiply", &[to.x, low]);
                rw.apply("fma", &[to.x, high, rest])
            }
        };
        let mut rounded = rw.apply("round", &[quotient]);
        if let Some(zero) = to.zero {
            rounded = rw.apply("add", &[rounded, zero]);
        }
        Some(rw.call_op("clip", &[rounded], to.clip))
    }
}
