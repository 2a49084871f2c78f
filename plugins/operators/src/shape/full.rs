//! A tensor of one value.
//!
//! ```ir
//! %y = full(%s) { value = 1.5 }    shape[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::import::LARGEST_KNOWN;
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

/// One value everywhere.
#[rule(compute)]
fn program(op: &Full, program: &mut Program) -> Result<()> {
    let out = program.output(0);
    let value = match program.terms().view(op.value) {
        TermView::Int(value) if !out.dtype().is_float() => program.int(out.dtype(), value),
        TermView::Int(value) => program.literal(out.dtype(), value as f64),
        TermView::Float(value) => program.literal(out.dtype(), value),
        TermView::Bool(value) => program.literal(out.dtype(), value as i64 as f64),
        _ => return Err(OpError::Unsupported("its `value` is no number".into())),
    };
    program.set(&out, |_| value);
    Ok(())
}

/// It stays as it is: its shape is an argument.
#[rule(layout)]
fn layout(_: &Full, _: &mut Following<'_>) -> Option<Carried> {
    None
}

/// `ConstantOfShape`: however large, it stays a call of `full`.
#[rule(import.onnx, key = "ConstantOfShape", since = 9)]
fn import(node: &mut Node<'_>) -> Outputs {
    let dims = node.input_dims(0)?;
    if dims.iter().any(|&dim| node.terms().dim_value(dim).is_some_and(|dim| dim < 0)) {
        return invalid("a dimension of its shape is negative");
    }
    let (dtype, value) = match node.tensor("value")? {
        None => (DType::F32, Scalar::Float(0.0)),
        Some(constant) => match node.number(constant) {
            Some(number) => (node.dtype(constant)?, number),
            None => return invalid("its value is not one element"),
        },
    };
    if let Some(known) = small_number(node, dtype, value, &dims)
        && node.spend(size_of_val(known.elements.as_slice()))
    {
        return Ok(vec![node.known(&known)?]);
    }
    let value: AttrValue = match value {
        Scalar::Float(value) => value.into(),
        Scalar::Int(value) => value.into(),
        Scalar::Bool(value) => value.into(),
    };
    let shape = node.shape(&dims)?;
    let attrs = [("value", value), ("dtype", dtype.to_string().into())];
    Ok(vec![node.call("full", &[shape], &attrs)?])
}

/// A few equal integers, which may be meant as a shape.
fn small_number(node: &Node<'_>, dtype: DType, value: Scalar, dims: &[Dim]) -> Option<Known> {
    let element = match value {
        Scalar::Int(value) => value,
        Scalar::Bool(value) => i64::from(value),
        Scalar::Float(_) => return None,
    };
    let shape: Option<Vec<usize>> =
        dims.iter().map(|&dim| usize::try_from(node.terms().dim_value(dim)?).ok()).collect();
    let shape = shape.filter(|_| Known::has_elements_of(dtype))?;
    let count = shape.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim))?;
    let element = node.cx().dim(element);
    (count <= LARGEST_KNOWN).then(|| Known { dtype, shape, elements: vec![element; count] })
}
