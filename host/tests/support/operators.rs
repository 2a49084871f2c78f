//! Operators that tests of the host are made of: the host has none, and its tests are not to need a plugin.

use tenon_plugin_api::ir::Bytes;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_number;

/// Operators of one number, of two of one type that are broadcast, and what they make of elements.
macro_rules! arithmetic {
    ($($args:tt $pattern:literal $op:ident $name:literal $summary:literal $infer:ident |$x:ident, $t:ident| $value:expr;)*) => {$(
        #[doc = $summary]
        #[op(name = $name, args = $args, pattern = $pattern)]
        struct $op;

        impl Operator for $op {
            fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
                $infer(cx)
            }

            fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
                with_number!(cx.arg(cx.args.len() - 1)?.dtype(), $t => each(cx, |$x: &[$t]| $value))
            }
        }
    )*};
}

arithmetic! {
    1 "elementwise" Double "test.double" "x + x" same |x, T| Ok(T::add(x[0], x[0]));
    1 "elementwise" Triple "test.triple" "x + x + x" same |x, T| Ok(T::add(x[0], T::add(x[0], x[0])));
    1 "elementwise" Square "test.square" "x * x" same |x, T| Ok(T::mul(x[0], x[0]));
    1 "elementwise" Opposite "test.opposite" "-x" same |x, T| Ok(T::neg(x[0]));
    1 "elementwise" Distance "test.distance" "-x below 0" same |x, T| Ok(T::abs(x[0]));
    1 "elementwise" Ramp "test.ramp" "0 below 0" same |x, T| Ok(T::larger(x[0], T::default()));
    1 "elementwise" Positive "test.positive" "x above 0, else 0" same |x, T| Ok(positive(x[0]));
    2 "broadcast" Total "test.total" "a + b" broadcast |x, T| Ok(T::add(x[0], x[1]));
    2 "broadcast" Less "test.less" "a - b" broadcast |x, T| Ok(T::sub(x[0], x[1]));
    2 "broadcast" Times "test.times" "a * b" broadcast |x, T| Ok(T::mul(x[0], x[1]));
    2 "broadcast" Parts "test.parts" "a / b" broadcast |x, T| parts(x[0], x[1]);
    2 "broadcast" Highest "test.highest" "the larger one" broadcast |x, T| Ok(T::larger(x[0], x[1]));
    2 "broadcast" Lowest "test.lowest" "the smaller one" broadcast |x, T| Ok(T::smaller(x[0], x[1]));
}

/// Whether a > b
#[op(name = "test.above", args = 2, pattern = "broadcast")]
struct Above;

impl Operator for Above {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let TensorTy { dims, .. } = cx.tensor(0)?;
        Ok(cx.tensor_type(DType::BOOL, dims))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => {
            let (a, b) = (cx.arg(0)?.elements::<T>(), cx.arg(1)?.elements::<T>());
            let above = |(a, b): (&T, &T)| u8::from(a > b);
            let (dtype, shape) = cx.out()?;
            let truths = a.iter().zip(b.iter().cycle()).map(above).collect();
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), truths)])
        })
    }
}

/// The tensors of a tuple one behind the other
#[op(name = "test.joined", pattern = "injective")]
struct Joined;

impl Operator for Joined {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let mut extent = cx.dim(0);
        let mut joined = None;
        for &field in cx.tuple(0)? {
            let TypeView::Tensor { dtype, dims } = cx.terms().ty(field) else {
                return Err(cx.wrong_arg(0, "a tuple of tensors"));
            };
            let Some((&first, rest)) = dims.and_then(<[Dim]>::split_first) else {
                return Ok(cx.tensor_type(dtype, None));
            };
            extent = cx.dim_add(extent, first);
            joined = Some((dtype, rest));
        }
        let (dtype, rest) = joined.ok_or_else(|| cx.wrong_arg(0, "a tuple of tensors"))?;
        Ok(cx.tensor_type(dtype, Some(&[&[extent], rest].concat())))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let parts: Vec<&[u8]> = cx.args.iter().map(|part| &part.bytes()[..]).collect();
        let joined = Tensor::new(dtype, shape.to_vec(), Bytes::new(parts.concat()));
        Ok(joined.into_iter().collect())
    }
}

/// The elements of a tensor in another shape
#[op(name = "test.regrouped", args = 2, effect = "shares", pattern = "injective")]
struct Regrouped;

impl Operator for Regrouped {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        Ok(cx.tensor_type(cx.tensor(0)?.dtype, cx.shape(1)?))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![cx.arg(0)?.reshaped(cx.out()?.1.to_vec())])
    }
}

/// A tensor of i64 as a shape
#[op(name = "test.shape")]
struct Shape;

impl Operator for Shape {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        Ok(cx.shape_type(None))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![cx.arg(0)?.clone()])
    }
}

/// Zeros in a shape
#[op(name = "test.zeros")]
struct Zeros;

impl Operator for Zeros {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        Ok(cx.tensor_type(DType::F32, cx.shape(0)?))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (_, shape) = cx.out()?;
        Ok(vec![Tensor::from_vec(shape.to_vec(), vec![0f32; shape.iter().product()])])
    }
}

fn same(cx: &InferCx<'_>) -> Result<Type> {
    let TensorTy { dtype, dims } = cx.tensor(0)?;
    Ok(cx.tensor_type(dtype, dims))
}

/// The shapes aligned at the last dimension, where 1 gives way.
fn broadcast(cx: &InferCx<'_>) -> Result<Type> {
    cx.check_same_dtype(1)?;
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let (Some(a_dims), Some(b_dims)) = (a.dims, b.dims) else {
        return Ok(cx.tensor_type(a.dtype, None));
    };
    let (long, short) = match a_dims.len() < b_dims.len() {
        true => (b_dims, a_dims),
        false => (a_dims, b_dims),
    };
    let mut dims = long.to_vec();
    let start = long.len() - short.len();
    for (dim, &other) in dims[start..].iter_mut().zip(short) {
        match (cx.value(*dim), cx.value(other)) {
            (Some(1), _) => *dim = other,
            (_, Some(1)) => {}
            (None, None) if *dim != other => *dim = cx.dim_max(*dim, other),
            _ if cx.is_different(*dim, other) => {
                return Err(cx.mismatch("the shapes", a_dims, b_dims));
            }
            _ => {}
        }
    }
    Ok(cx.tensor_type(a.dtype, Some(&dims)))
}

/// As a ramp, but for what is not a number.
fn positive<T: Number>(x: T) -> T {
    if x > T::default() { x } else { T::default() }
}

fn parts<T: Number>(a: T, b: T) -> Result<T> {
    match !T::IS_FLOAT && b == T::default() {
        true => Err(OpError::Unsupported("an integer is divided by zero".into())),
        false => Ok(a.div(b)),
    }
}

/// A result of the elements that a function makes of those at each place of the arguments.
fn each<T: Number>(cx: &EvalCx<'_>, f: impl Fn(&[T]) -> Result<T>) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let count: usize = shape.iter().product();
    let elements = (0..count).map(|place| {
        let args: Vec<T> = cx.args.iter().map(|arg| at(arg, shape, place)).collect();
        f(&args)
    });
    let elements: Vec<T> = elements.collect::<Result<_>>()?;
    Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), elements)])
}

/// The element of an argument that is read at a place of the result.
fn at<T: Number>(arg: &Tensor, shape: &[usize], mut place: usize) -> T {
    let own = arg.shape();
    let (mut index, mut stride) = (0, 1);
    for (axis, &extent) in shape.iter().enumerate().rev() {
        if let Some(own_axis) = (axis + own.len()).checked_sub(shape.len()) {
            index += place % extent % own[own_axis] * stride;
            stride *= own[own_axis];
        }
        place /= extent;
    }
    arg.elements::<T>()[index]
}
