//! Elements put where the windows that they are the largest of had them.
//!
//! ```ir
//! %y = nn.max_unpool(%x, %i, %s)    f32[n, 8, 16, 16], i64[n, 8, 16, 16], shape[n, 8, 32, 32]  =>  f32[n, 8, 32, 32]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::Extent;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use crate::onnx::spatial::check;
use crate::onnx::steps::extent_of;

/// Zeros of the shape that the third argument is, with elements at indices that count all elements of it
#[op(name = "nn.max_unpool", args = 3)]
pub struct MaxUnpool {}

impl Operator for MaxUnpool {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let (data, indices) = (cx.tensor(0)?, cx.tensor(1)?);
        if !indices.dtype.is_int() {
            let (expected, found) = ("integers".to_owned(), indices.dtype);
            return Err(OpError::WrongDType { index: 1, expected, found });
        }
        if let (Some(data), Some(indices)) = (data.dims, indices.dims) {
            let is_different = |(&a, &b): (&Dim, &Dim)| cx.is_different(a, b);
            if data.len() != indices.len() || data.iter().zip(indices).any(is_different) {
                return Err(cx.mismatch("the shapes of elements and indices", data, indices));
            }
        }
        Ok(cx.tensor_type(data.dtype, cx.shape(2)?))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (data, indices) = (cx.arg(0)?, cx.arg(1)?);
        let (dtype, shape) = cx.out()?;
        let indices: Vec<i64> = with_number!(indices.dtype(), I => {
            Ok(indices.elements::<I>().iter().map(|index| index.to_i64()).collect())
        })?;
        with_number!(dtype, T => {
            let mut out = vec![T::default(); shape.iter().product()];
            for (&x, index) in data.elements::<T>().iter().zip(indices) {
                let place = usize::try_from(index).ok().and_then(|index| out.get_mut(index));
                if let Some(place) = place {
                    *place = x;
                }
            }
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// Zeros, then one element after the other: two indices may be equal.
#[rule(compute)]
fn program(_: &MaxUnpool, program: &mut Program) {
    let program = &*program;
    let (x, indices, out) = (program.input(0), program.input(1), program.output(0));
    program.set(&out, |_| program.literal(out.dtype(), 0.0));
    program.in_order(x.shape(), |i| {
        let index = indices.at(i).cast(DType::I64);
        let (mut rest, mut at) = (index, Vec::new());
        let mut count = program.index(1);
        for (axis, &extent) in out.shape().iter().enumerate().rev() {
            // Of an axis without elements nothing is written.
            let extent = extent.index(program);
            // What is there is below the first extent, so that all places together are the index again.
            at.push(if axis == 0 { rest } else { rest % extent.max(1) });
            rest = rest / extent.max(1);
            count = count * extent;
        }
        at.reverse();
        let is_there = index.ge(0).and(index.lt(count));
        program.when(is_there, out.set(&at, x.at(i)))
    });
}

/// `MaxUnpool`: indices count the elements of the smallest data that were pooled; what `output_shape` asks for beyond it are zeros.
#[rule(import.onnx, key = "MaxUnpool", since = 9)]
fn import(node: &mut Node<'_>) -> Outputs {
    node.check_arity(2, 3)?;
    let (x, indices) = (node.input(0)?, node.input(1)?);
    let dims = node.dims(x)?;
    let rank = dims.len().saturating_sub(2);
    let Some(kernel) = node.ints("kernel_shape")? else {
        return invalid("its attribute `kernel_shape` is missing");
    };
    let strides = node.ints("strides")?.unwrap_or_else(|| vec![1; rank]);
    let pads = node.ints("pads")?.unwrap_or_else(|| vec![0; 2 * rank]);
    for (name, list, count, least) in [
        ("kernel_shape", &kernel, rank, 1),
        ("strides", &strides, rank, 1),
        ("pads", &pads, 2 * rank, 0),
    ] {
        check(name, list, count, least)?;
    }
    let mut shape = dims[..dims.len().min(2)].to_vec();
    for axis in 0..rank {
        let cx = node.cx();
        let moved = cx.dim_mul(cx.dim_sub(dims[2 + axis], cx.dim(1)), cx.dim(strides[axis]));
        shape.push(cx.dim_add(moved, cx.dim(kernel[axis] - pads[axis] - pads[rank + axis])));
    }
    let smallest = node.shape(&shape)?;
    let mut y = node.call("nn.max_unpool", &[x, indices, smallest], &[])?;
    if let Some(wanted) = node.optional(2) {
        let Some(Known { elements: wanted, .. }) = node.elements(wanted) else {
            return node.not_extents(2);
        };
        if wanted.len() != shape.len() {
            return invalid(format!("an output_shape of {} dimensions", wanted.len()));
        }
        let mut widths = Vec::new();
        for (&wanted, &own) in wanted.iter().zip(&shape) {
            let more = node.cx().dim_sub(wanted, own);
            widths.extend([0, extent_of(node, more, "output_shape")?]);
        }
        if widths.iter().any(|&width| width < 0) {
            return invalid("its output_shape is smaller than what was pooled");
        }
        if widths.iter().any(|&width| width > 0) {
            y = node.call("nn.pad", &[y], &[("pad_width", widths.into())])?;
        }
    }
    Ok(vec![y])
}
