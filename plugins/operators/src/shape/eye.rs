//! A matrix with ones on a diagonal.
//!
//! ```ir
//! %y = eye(%s) { k = 1 }    shape[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::ir::BinaryOp;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

/// A matrix of the shape of the argument: one on a diagonal, and zero elsewhere
#[op(name = "eye", pattern = "elementwise")]
pub struct Eye {
    /// how far the diagonal lies above the main one
    #[attr(default = 0)]
    k: i64,
    /// the element type
    #[attr(default = "f32")]
    dtype: DType,
}

impl Operator for Eye {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        match cx.shape(0)? {
            Some(dims) if dims.len() != 2 => Err(cx.wrong_arg(0, "a shape of two dimensions")),
            dims => Ok(cx.tensor_type(self.dtype, dims)),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let &[rows, columns] = shape else {
            return Err(OpError::Value("a matrix has two dimensions".into()));
        };
        with_number!(dtype, T => {
            let mut out = vec![T::default(); rows * columns];
            for row in 0..rows {
                let column = usize::try_from((row as i64).saturating_add(self.k)).ok();
                if let Some(column) = column.filter(|&column| column < columns) {
                    out[row * columns + column] = T::from_i64(1);
                }
            }
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// One where the column is as far behind the row as the diagonal.
#[rule(compute)]
fn program(op: &Eye, program: &mut Program) -> Result<()> {
    let out = program.output(0);
    if out.shape().len() != 2 {
        return Err(OpError::Unsupported("a matrix has two dimensions".into()));
    }
    let [zero, one] = [0.0, 1.0].map(|value| program.literal(out.dtype(), value));
    program.set(&out, |i| (i[1] - i[0]).binary(BinaryOp::Eq, op.k).select(one, zero));
    Ok(())
}

/// It stays as it is: its shape is an argument.
#[rule(layout)]
fn layout(_: &Eye, _: &mut Following<'_>) -> Option<Carried> {
    None
}

/// `EyeLike`.
#[rule(import.onnx, key = "EyeLike", since = 9)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let dtype = match node.element_type("dtype")? {
        Some(dtype) => dtype,
        None => node.dtype(x)?,
    };
    let shape = node.shape(&dims)?;
    let attrs = [("k", node.int_or("k", 0)?.into()), ("dtype", dtype.to_string().into())];
    Ok(vec![node.call("eye", &[shape], &attrs)?])
}
