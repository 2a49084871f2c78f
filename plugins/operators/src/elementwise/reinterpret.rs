//! The bits of each element as another element type.
//!
//! ```ir
//! %y = reinterpret(%x) { dtype = "i32" }    f32[n, 3]  =>  i32[n, 3]
//! ```

use tenon_plugin_api::ir::{Build, BuildPrim, Context};
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_bits;

/// The same bits as another element type of the same size
#[op(name = "reinterpret", pattern = "elementwise")]
pub struct Reinterpret {
    /// the new element type, such as "i32"
    dtype: DType,
}

impl Operator for Reinterpret {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let TensorTy { dtype, dims } = cx.tensor(0)?;
        let is_number = |dtype: DType| dtype.is_int() || dtype.is_float();
        if !is_number(dtype) || dtype.bits() < 8 {
            let expected = "a number of whole bytes".into();
            return Err(OpError::WrongDType { index: 0, expected, found: dtype });
        }
        match is_number(self.dtype) && self.dtype.bits() == dtype.bits() {
            true => Ok(cx.tensor_type(self.dtype, dims)),
            false => {
                let reason = format!("it is a number of as many bits as {dtype} has");
                cx.bad_attr("dtype", self.dtype.to_string(), reason)
            }
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        with_bits!(dtype, T => {
            let elements = cx.arg(0)?.elements::<T>().to_vec();
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), elements)])
        })
    }
}

/// One element after the other.
#[rule(compute)]
fn program(_: &Reinterpret, program: &mut Program) {
    let (input, out) = (program.input(0), program.output(0));
    program.set(&out, |i| {
        let element = input.at(i);
        program.scalar(|writer| {
            let ty = writer.with_cx(|cx| cx.scalar_type(out.dtype()));
            writer.intrinsic_of("reinterpret", &[element.expr()], Some(ty))
        })
    });
}

/// Nothing: bits have no derivative.
#[rule(gradient)]
fn gradient(_: &Reinterpret, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

/// `BitCast`; truth values are bytes that are 0 or 1.
#[rule(import.onnx, key = "BitCast", since = 26)]
fn import(node: &mut Node<'_>) -> Outputs {
    let mut x = node.input(0)?;
    let Some(to) = node.element_type("to")? else {
        return invalid("its attribute `to` is missing");
    };
    let from = node.dtype(x)?;
    if from == to {
        return Ok(vec![x]);
    }
    if from.is_bool() {
        x = node.call("cast", &[x], &[("dtype", "u8".into())])?;
        if to == DType::U8 {
            return Ok(vec![x]);
        }
    }
    if to.is_bool() {
        return unsupported("bytes as truth values");
    }
    Ok(vec![node.call("reinterpret", &[x], &[("dtype", to.to_string().into())])?])
}
