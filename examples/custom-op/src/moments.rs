//! Mean and variance of each row along an axis.
//!
//! ```ir
//! %m = acme.moments(%x) { axis = 1 }    f32[n, 3]  =>  (f32[n], f32[n])
//! ```
//!
//! The variance is the mean of the squared distances from the mean, which cancels nothing where the mean is large.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Extent, Reducer};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_float;

/// Mean and variance along an axis
#[op(name = "acme.moments", aliases = ["acme.mean_and_variance"], pattern = "reduction")]
pub struct Moments {
    /// the axis whose elements are one row
    #[attr(default = -1)]
    axis: i64,
    /// whether the axis stays, with extent 1
    #[attr(default = false)]
    keepdims: bool,
    /// subtracted from the number of elements that the variance is divided by
    #[attr(default = 0, min = 0, max = 1)]
    correction: i64,
}

impl Operator for Moments {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        let TensorTy { dtype, dims } = cx.tensor(0)?;
        let part = match dims {
            None => cx.tensor_type(dtype, None),
            Some(dims) => {
                let axis = cx.axis("axis", self.axis, dims.len())?;
                let mut dims = dims.to_vec();
                match self.keepdims {
                    true => dims[axis] = cx.dim(1),
                    false => drop(dims.remove(axis)),
                }
                cx.tensor_type(dtype, Some(&dims))
            }
        };
        Ok(cx.tuple_type(&[part, part]))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let x = cx.arg(0)?;
        let axis = self.axis.rem_euclid(x.shape().len() as i64) as usize;
        let inner: usize = x.shape()[axis + 1..].iter().product();
        let extent = x.shape()[axis];
        let shape = cx.outs[0].1.clone();
        with_float!(x.dtype(), T => {
            let elements = x.elements::<T>();
            let rows = shape.iter().product::<usize>();
            let (mut means, mut variances) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
            for row in 0..rows {
                let first = row / inner * extent * inner + row % inner;
                let at = |index: usize| elements[first + index * inner].to_f64();
                let mean = (0..extent).map(at).sum::<f64>() / extent as f64;
                let squares = (0..extent).map(|index| (at(index) - mean).powi(2)).sum::<f64>();
                means.push(T::from_f64(mean));
                variances.push(T::from_f64(squares / (extent as i64 - self.correction) as f64));
            }
            Ok(vec![
                Tensor::from_vec(shape.clone(), means),
                Tensor::from_vec(shape, variances),
            ])
        })
    }
}

/// The sums of the rows, their means, and the sums of how far elements lie from these.
#[rule(compute)]
fn program(op: &Moments, program: &mut Program) {
    let [x, means, variances] = [program.input(0), program.output(0), program.output(1)];
    let (dtype, rows) = (x.compute_dtype(), means.shape());
    let axis = op.axis.rem_euclid(x.shape().len() as i64) as usize;
    let extent = x.shape()[axis];
    let count = extent.index(program).cast(dtype);
    let element = |row: &[_], k: &[_]| {
        let behind = if op.keepdims { axis + 1 } else { axis };
        x.wide(&[&row[..axis], k, &row[behind..]].concat())
    };
    let sum = program.reduce("sum", Reducer::Sum, dtype, rows, &[extent], element);
    let mean = program.map("mean", dtype, rows, |row| sum.at(row) / count);
    let squares = program.reduce("squares", Reducer::Sum, dtype, rows, &[extent], |row, k| {
        let distance = element(row, k) - mean.at(row);
        distance * distance
    });
    program.set(&means, |row| mean.at(row));
    program.set(&variances, |row| squares.at(row) / (count - op.correction));
}

/// Of a `transpose` it is that of its argument, along the axis that the axis was, where the others stay in their order.
#[rule(simplify)]
fn simplify(op: &Moments, at: &mut Site<'_>) -> Option<Expr> {
    let inner = at.call_of(at.arg(0), "transpose")?;
    let source = inner.args[0];
    let rank = at.rank(source)?;
    let axes = at.terms().attrs(inner.attrs).ints("axes");
    let axes = axes.unwrap_or_else(|| (0..rank as i64).rev().collect());
    let along = axes[op.axis.rem_euclid(rank as i64) as usize].rem_euclid(rank as i64);
    let others: Vec<i64> =
        axes.iter().map(|axis| axis.rem_euclid(rank as i64)).filter(|&axis| axis != along).collect();
    if op.keepdims || !others.is_sorted() {
        return None;
    }
    let attrs = at.with_cx(|cx| cx.with_attr(at.call.attrs, "axis", along.into()));
    let moments = at.call_op("acme.moments", &[source], attrs);
    at.same_type(moments)
}

/// Not at all: squares of f16 are soon beyond its range.
#[rule(precision)]
fn precision(_: &Moments, _: &mut Site<'_>) -> Option<Precision> {
    Some(Precision::Never)
}

/// Along the place of its axis, which the result lacks unless it is kept. Both results have one order.
#[rule(layout)]
fn layout(op: &Moments, at: &mut Following<'_>) -> Option<Carried> {
    let x = at.carried()?;
    let place = x.place(op.axis)? as i64;
    let moments = at.with_attr(x, "axis", place.into())?;
    Some(if op.keepdims { moments } else { moments.without(&[place]) })
}

/// With `n` elements in a row: `g / n` for the mean, `2 g (x - mean) / (n - correction)` for the variance.
#[rule(gradient)]
fn gradient(op: &Moments, at: &mut Adjoint<'_>) -> Result<Grads> {
    let x = at.arg(0);
    let axis = at.axis(x, op.axis)?;
    let count = at.extents(x)?[axis as usize];
    let (_, mut row) = at.tensor(x)?;
    row[axis as usize] = at.with_cx(|cx| cx.dim(1));
    let mut parts = Vec::new();
    if let Some(g) = at.grads()[0] {
        let g = at.reshape(g, &row);
        let each = at.scale(g, 1.0 / count as f64);
        parts.push(at.broadcast_like(each, x)?);
    }
    if let Some(g) = at.grads()[1] {
        let g = at.reshape(g, &row);
        let mean = at.reduce("mean", x, &[axis], true);
        let distance = at.sub(x, mean);
        let slope = at.scale(distance, 2.0 / (count - op.correction) as f64);
        parts.push(at.mul(g, slope));
    }
    let sum = parts.into_iter().reduce(|sum, part| at.add(sum, part));
    Ok([sum.map_or(Grad::Zero, Grad::Of)].into())
}

/// `Moments` of version 1 of Acme's own domain: the axis is an attribute.
#[rule(import.onnx, domain = "acme.ops", key = "Moments", since = 1, until = 1)]
fn import_with_attribute(node: &mut Node<'_>) -> Outputs {
    node.check_arity(1, 1)?;
    let axis = node.int_or("axis", -1)?;
    import(node, axis)
}

/// `Moments` since version 2: the axis is an input, and must be known when the model is compiled.
#[rule(import.onnx, domain = "acme.ops", key = "Moments", since = 2)]
fn import_with_input(node: &mut Node<'_>) -> Outputs {
    node.check_arity(1, 2)?;
    match node.optional_ints(1)?.as_deref() {
        None => import(node, -1),
        Some(&[axis]) => import(node, axis),
        Some(_) => invalid("its axis is not one number"),
    }
}

fn import(node: &mut Node<'_>, axis: i64) -> Outputs {
    let x = node.input(0)?;
    let attrs = [
        ("axis", axis.into()),
        ("keepdims", node.flag("keepdims", false)?.into()),
        ("correction", i64::from(node.flag("unbiased", false)?).into()),
    ];
    let both = node.call("acme.moments", &[x], &attrs)?;
    node.items(both)
}
