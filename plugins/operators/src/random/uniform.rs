//! Numbers that are equally likely everywhere between two others.
//!
//! ```ir
//! %y = random.uniform(%s, %seed) { low = -1.0 }    shape[n, 3], u64[]  =>  f32[n, 3]
//! ```
//!
//! Each element is `low + u * (high - low)`, where u is a multiple of 2^-b in [0, 1): the upper b bits of the first word of its counter,
//! of as many as the element type holds exactly (24 of f32, 11 of f16, 8 of bf16). Of f64 there are 53, the upper 27 of the
//! first word above the upper 26 of the second. What is narrower than f64 is computed in f64 from `high - low` in f32, and rounded to
//! f32 and then to its type, which may round up to `high`; code and evaluator make the same bits of it.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::drawn::{like_input, of_said_shape};
use super::philox::{each_element, infer, of_elements, seed, wide, without};
use super::seed::seed_of;

/// A tensor of the shape of the first argument, of numbers that are uniform in an interval; the second is the seed
#[op(name = "random.uniform", args = 2, pattern = "opaque")]
pub struct Uniform {
    /// where the interval begins
    #[attr(default = 0.0)]
    low: f64,
    /// where the interval ends
    #[attr(default = 1.0)]
    high: f64,
    /// the element type, a float of 16 bits or more
    #[attr(default = "f32")]
    dtype: DType,
}

impl Operator for Uniform {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        infer(cx, self.dtype)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let words = of_elements(seed(cx)?, shape.iter().product());
        let bits = bits_of(dtype);
        let (low, range) = (self.low, self.high - self.low);
        with_number!(dtype, T => {
            let numbers = words.map(|[first, second, ..]| T::from_f64(match dtype {
                DType::F64 => {
                    let bits = (u64::from(first >> 5) << 26) | u64::from(second >> 6);
                    low + bits as f64 * step(53) * range
                }
                _ => {
                    let unit = f64::from(first >> (32 - bits)) * step(bits);
                    f64::from((unit * f64::from(range as f32) + low) as f32)
                }
            }));
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), numbers.collect())])
        })
    }
}

/// How many bits of a word are an element's.
fn bits_of(dtype: DType) -> u32 {
    match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        _ => 24,
    }
}

/// What is between two neighbours of `bits` bits.
fn step(bits: u32) -> f64 {
    1.0 / (1u64 << bits) as f64
}

/// Each element from its counter.
#[rule(compute)]
fn program(op: &Uniform, program: &mut Program) -> Result<()> {
    let dtype = program.output(0).dtype();
    each_element(program, |_, [first, second, ..]| {
        let range = op.high - op.low;
        match dtype {
            DType::F64 => wide(first, second) * step(53) * range + op.low,
            // Products of 24 bits by 24 are exact in f64, so it changes nothing if a sum is contracted with one.
            _ => {
                let unit =
                    without(first, 32 - bits_of(dtype)).cast(DType::F64) * step(bits_of(dtype));
                (unit * f64::from(range as f32) + op.low).cast(DType::F32)
            }
        }
    });
    Ok(())
}

/// It stays as it is: its shape is an argument.
#[rule(layout)]
fn layout(_: &Uniform, _: &mut Following<'_>) -> Option<Carried> {
    None
}

/// Nothing: nothing it reads has a gradient.
#[rule(gradient)]
fn gradient(_: &Uniform, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

const PARAMETERS: [(&str, f32); 2] = [("low", 0.0), ("high", 1.0)];

/// `RandomUniform`, of a shape that the node says.
#[rule(import.onnx, key = "RandomUniform", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    of_said_shape(node, "random.uniform", PARAMETERS)
}

/// `RandomUniformLike`, of the shape of its input.
#[rule(import.onnx, key = "RandomUniformLike", since = 1)]
fn import_like(node: &mut Node<'_>) -> Outputs {
    like_input(node, "random.uniform", PARAMETERS)
}

/// Numbers of [0, 1) in these dimensions, as `dtype`, for rules that decide by them.
pub(crate) fn unit(
    node: &mut Node<'_>,
    dims: &[Dim],
    dtype: DType,
) -> std::result::Result<Value, Problem> {
    let shape = node.shape(dims)?;
    let seed = seed_of(node)?;
    node.call("random.uniform", &[shape, seed], &[("dtype", dtype.to_string().into())])
}
