//! A box of a tensor that begins where another one says.
//!
//! ```ir
//! %y = dynamic_slice(%x, %first, %size)    f32[n, 3], i64[2], shape[m, 1]  =>  f32[m, 1]
//! ```
//!
//! A box that would reach out of the tensor begins earlier, as XLA's `DynamicSlice` has it. One that is larger than the tensor
//! is an error where that is known; elsewhere its last part repeats the last element.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::Extent;
use tenon_plugin_api::rule::prelude::*;

use crate::kernel::moves::copy;
use crate::kernel::space::row_major;
use crate::precision::follows_precision;

/// A box of the size of the third argument that begins at the indices in the second, or as near as there is room for it
#[op(name = "dynamic_slice", args = 3, pattern = "injective")]
pub struct DynamicSlice;

impl Operator for DynamicSlice {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let (tensor, size) = (cx.tensor(0)?, cx.shape(2)?);
        let (Some(dims), Some(size)) = (tensor.dims, size) else {
            return Ok(cx.tensor_type(tensor.dtype, size));
        };
        let first = cx.tensor_of_rank(1, 1)?;
        if first.dtype != DType::I64 {
            return Err(cx.wrong_arg(1, "a tensor of i64"));
        }
        let count = first.dims.map_or(dims.len() as i64, |dims| cx.value(dims[0]).unwrap_or(-1));
        if size.len() != dims.len() || count != dims.len() as i64 {
            return cx.unsupported("its arguments are not about as many dimensions");
        }
        let is_larger = |(&dim, &size): (&Dim, &Dim)| {
            cx.lower_bound(cx.dim_sub(size, dim)).is_some_and(|least| least > 0)
        };
        if dims.iter().zip(size).any(is_larger) {
            return Err(cx.mismatch("the tensor and a part of it", dims, size));
        }
        Ok(cx.tensor_type(tensor.dtype, Some(size)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (tensor, first) = (cx.arg(0)?, cx.arg(1)?.elements::<i64>());
        let (_, shape) = cx.out()?;
        if tensor.shape().iter().zip(shape).any(|(all, part)| part > all) {
            return Err(OpError::Value("the part is larger than the tensor".into()));
        }
        if shape.contains(&0) {
            return Ok(vec![copy(tensor, 0, shape, vec![0; shape.len()])?]);
        }
        let strides = row_major(tensor.shape());
        let rooms = tensor.shape().iter().zip(shape).map(|(all, part)| (all - part) as i64);
        let places = first.iter().zip(rooms).map(|(&first, room)| first.clamp(0, room));
        let offset: isize = places.zip(&strides).map(|(at, stride)| at as isize * stride).sum();
        Ok(vec![copy(tensor, offset as usize, shape, strides)?])
    }
}

/// Each element from where it is. Along an axis that is taken whole there is nothing to add.
#[rule(compute)]
fn program(_: &DynamicSlice, program: &mut Program) -> Result<()> {
    let (input, first, out) = (program.input(0), program.input(1), program.output(0));
    let (all, part) = (input.shape().to_vec(), out.shape().to_vec());
    program.set(&out, |indices| {
        let place = |(axis, &index): (usize, &_)| {
            if all[axis] == part[axis] {
                return index;
            }
            let (all, part) = (all[axis].index(program), part[axis].index(program));
            let begin = first.at(&[program.index(axis as i64)]).max(0).min((all - part).max(0));
            (begin + index).min((all - 1).max(0))
        };
        let places: Vec<_> = indices.iter().enumerate().map(place).collect();
        input.at(&places)
    });
    Ok(())
}

follows_precision!(DynamicSlice);

/// It stays as it is: its indices are an argument.
#[rule(layout)]
fn layout(_: &DynamicSlice, _: &mut Following<'_>) -> Option<Carried> {
    None
}
