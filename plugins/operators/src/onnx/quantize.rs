//! Quantization: numbers as integers on a scale.

use tenon_plugin_api::rule::prelude::*;

use crate::elementwise::cast::converted;
use crate::onnx::steps::{cast_to, reshape_to};

/// `QuantizeLinear`: x / scale rounded to even, moved by the zero point, and clipped to the integers.
#[rule(import.onnx, key = "QuantizeLinear", since = 10)]
fn quantize(node: &mut Node<'_>) -> Outputs {
    let (x, scale, zero) = (node.input(0)?, node.input(1)?, node.optional(2));
    let zero_dtype = zero.map(|zero| node.dtype(zero)).transpose()?;
    let dtype = match (zero_dtype, dtype_in(node, "output_dtype")?) {
        (Some(zero), Some(output)) if zero != output => {
            return invalid(format!("its zero point is {zero}, its output {output}"));
        }
        (zero, output) => output.or(zero).unwrap_or(DType::U8),
    };
    if !(dtype.is_storage() || dtype.is_int() && dtype.bits() <= 16) {
        return unsupported(format!("the element type {dtype}"));
    }
    let precision = match dtype_in(node, "precision")? {
        Some(precision) => precision,
        None => node.dtype(scale)?,
    };
    let block = Blocks::of(node, x)?;
    let scale = block.spread(node, scale)?;
    let (x, scale) = (cast_to(node, x, precision)?, cast_to(node, scale, precision)?);
    let mut y = node.apply("divide", &[x, scale])?;
    if dtype.is_float() {
        // Its zero point is zero.
        return Ok(vec![converted(node, y, dtype)?]);
    }
    node.ignore("saturate");
    y = node.apply("round", &[y])?;
    // Here the sum with a zero point of 16 bits is exact, wherever it is within the bounds.
    let wide = if precision == DType::F64 { DType::F64 } else { DType::F32 };
    y = cast_to(node, y, wide)?;
    if let Some(zero) = zero {
        // Converted first: integers of few bits are not computed with.
        let zero = cast_to(node, zero, wide)?;
        let zero = block.spread(node, zero)?;
        y = node.apply("add", &[y, zero])?;
    }
    let (min, max) = dtype.int_bounds();
    let bounds = [("min", (min as f64).into()), ("max", (max as f64).into())];
    y = node.call("clip", &[y], &bounds)?;
    Ok(vec![cast_to(node, y, dtype)?])
}

/// `DequantizeLinear`: (x - zero point) * scale.
#[rule(import.onnx, key = "DequantizeLinear", since = 10)]
fn dequantize(node: &mut Node<'_>) -> Outputs {
    let (x, scale) = (node.input(0)?, node.input(1)?);
    let dtype = match dtype_in(node, "output_dtype")? {
        Some(dtype) => dtype,
        None => node.dtype(scale)?,
    };
    let (block, of_x) = (Blocks::of(node, x)?, node.dtype(x)?);
    if let Some(y) = block.of_weights(node, [x, scale])? {
        return Ok(vec![cast_to(node, y, dtype)?]);
    }
    let mut y = x;
    // That of a float is zero.
    if let Some(zero) = node.optional(2).filter(|_| !of_x.is_float()) {
        let zero = cast_to(node, zero, DType::I32)?;
        let zero = block.spread(node, zero)?;
        y = cast_to(node, y, DType::I32)?;
        y = node.apply("subtract", &[y, zero])?;
    }
    let scale = block.spread(node, scale)?;
    // A short float need not have room for what is not scaled yet.
    let wide = if dtype == DType::F64 { dtype } else { DType::F32 };
    let (y, scale) = (cast_to(node, y, wide)?, cast_to(node, scale, wide)?);
    let y = node.apply("multiply", &[y, scale])?;
    Ok(vec![cast_to(node, y, dtype)?])
}

/// ONNX Runtime's own, which its tools write for integers of 4 and 16 bits where the standard's is older than version 21.
#[rule(import.onnx, domain = "com.microsoft", key = "QuantizeLinear")]
fn quantize_to_more(node: &mut Node<'_>) -> Outputs {
    quantize(node)
}

/// The same the other way.
#[rule(import.onnx, domain = "com.microsoft", key = "DequantizeLinear")]
fn dequantize_from_more(node: &mut Node<'_>) -> Outputs {
    dequantize(node)
}

/// The element type that an attribute names; zero stands for none.
fn dtype_in(node: &Node<'_>, name: &str) -> Result<Option<DType>, Problem> {
    match node.int_or(name, 0)? {
        0 => Ok(None),
        _ => node.element_type(name),
    }
}

/// Which elements of the data share a scale and a zero point.
struct Blocks {
    dims: Vec<Dim>,
    axis: i64,
    /// Elements along the axis; 0 where each index along it has a scale of its own, or all have one.
    size: i64,
}

impl Blocks {
    fn of(node: &Node<'_>, x: Value) -> Result<Self, Problem> {
        let (axis, size) = (node.int_or("axis", 1)?, node.int_or("block_size", 0)?);
        Ok(Self { dims: node.dims(x)?, axis, size })
    }

    /// Scales or zero points in a shape that is broadcast to that of the data.
    fn spread(&self, node: &mut Node<'_>, value: Value) -> Result<Value, Problem> {
        let own = node.dims(value)?;
        if self.size != 0 {
            return self.repeat(node, value, own);
        }
        let one = node.cx().dim(1);
        match own.as_slice() {
            [] => Ok(value),
            &[count] if count == one => reshape_to(node, value, &[]),
            &[count] => {
                let axis = node.axis(self.axis, self.dims.len())?;
                let mut shape = vec![count];
                shape.resize(self.dims.len() - axis, one);
                reshape_to(node, value, &shape)
            }
            _ => invalid(format!("its scale has {} dimensions", own.len())),
        }
    }

    /// A constant matrix of few bits as one call, which products know how to keep as it is; none for all else.
    fn of_weights(
        &self,
        node: &mut Node<'_>,
        [x, scale]: [Value; 2],
    ) -> Result<Option<Value>, Problem> {
        let narrow = match node.dtype(x)? {
            DType::I4 | DType::I8 => DType::I8,
            DType::U4 | DType::U8 => DType::U8,
            _ => return Ok(None),
        };
        let extents: Vec<i64> =
            self.dims.iter().filter_map(|&dim| node.terms().dim_value(dim)).collect();
        let (&[rows, columns], true) = (extents.as_slice(), node.is_constant(x)) else {
            return Ok(None);
        };
        let own = node.dims(scale)?;
        let is_wide = node.dtype(scale)?.bits() > 32;
        if rows * columns == 0 || self.dims.len() != 2 || is_wide {
            return Ok(None);
        }
        let scale = cast_to(node, scale, DType::F32)?;
        let (along, block, shape) = match (own.as_slice(), node.axis(self.axis, 2)?) {
            (&[_, _], along) if self.size > 0 => (along, self.size, own.clone()),
            ([] | [_], axis) if self.size == 0 => {
                let mut shape = vec![node.cx().dim(1); 2];
                if let &[count] = own.as_slice() {
                    shape[axis] = count;
                }
                (1 - axis, extents[1 - axis], shape)
            }
            _ => return Ok(None),
        };
        let zero = match node.optional(2) {
            Some(zero) => zero,
            None => node.scalar(narrow, 0.0)?,
        };
        let zero = cast_to(node, zero, narrow)?;
        let zero = match node.dims(zero)?.len() == own.len() {
            true => reshape_to(node, zero, &shape)?,
            false => {
                let one = node.cx().dim(1);
                let zero = reshape_to(node, zero, &[one; 2])?;
                let shape = node.shape(&shape)?;
                node.apply("broadcast_to", &[zero, shape])?
            }
        };
        let (x, scale) = (cast_to(node, x, narrow)?, reshape_to(node, scale, &shape)?);
        let attrs = [("axis", (along as i64).into()), ("block", block.into())];
        Ok(Some(node.call("dequantize", &[x, scale, zero], &attrs)?))
    }

    /// Each element as often along the axis as a block is long; the last block may be shorter.
    fn repeat(&self, node: &mut Node<'_>, value: Value, own: Vec<Dim>) -> Result<Value, Problem> {
        let axis = node.axis(self.axis, self.dims.len())?;
        if own.len() != self.dims.len() {
            return invalid(format!("its scale has {} dimensions", own.len()));
        }
        let extents = [self.dims[axis], own[axis]].map(|dim| node.terms().dim_value(dim));
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
                true => dims.insert(axis + 1, node.cx().dim(dim)),
                false => dims[axis] = node.cx().dim(dim),
            }
            dims
        };
        let (narrow, wide, flat) = (with(1, true), with(self.size, true), with(whole, false));
        let value = reshape_to(node, value, &narrow)?;
        let wide = node.shape(&wide)?;
        let value = node.apply("broadcast_to", &[value, wide])?;
        let value = reshape_to(node, value, &flat)?;
        if whole == extent {
            return Ok(value);
        }
        let attrs = [
            ("begin", vec![0].into()),
            ("end", vec![extent].into()),
            ("axes", vec![axis as i64].into()),
        ];
        node.call("strided_slice", &[value], &attrs)
    }
}
