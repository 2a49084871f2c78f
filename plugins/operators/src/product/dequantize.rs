//! A matrix of integers on scales as floats.
//!
//! ```ir
//! %y = dequantize(%q, %s, %z) { axis = 1, block = 32 }    u8[10, 64], f32[10, 2], u8[10, 2]  =>  f32[10, 64]
//! ```
//!
//! An element is `(q - z) s`. Along `axis` a scale and a zero point stand for `block` elements, the last for what is left; along the
//! other axis there are as many as elements, or one for all.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::Scalar;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

/// (data - zero) * scale of a matrix, with a scale and a zero point for each block of elements
#[op(name = "dequantize", args = 3, pattern = "broadcast")]
pub struct Dequantize {
    /// the axis along which elements lie in blocks: 0 or 1
    #[attr(min = 0)]
    axis: i64,
    /// elements of a block
    #[attr(min = 1)]
    block: i64,
}

impl Dequantize {
    /// Where along each axis the scale of an element stands, of as many as `own` says.
    fn place<I: Copy>(&self, own: [bool; 2], i: [I; 2], first: I, over: impl Fn(I) -> I) -> [I; 2] {
        [0, 1].map(|at| match own[at] {
            true => first,
            false if at as i64 == self.axis => over(i[at]),
            false => i[at],
        })
    }
}

impl Operator for Dequantize {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let [data, scale, zero] =
            [cx.tensor_of_rank(0, 2)?, cx.tensor_of_rank(1, 2)?, cx.tensor_of_rank(2, 2)?];
        if ![DType::I8, DType::U8].contains(&data.dtype) {
            return Err(cx.wrong_arg(0, "integers of 8 bits"));
        }
        for (index, found, expected) in [(1, scale.dtype, DType::F32), (2, zero.dtype, data.dtype)]
        {
            if found != expected {
                let expected = expected.to_string();
                return Err(OpError::WrongDType { index, expected, found });
            }
        }
        if self.axis > 1 {
            return cx.bad_attr("axis", self.axis, "a matrix has the axes 0 and 1");
        }
        let Some(dims) = data.dims else { return Ok(cx.tensor_type(DType::F32, None)) };
        for own in [scale.dims, zero.dims].into_iter().flatten() {
            let fits = |at: usize| match (cx.value(own[at]), cx.value(dims[at])) {
                (Some(own), Some(whole)) if at as i64 == self.axis => {
                    own == (whole + self.block - 1) / self.block
                }
                (Some(own), Some(whole)) => own == 1 || own == whole,
                _ => false,
            };
            if !(fits(0) && fits(1)) {
                return Err(cx.mismatch("the blocks and their scales or zero points", dims, own));
            }
        }
        Ok(cx.tensor_type(DType::F32, Some(dims)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (data, scale, zero) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
        let (rows, columns) = (data.shape()[0], data.shape()[1]);
        let at = |of: &Tensor, i: [usize; 2]| {
            let own = [of.shape()[0] == 1, of.shape()[1] == 1];
            let [row, column] = self.place(own, i, 0, |i| i / self.block as usize);
            row * of.shape()[1] + column
        };
        let scales = scale.elements::<f32>();
        with_number!(data.dtype(), T => {
            let (codes, zeros) = (data.elements::<T>(), zero.elements::<T>());
            let value = |i: [usize; 2]| {
                let code = codes[i[0] * columns + i[1]].to_i64() - zeros[at(zero, i)].to_i64();
                code as f32 * scales[at(scale, i)]
            };
            let values = (0..rows).flat_map(|row| (0..columns).map(move |column| [row, column]));
            Ok(vec![Tensor::from_vec(data.shape().to_vec(), values.map(value).collect())])
        })
    }
}

/// One element after the other.
#[rule(compute)]
fn program(op: &Dequantize, program: &mut Program) {
    let (data, scale, zero) = (program.input(0), program.input(1), program.input(2));
    let one = program.cx().dim(1);
    let first = program.index(0);
    program.set(&program.output(0), |i| {
        let place = |own: &[tenon_plugin_api::ir::Dim]| -> [Scalar<'_>; 2] {
            op.place([own[0] == one, own[1] == one], [i[0], i[1]], first, |i| i / op.block)
        };
        let code = data.at(i).cast(DType::I32) - zero.at(&place(zero.shape())).cast(DType::I32);
        code.cast(DType::F32) * scale.at(&place(scale.shape()))
    });
}

/// Two operations an element.
#[rule(cost)]
fn cost(_: &Dequantize, at: &mut Site<'_>) -> Option<Cost> {
    let (_, dims) = at.tensor(at.call.expr)?;
    let flops = at.with_cx(|cx| dims.iter().fold(cx.dim(2), |all, &dim| cx.dim_mul(all, dim)));
    Cost::of_call(at, at.call.expr, flops)
}
