//! The numbers 0, 1, 2, …, as many as a shape says.
//!
//! ```ir
//! %y = arange(%s) { dtype = "i32" }    shape[n]  =>  i32[n]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

/// The numbers 0, 1, 2, … in the shape of the argument, which has one dimension
#[op(name = "arange", pattern = "injective")]
pub struct Arange {
    /// the element type
    #[attr(default = "i64")]
    dtype: DType,
}

impl Operator for Arange {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        if self.dtype == DType::BOOL {
            return cx.bad_attr("dtype", self.dtype, "truth values are no numbers");
        }
        match cx.shape(0)? {
            Some([_]) => Ok(cx.tensor_type(self.dtype, cx.shape(0)?)),
            _ => Err(cx.wrong_arg(0, "a shape of one dimension")),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let count: usize = shape.iter().product();
        with_number!(dtype, T => {
            let numbers = (0..count).map(|number| T::from_i64(number as i64)).collect();
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), numbers)])
        })
    }
}

/// Each number is its place.
#[rule(compute)]
fn program(_: &Arange, program: &mut Program) -> Result<()> {
    let out = program.output(0);
    program.set(&out, |indices| indices[0].cast(out.dtype()));
    Ok(())
}

/// It stays as it is: its shape is an argument.
#[rule(layout)]
fn layout(_: &Arange, _: &mut Following<'_>) -> Option<Carried> {
    None
}
