//! What is left of a float when it is divided into whole parts.
//!
//! ```ir
//! %c = mod(%a, %b)    f32[n, 3], f32[3]  =>  f32[n, 3]
//! ```
//!
//! It has the sign of the first, as C's `fmod` has it, and is exact. By zero, and of what is infinite, it is no number.

use tenon_plugin_api::ir::{BinaryOp, Build, BuildPrim, Context};
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Block, Scalar};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_float;

use super::types::numbers;
use crate::kernel::rows::{each, zip};
use crate::program::index::{broadcast, check_broadcast};

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

/// A division by hand, many digits at once: parts of the quotient that are short enough for their products to be exact are taken
/// away until nothing of it is left. Of f64 it is exact where the quotient is below 2^250.
#[rule(compute)]
fn program(_: &Mod, program: &mut Program) -> Result<()> {
    let [a, b, out] = [program.input(0), program.input(1), program.output(0)];
    for input in [&a, &b] {
        check_broadcast(program, input.shape(), out.shape())?;
    }
    // The largest quotient has 2^41 in f16, 2^277 in f32; each part has 25 digits at least.
    let parts = if a.dtype() == DType::F16 { 2 } else { 12 };
    program.each(out.shape(), |i| {
        let mut body = program.block();
        let [a, b] = [&a, &b].map(|x| x.wide(&broadcast(program, x.shape(), i)).cast(DType::F64));
        let a = body.bind("a", a);
        let b = body.bind("b", b.call("abs"));
        let [b_high, b_low] = halves(&mut body, b);
        let mut rest = body.bind("rest", a.call("abs"));
        for _ in 0..parts {
            let quotient = (rest / b).call("floor");
            let quotient = body.bind("quotient", first_half(quotient));
            let without = body.bind("without", rest - quotient * b_high);
            rest = body.bind("rest", without - quotient * b_low);
        }
        // A quotient that was rounded up took one part too much, if it was the last one.
        let rest = rest.lt(0).select(rest + b, rest);
        let is_whole = b.binary(BinaryOp::Eq, f64::INFINITY).and(a.call("abs").lt(f64::INFINITY));
        let rest = is_whole.select(a, rest.call_with("copysign", a));
        body.push(out.set(i, rest));
        body.finish()
    });
    Ok(())
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
