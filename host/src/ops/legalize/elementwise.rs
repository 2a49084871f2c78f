//! Operators that compute each element by itself, with broadcasting.
//!
//! ```text
//! add(a: f32[4, 1], b: f32[3])        for i in 4 { for j in 3 { out[i, j] = a[i, 0] + b[j] } }
//! ```
//!
//! One loop for each axis of the result and one store, whose indices are the loop variables: what fusion
//! folds into the programs around it, and what is vectorized and made parallel afterwards.

use crate::ir::{BinaryOp, Context, DType, Dim};
use crate::ops::{LegalizeCx, OpError, OpPattern};

use super::kernel::{Extent, Kernel};
use super::program::program_of_any_shape;
use super::scalar::{Scalar, int_bounds};

/// Operators of one argument.
pub(crate) fn unary(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    let op = Unary::of(cx)?;
    elementwise(cx, OpPattern::Elementwise, move |args, dtype| op.apply(args[0], dtype))
}

/// Operators of two arguments that are broadcast against each other.
pub(crate) fn binary(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    let apply = binary_of(cx)?;
    elementwise(cx, OpPattern::Broadcast, move |args, _| apply(args[0], args[1]))
}

/// `where`: a choice between two tensors, element by element.
pub(crate) fn choose(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    elementwise(cx, OpPattern::Broadcast, |args, _| args[0].select(args[1], args[2]))
}

/// `nn.batch_norm` over the arguments x, gamma, beta, mean, variance.
pub(crate) fn batch_norm(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    let axis = cx.attrs.int("axis")?;
    let epsilon = cx.attrs.float("epsilon")?;
    program_of_any_shape(cx, OpPattern::Broadcast, move |kernel, inputs, outputs| {
        let out = &outputs[0];
        let axis = super::program::axis_of(axis, out.shape.len())?;
        Ok(kernel.nest(&out.shape, |i| {
            let [gamma, beta, mean, variance] = [1, 2, 3, 4].map(|at| inputs[at].wide(&[i[axis]]));
            let scale = gamma / (variance + epsilon).call("sqrt");
            out.set(i, (inputs[0].wide(i) - mean) * scale + beta)
        }))
    })
}

/// `nn.bias_add` over the arguments x, b.
pub(crate) fn bias_add(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    let axis = cx.attrs.int("axis")?;
    program_of_any_shape(cx, OpPattern::Broadcast, move |kernel, inputs, outputs| {
        let out = &outputs[0];
        let axis = super::program::axis_of(axis, out.shape.len())?;
        Ok(kernel.nest(&out.shape, |i| out.set(i, inputs[0].wide(i) + inputs[1].wide(&[i[axis]]))))
    })
}

/// A program of one statement: the element of the result from those of the arguments, which are read in
/// the dtype that arithmetic is done in.
fn elementwise(
    cx: &mut LegalizeCx<'_>,
    pattern: OpPattern,
    apply: impl for<'k> FnOnce(&[Scalar<'k>], DType) -> Scalar<'k>,
) -> Result<(), OpError> {
    program_of_any_shape(cx, pattern, |kernel, inputs, outputs| {
        let out = &outputs[0];
        for input in inputs {
            check_broadcast(kernel, &input.shape, &out.shape)?;
        }
        Ok(kernel.nest(&out.shape, |indices| {
            let args: Vec<Scalar<'_>> = inputs
                .iter()
                .map(|input| input.wide(&broadcast(kernel, &input.shape, indices)))
                .collect();
            out.set(indices, apply(&args, out.dtype))
        }))
    })
}

/// The indices of the element of a tensor of shape `shape` that is repeated at `indices`: aligned at the
/// last axis, and 0 along axes of extent 1.
pub(super) fn broadcast<'k, E: Extent>(
    kernel: &'k Kernel,
    shape: &[E],
    indices: &[Scalar<'k>],
) -> Vec<Scalar<'k>> {
    let own = &indices[indices.len() - shape.len()..];
    let at = |(&index, extent): (&Scalar<'k>, &E)| {
        if extent.is(kernel, 1) { kernel.index(0) } else { index }
    };
    own.iter().zip(shape).map(at).collect()
}

/// Checks that it is known along which axes a tensor is repeated.
pub(super) fn check_broadcast(kernel: &Kernel, shape: &[Dim], out: &[Dim]) -> Result<(), OpError> {
    let own = &out[out.len() - shape.len()..];
    let unknown = shape.iter().zip(own).find(|&(&a, &b)| a != b && !a.is(kernel, 1));
    unknown.map_or(Ok(()), |(&dim, _)| {
        let dim = kernel.cx().terms().dim_text(dim);
        Err(OpError::Unsupported(format!("whether the dimension {dim} is repeated is not known")))
    })
}

/// An operator of one argument with what it needs of its attributes.
#[derive(Clone, Copy)]
enum Unary {
    Relu,
    Identity,
    Not,
    Cast,
    Negative,
    Abs,
    Gelu,
    Silu,
    LeakyRelu(f64),
    Clip(f64, f64),
    Intrinsic(&'static str),
}

impl Unary {
    fn of(cx: &LegalizeCx<'_>) -> Result<Self, OpError> {
        Ok(match cx.op.name {
            "nn.relu" => Unary::Relu,
            "nn.dropout" => Unary::Identity,
            "logical_not" => Unary::Not,
            "cast" => Unary::Cast,
            "negative" => Unary::Negative,
            "abs" => Unary::Abs,
            "nn.gelu" => Unary::Gelu,
            "nn.silu" => Unary::Silu,
            "nn.leaky_relu" => Unary::LeakyRelu(cx.attrs.float("alpha")?),
            "clip" => Unary::Clip(cx.attrs.float("min")?, cx.attrs.float("max")?),
            name @ ("sigmoid" | "tanh" | "exp" | "log" | "sqrt" | "rsqrt" | "erf" | "floor"
            | "ceil" | "round" | "sin" | "cos") => Unary::Intrinsic(name),
            name => return Err(OpError::Unsupported(format!("`{name}` is no unary operator"))),
        })
    }

    fn apply<'k>(self, x: Scalar<'k>, to: DType) -> Scalar<'k> {
        let dtype = x.dtype();
        match self {
            Unary::Relu => x.max(0),
            Unary::Identity => x,
            Unary::Not => x.binary(BinaryOp::Eq, 0),
            Unary::Cast => convert(x, to),
            Unary::Negative if dtype.is_float() => x * -1,
            Unary::Negative => x.kernel().int(dtype, 0) - x,
            Unary::Abs if dtype.is_float() || dtype.is_signed() => x.call("abs"),
            Unary::Abs => x,
            Unary::Gelu => {
                let erf = (x * std::f64::consts::FRAC_1_SQRT_2).call("erf");
                x * 0.5 * (erf + 1)
            }
            Unary::Silu => x * x.call("sigmoid"),
            Unary::LeakyRelu(alpha) => x.gt(0).select(x, x * alpha),
            Unary::Clip(min, max) => clip(x, min, max),
            Unary::Intrinsic(name) => x.call(name),
        }
    }
}

/// Conversion as the operator `cast` does it: to bool it asks whether the element differs from zero.
fn convert(x: Scalar<'_>, to: DType) -> Scalar<'_> {
    match to.is_bool() && !x.dtype().is_bool() {
        true => x.binary(BinaryOp::Ne, 0),
        false => x.cast(to),
    }
}

/// On integers a bound is truncated towards zero, and one that the dtype cannot hold bounds nothing.
fn clip(x: Scalar<'_>, min: f64, max: f64) -> Scalar<'_> {
    let dtype = x.dtype();
    if dtype.is_float() {
        let x = if min == f64::NEG_INFINITY { x } else { x.max(min) };
        return if max == f64::INFINITY { x } else { x.min(max) };
    }
    let kernel = x.kernel();
    let (low, high) = match dtype {
        DType::U64 => (0.0, u64::MAX as f64),
        dtype => {
            let (low, high) = int_bounds(dtype);
            (low as f64, high as f64)
        }
    };
    let x = if min <= low { x } else { x.max(kernel.literal(dtype, min)) };
    if max >= high { x } else { x.min(kernel.literal(dtype, max)) }
}

type Apply = for<'k> fn(Scalar<'k>, Scalar<'k>) -> Scalar<'k>;

fn binary_of(cx: &LegalizeCx<'_>) -> Result<Apply, OpError> {
    macro_rules! op {
        ($op:ident) => {
            |a, b| a.binary(BinaryOp::$op, b)
        };
    }
    Ok(match cx.op.name {
        "add" => op!(Add),
        "subtract" => op!(Sub),
        "multiply" => op!(Mul),
        "divide" => divide,
        "maximum" => op!(Max),
        "minimum" => op!(Min),
        "equal" => op!(Eq),
        "not_equal" => op!(Ne),
        "less" => op!(Lt),
        "less_equal" => op!(Le),
        "greater" => op!(Gt),
        "greater_equal" => op!(Ge),
        "logical_and" => op!(And),
        "logical_or" => op!(Or),
        "power" => |a, b| a.call_with("pow", b),
        name => return Err(OpError::Unsupported(format!("`{name}` is no binary operator"))),
    })
}

/// Division; of integers by zero it gives zero, and the least one by -1 wraps around, where an instruction
/// would end the process.
fn divide<'k>(a: Scalar<'k>, b: Scalar<'k>) -> Scalar<'k> {
    let dtype = a.dtype();
    if dtype.is_float() {
        return a / b;
    }
    let kernel = a.kernel();
    let (zero, one) = (kernel.int(dtype, 0), kernel.int(dtype, 1));
    let is_zero = b.binary(BinaryOp::Eq, 0);
    if !dtype.is_signed() {
        return is_zero.select(zero, a.binary(BinaryOp::Div, is_zero.select(one, b)));
    }
    let is_negation = b.binary(BinaryOp::Eq, -1);
    let quotient =
        a.binary(BinaryOp::Div, is_zero.binary(BinaryOp::Or, is_negation).select(one, b));
    is_zero.select(zero, is_negation.select(zero - a, quotient))
}
