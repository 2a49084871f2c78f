//! What is left of a float when it is divided into whole parts.
//!
//! ```ir
//! %c = mod(%a, %b)    f32[n, 3], f32[3]  =>  f32[n, 3]
//! ```
//!
//! It has the sign of the first, as C's `fmod` has it, and is exact however large the quotient is. By zero, and of what is infinite, it is no number.

use tenon_plugin_api::ir::{BinaryOp, Build, BuildPrim, Context};
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Block, Scalar};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_float;

use super::types::numbers;
use crate::kernel::rows::{each, zip};
use crate::program::index::broadcast;

/// The remainder of a / b, with the sign of a
#[op(name = "mod", args = 2)]
pub struct Mod;

impl Operator for Mod {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        numbers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_float!(cx.arg(0)?.dtype(), T => zip(cx, |a: &[T], b: &[T], out: &mut [T]| {
            each(a, b, out, |x, y| T::from_f64(x.to_f64() % y.to_f64()))
        }))
    }
}

/// Digits of a quotient that are taken away at once: products of so few and of half of the divisor are exact.
const PARTS: usize = 12;
/// Powers of two by which the quotient of a stage is larger than that of the next one. `PARTS` take 300 digits away, and
/// a divisor that is denormal is up to 2^52 smaller than its exponent says. It is even, so that its half is a whole number.
const STAGE: i64 = 220;

/// A division by hand, many digits at once: parts of the quotient that are short enough for their products to be exact are taken
/// away until nothing of it is left.
#[rule(compute)]
fn program(_: &Mod, program: &mut Program) -> Result<()> {
    let [a, b, out] = [program.input(0), program.input(1), program.output(0)];
    program.each(out.shape(), |i| {
        let mut body = program.block();
        let [x, y] = [&a, &b]
            .map(|x| x.wide(&broadcast(program, x.shape(), out.shape(), i)).cast(DType::F64));
        let x = body.bind("a", x);
        let y = body.bind("b", y.call("abs"));
        let rest = body.bind("rest", x.call("abs"));
        let rest = match out.dtype() {
            DType::F64 => in_stages(&mut body, rest, y),
            // The largest quotient has 2^41 in f16, 2^277 in f32; each part has 25 digits at least.
            DType::F16 => without_multiples(&mut body, rest, y, 2),
            _ => without_multiples(&mut body, rest, y, PARTS),
        };
        let is_whole = y.binary(BinaryOp::Eq, f64::INFINITY).and(x.call("abs").lt(f64::INFINITY));
        let rest = is_whole.select(x, rest.call_with("copysign", x));
        body.push(out.set(i, rest));
        body.finish()
    });
    Ok(())
}

/// What is left of two f64: their quotient may have 2^2098, so multiples of 2^(220k) b are taken away for one k after the other.
fn in_stages<'p>(body: &mut Block<'p>, a: Scalar<'p>, b: Scalar<'p>) -> Scalar<'p> {
    let program = body.program();
    let rest = body.local("left", DType::F64, &[]);
    body.push(rest.set(&[], a));
    let [high, low] = [a, b].map(|x| reinterpret(x, DType::I64) / (1i64 << 52));
    let stages = body.bind("stages", (high - low).max(0) / STAGE);
    body.push(program.in_turn((stages + 1).cast(DType::I64), |stage| {
        let mut body = program.block();
        let half = (stages - stage.cast(DType::I64)) * (STAGE / 2);
        let power = body.bind("power", reinterpret((half + 1023) * (1i64 << 52), DType::F64));
        let divisor = body.bind("divisor", b * power * power);
        let left = body.bind("rest", rest.at(&[]));
        let left = without_multiples(&mut body, left, divisor, PARTS);
        body.push(rest.set(&[], left));
        body.finish()
    }));
    rest.at(&[])
}

/// `rest` less as many `b` as there are in it, where these are no more than 2^(25 parts).
fn without_multiples<'p>(
    body: &mut Block<'p>,
    mut rest: Scalar<'p>,
    b: Scalar<'p>,
    parts: usize,
) -> Scalar<'p> {
    let [b_high, b_low] = halves(body, b);
    for _ in 0..parts {
        let quotient = (rest / b).call("floor");
        let quotient = body.bind("quotient", first_half(quotient));
        let without = body.bind("without", rest - quotient * b_high);
        rest = body.bind("rest", without - quotient * b_low);
    }
    // A quotient that was rounded up took one part too much, if it was the last one.
    rest.lt(0).select(rest + b, rest)
}

/// An f64 as the sum of its first 26 bits and the others.
fn halves<'p>(body: &mut Block<'p>, x: Scalar<'p>) -> [Scalar<'p>; 2] {
    let high = body.bind("high", first_half(x));
    [high, body.bind("low", x - high)]
}

fn first_half(x: Scalar<'_>) -> Scalar<'_> {
    let program = x.program();
    let bits = reinterpret(x, DType::I64);
    reinterpret(bits.call_with("bitand", program.int(DType::I64, !0x7ff_ffff)), DType::F64)
}

fn reinterpret(x: Scalar<'_>, dtype: DType) -> Scalar<'_> {
    x.program().scalar(|writer| {
        let ty = writer.with_cx(|cx| cx.scalar_type(dtype));
        writer.intrinsic_of("reinterpret", &[x.expr()], Some(ty))
    })
}

/// `g`, `-g trunc(a / b)`.
#[rule(gradient)]
fn gradient(_: &Mod, at: &mut Adjoint<'_>) -> Result<Grads, PassError> {
    let (a, b, g) = (at.arg(0), at.arg(1), at.grad());
    let whole = at.apply("subtract", &[a, at.value()]);
    let parts = at.div(whole, b);
    let parts = at.apply("round", &[parts]);
    let slope = at.neg(parts);
    let of_b = at.apply("multiply", &[g, slope]);
    at.summed([g, of_b])
}
