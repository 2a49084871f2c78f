//! A tensor of one value.
//!
//! ```ir
//! %y = full(%s) { value = 1.5 }    shape[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

/// A tensor of the shape of the argument, of one value
#[op(name = "full", pattern = "elementwise")]
pub struct Full {
    /// a number or a truth value
    value: Term,
    /// the element type
    #[attr(default = "f32")]
    dtype: DType,
}

impl Operator for Full {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        Ok(cx.tensor_type(self.dtype, cx.shape(0)?))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let count = shape.iter().product();
        with_number!(dtype, T => {
            let value = match cx.attrs.terms().view(self.value) {
                TermView::Int(value) => T::from_i64(value),
                TermView::Float(value) => T::from_f64(value),
                TermView::Bool(value) => T::from_i64(value as i64),
                _ => return Err(OpError::Value("`value` is no number and no truth value".into())),
            };
            let value = match dtype {
                DType::BOOL => T::from_i64((value != T::default()) as i64),
                _ => value,
            };
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), vec![value; count])])
        })
    }
}

/// It stays as it is: its shape is an argument.
#[rule(layout)]
fn layout(_: &Full, _: &mut Following<'_>) -> Option<Carried> {
    None
}
