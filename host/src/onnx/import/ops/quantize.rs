//! Quantization: numbers as integers on a scale.

use crate::ir::{Context, DType, Dim};
use crate::onnx::import::builder::Value;
use crate::onnx::import::error::{Problem, invalid, unsupported};
use crate::onnx::import::node::NodeCx;
use crate::onnx::import::tensor::dtype_of_code;

use super::cast::cast_to;
use super::shape::reshape_to;

type Outputs = Result<Vec<Value>, Problem>;

/// `QuantizeLinear`: x / scale rounded to even, moved by the zero point, and clipped to the integers.
pub(in crate::onnx::import) fn quantize(cx: &mut NodeCx<'_, '_>) -> Outputs {
    // It is about 8-bit floats alone.
    cx.ignore("saturate");
    let (x, scale, zero) = (cx.input(0)?, cx.input(1)?, cx.optional(2));
    let zero_dtype = zero.map(|zero| cx.dtype(zero)).transpose()?;
    let dtype = match (zero_dtype, dtype_in(cx, "output_dtype")?) {
        (Some(zero), Some(output)) if zero != output => {
            return invalid(format!("its zero point is {zero}, its output {output}"));
        }
        (zero, output) => output.or(zero).unwrap_or(DType::U8),
    };
    let Some((min, max)) = bounds(dtype) else {
        return unsupported(format!("the element type {dtype}"));
    };
    let precision = match dtype_in(cx, "precision")? {
        Some(precision) => precision,
        None => cx.dtype(scale)?,
    };
    let block = Blocks::of(cx, x)?;
    let scale = block.spread(cx, scale)?;
    let (x, scale) = (cast_to(cx, x, precision)?, cast_to(cx, scale, precision)?);
    let mut y = cx.apply("divide", &[x, scale])?;
    y = cx.apply("round", &[y])?;
    // Here the sum with a zero point of 16 bits is exact, wherever it is within the bounds.
    let wide = if precision == DType::F64 { DType::F64 } else { DType::F32 };
    y = cast_to(cx, y, wide)?;
    if let Some(zero) = zero {
        let zero = block.spread(cx, zero)?;
        let zero = cast_to(cx, zero, wide)?;
        y = cx.apply("add", &[y, zero])?;
    }
    y = cx.call("clip", &[y], &[("min", min.into()), ("max", max.into())])?;
    Ok(vec![cast_to(cx, y, dtype)?])
}

/// `DequantizeLinear`: (x - zero point) * scale.
pub(in crate::onnx::import) fn dequantize(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let (x, scale) = (cx.input(0)?, cx.input(1)?);
    let dtype = match dtype_in(cx, "output_dtype")? {
        Some(dtype) => dtype,
        None => cx.dtype(scale)?,
    };
    let block = Blocks::of(cx, x)?;
    let mut y = x;
    if let Some(zero) = cx.optional(2) {
        let zero = block.spread(cx, zero)?;
        let zero = cast_to(cx, zero, DType::I32)?;
        y = cast_to(cx, y, DType::I32)?;
        y = cx.apply("subtract", &[y, zero])?;
    }
    let scale = block.spread(cx, scale)?;
    let (y, scale) = (cast_to(cx, y, dtype)?, cast_to(cx, scale, dtype)?);
    Ok(vec![cx.apply("multiply", &[y, scale])?])
}

/// The element type that an attribute names; zero stands for none.
fn dtype_in(cx: &NodeCx<'_, '_>, name: &str) -> Result<Option<DType>, Problem> {
    match cx.int_or(name, 0)? {
        0 => Ok(None),
        code => {
            dtype_of_code(i32::try_from(code).unwrap_or(-1)).map(Some).map_err(Problem::Unsupported)
        }
    }
}

/// The smallest and largest number of an integer type that is quantized to.
fn bounds(dtype: DType) -> Option<(f64, f64)> {
    Some(match dtype {
        DType::U8 => (0.0, f64::from(u8::MAX)),
        DType::I8 => (f64::from(i8::MIN), f64::from(i8::MAX)),
        DType::U16 => (0.0, f64::from(u16::MAX)),
        DType::I16 => (f64::from(i16::MIN), f64::from(i16::MAX)),
        _ => return None,
    })
}

/// Which elements of the data share a scale and a zero point.
struct Blocks {
    dims: Vec<Dim>,
    axis: i64,
    /// Elements along the axis; 0 where each index along it has a scale of its own, or all have one.
    size: i64,
}

impl Blocks {
    fn of(cx: &NodeCx<'_, '_>, x: Value) -> Result<Self, Problem> {
        let (axis, size) = (cx.int_or("axis", 1)?, cx.int_or("block_size", 0)?);
        Ok(Self { dims: cx.dims(x)?, axis, size })
    }

    /// Scales or zero points in a shape that is broadcast to that of the data.
    fn spread(&self, cx: &mut NodeCx<'_, '_>, value: Value) -> Result<Value, Problem> {
        let own = cx.dims(value)?;
        if self.size != 0 {
            return self.repeat(cx, value, own);
        }
        let one = cx.cx().dim(1);
        match own.as_slice() {
            [] => Ok(value),
            &[count] if count == one => reshape_to(cx, value, &[]),
            &[count] => {
                let axis = cx.axis(self.axis, self.dims.len())?;
                let mut shape = vec![count];
                shape.resize(self.dims.len() - axis, one);
                reshape_to(cx, value, &shape)
            }
            _ => invalid(format!("its scale has {} dimensions", own.len())),
        }
    }

    /// Each element as often along the axis as a block is long; the last block may be shorter.
    fn repeat(
        &self,
        cx: &mut NodeCx<'_, '_>,
        value: Value,
        own: Vec<Dim>,
    ) -> Result<Value, Problem> {
        let axis = cx.axis(self.axis, self.dims.len())?;
        if own.len() != self.dims.len() {
            return invalid(format!("its scale has {} dimensions", own.len()));
        }
        let extents = [self.dims[axis], own[axis]].map(|dim| cx.terms().dim_value(dim));
        let [Some(extent), Some(count)] = extents else {
            return unsupported("blocks along a symbolic dimension");
        };
        let whole = match self.size.checked_mul(count) {
            Some(whole) if (whole - self.size + 1..=whole).contains(&extent) => whole,
            _ => {
                return invalid(format!("{count} blocks of {} for {extent} elements", self.size));
            }
        };
        let with = |dim: i64, split: bool| {
            let mut dims = own.clone();
            match split {
                true => dims.insert(axis + 1, cx.cx().dim(dim)),
                false => dims[axis] = cx.cx().dim(dim),
            }
            dims
        };
        let (narrow, wide, flat) = (with(1, true), with(self.size, true), with(whole, false));
        let value = reshape_to(cx, value, &narrow)?;
        let wide = cx.shape(&wide);
        let value = cx.apply("broadcast_to", &[value, wide])?;
        let value = reshape_to(cx, value, &flat)?;
        if whole == extent {
            return Ok(value);
        }
        let attrs = [
            ("begin", vec![0].into()),
            ("end", vec![extent].into()),
            ("axes", vec![axis as i64].into()),
        ];
        cx.call("strided_slice", &[value], &attrs)
    }
}
