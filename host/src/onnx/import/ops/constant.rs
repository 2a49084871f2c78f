//! Constants.

use half::{bf16, f16};

use crate::ir::{AttrValue, Context, DType};
use crate::onnx::import::builder::Value;
use crate::onnx::import::error::{Problem, invalid, unsupported};
use crate::onnx::import::known::{Known, LARGEST, is_number};
use crate::onnx::import::node::NodeCx;

use super::scalar::{Number, number, number_in};

type Outputs = Result<Vec<Value>, Problem>;

/// `Constant`: a tensor, a number or a list of numbers.
pub(in crate::onnx::import) fn constant(cx: &mut NodeCx<'_, '_>) -> Outputs {
    if let Some(constant) = cx.tensor("value")? {
        return Ok(vec![cx.constant(constant)]);
    }
    let value = if let Some(value) = cx.float("value_float")? {
        cx.constant_of(DType::F32, &[], value.to_le_bytes().to_vec())
    } else if let Some(value) = cx.int("value_int")? {
        cx.constant_of(DType::I64, &[], value.to_le_bytes().to_vec())
    } else if let Some(values) = cx.floats("value_floats")? {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        cx.constant_of(DType::F32, &[values.len() as i64], bytes)
    } else if let Some(values) = cx.ints("value_ints")? {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        cx.constant_of(DType::I64, &[values.len() as i64], bytes)
    } else {
        for name in ["value_string", "value_strings", "sparse_value"] {
            if cx.has(name) {
                return unsupported(format!("attribute `{name}`"));
            }
        }
        return invalid("it has no value");
    };
    Ok(vec![value])
}

/// `ConstantOfShape`: however large, it stays a call of `full`.
pub(in crate::onnx::import) fn constant_of_shape(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let dims = cx.input_dims(0)?;
    if dims.iter().any(|&dim| cx.terms().dim_value(dim).is_some_and(|dim| dim < 0)) {
        return invalid("a dimension of its shape is negative");
    }
    let (dtype, value) = match cx.tensor("value")? {
        None => (DType::F32, Number::Float(0.0)),
        Some(constant) => {
            let dtype = cx.terms().static_tensor(constant.ty).map(|(dtype, _)| dtype);
            match dtype.zip(number_in(cx.cx(), &constant)) {
                Some(found) => found,
                None => return invalid("its value is not one element"),
            }
        }
    };
    if let Some(known) = small_number(cx, dtype, value, &dims)
        && cx.spend(size_of_val(known.elements.as_slice()))
    {
        return Ok(vec![cx.known(known)]);
    }
    let value: AttrValue = match value {
        Number::Float(value) => value.into(),
        Number::Int(value) => value.into(),
        Number::Bool(value) => value.into(),
    };
    let shape = cx.shape(&dims);
    let attrs = [("value", value), ("dtype", dtype.to_string().into())];
    Ok(vec![cx.call("full", &[shape], &attrs)?])
}

/// A few equal integers, which may be meant as a shape.
fn small_number(
    cx: &NodeCx<'_, '_>,
    dtype: DType,
    value: Number,
    dims: &[crate::ir::Dim],
) -> Option<Known> {
    let element = match value {
        Number::Int(value) => value,
        Number::Bool(value) => i64::from(value),
        Number::Float(_) => return None,
    };
    let shape: Option<Vec<usize>> =
        dims.iter().map(|&dim| usize::try_from(cx.terms().dim_value(dim)?).ok()).collect();
    let shape = shape.filter(|_| is_number(dtype))?;
    let count = shape.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim))?;
    let element = cx.cx().dim(element);
    (count <= LARGEST).then(|| Known { dtype, shape, elements: vec![element; count] })
}

/// `Range` of constants.
pub(in crate::onnx::import) fn range(cx: &mut NodeCx<'_, '_>) -> Outputs {
    cx.ignore("stash_type");
    let dtype = cx.dtype(cx.input(0)?)?;
    let mut numbers = [Number::Int(0); 3];
    for (index, found) in numbers.iter_mut().enumerate() {
        *found = match number(cx, cx.input(index)?) {
            Some(number) => number,
            None => return cx.not_constant(index),
        };
    }
    let bytes: Vec<u8> = match numbers {
        [Number::Int(start), Number::Int(limit), Number::Int(delta)] if delta != 0 => {
            let room = (i128::from(limit) - i128::from(start)) * i128::from(delta.signum());
            let count = room.max(0).unsigned_abs().div_ceil(u128::from(delta.unsigned_abs()));
            let count = length(cx, count as f64)?;
            let size = dtype.bits() as usize / 8;
            let at = |i: i64| start.wrapping_add(i.wrapping_mul(delta));
            (0..count).flat_map(|i| at(i).to_le_bytes().into_iter().take(size)).collect()
        }
        [Number::Float(start), Number::Float(limit), Number::Float(delta)] if delta != 0.0 => {
            let count = length(cx, ((limit - start) / delta).ceil())?;
            // In the arithmetic of the type itself; short floats in that of f32.
            let at = |i: i64| start as f32 + i as f32 * delta as f32;
            match dtype {
                DType::F32 => (0..count).flat_map(|i| at(i).to_le_bytes()).collect(),
                DType::F16 => (0..count).flat_map(|i| f16::from_f32(at(i)).to_le_bytes()).collect(),
                DType::BF16 => {
                    (0..count).flat_map(|i| bf16::from_f32(at(i)).to_le_bytes()).collect()
                }
                DType::F64 => {
                    let at = |i: i64| start + i as f64 * delta;
                    (0..count).flat_map(|i| at(i).to_le_bytes()).collect()
                }
                _ => return unsupported(format!("the element type {dtype}")),
            }
        }
        _ => return invalid("a step of zero, or numbers of different types"),
    };
    let count = bytes.len() as i64 * 8 / i64::from(dtype.bits().max(1));
    Ok(vec![cx.constant_of(dtype, &[count], bytes)])
}

/// The length of a range, when there is room for so many numbers.
fn length(cx: &mut NodeCx<'_, '_>, count: f64) -> Result<i64, Problem> {
    // More than this is no business of a model without data of that size.
    const LONGEST: f64 = 65536.0;
    let count = count.max(0.0);
    if count.is_nan() || count > LONGEST {
        return unsupported(format!("a range of {count} numbers"));
    }
    match cx.spend(8 * count as usize) {
        true => Ok(count as i64),
        false => unsupported("a model that computes so many constants"),
    }
}
