//! Numbers that are distributed normally.
//!
//! ```ir
//! %y = random.normal(%s, %seed) { mean = 2.0, scale = 0.5 }    shape[n, 3], u64[]  =>  f32[n, 3]
//! ```
//!
//! By Box and Muller, the cosine alone: `mean + scale * sqrt(-2 ln u) * cos(2 pi v)`, where u, in (0, 1], and v, in [0, 1), are multiples of
//! 2^-24 from the upper bits of the first word of the element's counter and of the second. In f64 they are multiples of 2^-53 from
//! the first two words, and the other two. Floats of 16 bits are rounded from f32.

use std::f64::consts::TAU;

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::box_muller::{STEP, STEP_F64, normal};
use super::drawn::{like_input, of_said_shape};
use super::philox::{each_element, infer, of_elements, seed, wide, without};

/// A tensor of the shape of the first argument, of numbers that are normal; the second is the seed
#[op(name = "random.normal", args = 2, pattern = "opaque")]
pub struct Normal {
    /// the mean
    #[attr(default = 0.0)]
    mean: f64,
    /// the standard deviation
    #[attr(default = 1.0)]
    scale: f64,
    /// the element type, a float of 16 bits or more
    #[attr(default = "f32")]
    dtype: DType,
}

impl Operator for Normal {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        infer(cx, self.dtype)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let words = of_elements(seed(cx)?, shape.iter().product());
        with_number!(dtype, T => {
            let numbers = words
                .map(|words| T::from_f64(self.mean + self.scale * normal(words, dtype)));
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), numbers.collect())])
        })
    }
}

/// Each element from its counter.
#[rule(compute)]
fn program(op: &Normal, program: &mut Program) -> Result<()> {
    let dtype = program.output(0).dtype();
    each_element(program, |body, [a, b, c, d]| {
        let (u, v) = match dtype {
            DType::F64 => ((wide(a, b) + 1.0) * STEP_F64, wide(c, d) * STEP_F64),
            _ => {
                let [a, b] = [a, b].map(|word| without(word, 8).cast(DType::F32));
                ((a + 1.0) * STEP, b * STEP)
            }
        };
        let radius = body.bind("radius", (u.call("log") * -2.0).call("sqrt"));
        let normal = body.bind("normal", radius * (v * TAU).call("cos"));
        normal * op.scale + op.mean
    });
    Ok(())
}

/// It stays as it is: its shape is an argument.
#[rule(layout)]
fn layout(_: &Normal, _: &mut Following<'_>) -> Option<Carried> {
    None
}

/// Nothing: nothing it reads has a gradient.
#[rule(gradient)]
fn gradient(_: &Normal, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

const PARAMETERS: [(&str, f32); 2] = [("mean", 0.0), ("scale", 1.0)];

/// `RandomNormal`, of a shape that the node says.
#[rule(import.onnx, key = "RandomNormal", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    of_said_shape(node, "random.normal", PARAMETERS)
}

/// `RandomNormalLike`, of the shape of its input.
#[rule(import.onnx, key = "RandomNormalLike", since = 1)]
fn import_like(node: &mut Node<'_>) -> Outputs {
    like_input(node, "random.normal", PARAMETERS)
}
