//! Numbers at equal distances: a constant where they are known, and where dimensions say how many they are multiples of
//! `arange`.

use tenon_plugin_api::rule::prelude::*;

use super::fold::Folded;
use super::steps::{cast_to, not_below_zero, reshape_to};
use crate::found::numbers::extent;

/// `Range` of constants.
#[rule(import.onnx, key = "Range", since = 11)]
fn range(node: &mut Node<'_>) -> Outputs {
    node.ignore("stash_type");
    let dtype = node.dtype(node.input(0)?)?;
    let mut numbers = [Scalar::Int(0); 3];
    let is = |index: usize, number: f64| {
        let known = node.number(node.input(index)?).and_then(Scalar::as_float);
        Ok::<bool, Problem>(known == Some(number))
    };
    // How many numbers there are from 0 on is the extent of the result.
    let counts = is(0, 0.0)? && is(2, 1.0)?;
    for (index, found) in numbers.iter_mut().enumerate() {
        *found = match node.number(node.input(index)?) {
            Some(number) => number,
            None if counts => return node.not_extents(index),
            None => return node.not_constant(index),
        };
    }
    let bytes: Vec<u8> = match numbers {
        [Scalar::Int(start), Scalar::Int(limit), Scalar::Int(delta)] if delta != 0 => {
            let room = (i128::from(limit) - i128::from(start)) * i128::from(delta.signum());
            let count = room.max(0).unsigned_abs().div_ceil(u128::from(delta.unsigned_abs()));
            let count = length(node, count as f64)?;
            let size = dtype.bits() as usize / 8;
            let at = |i: i64| start.wrapping_add(i.wrapping_mul(delta));
            (0..count).flat_map(|i| at(i).to_le_bytes().into_iter().take(size)).collect()
        }
        [Scalar::Float(start), Scalar::Float(limit), Scalar::Float(delta)] if delta != 0.0 => {
            let count = length(node, ((limit - start) / delta).ceil())?;
            // In the arithmetic of the type itself; short floats in that of f32.
            let at = |i: i64| match dtype {
                DType::F64 => start + i as f64 * delta,
                _ => f64::from(start as f32 + i as f32 * delta as f32),
            };
            let elements = (0..count).map(|i| Scalar::bytes_of(dtype, at(i)));
            match elements.collect::<Option<Vec<_>>>() {
                Some(elements) => elements.concat(),
                None => return unsupported(format!("the element type {dtype}")),
            }
        }
        _ => return invalid("a step of zero, or numbers of different types"),
    };
    let count = bytes.len() as i64 * 8 / i64::from(dtype.bits().max(1));
    Ok(vec![node.constant(dtype, &[count], &bytes)?])
}

/// `Range` of dimensions, with a step that is known.
#[rule(import.onnx, key = "Range", since = 11, benefit = 2)]
fn range_of_dims(node: &mut Node<'_>) -> Folded {
    let Some(inputs) = node.known_inputs() else { return Ok(None) };
    let ends: Vec<Dim> =
        inputs.iter().filter_map(|input| input.elements.first().copied()).collect();
    let &[start, limit, step] = ends.as_slice() else { return Ok(None) };
    let is_number = |dim| node.terms().dim_value(dim).is_some();
    let small = 1..=1 << 53;
    let by = node.terms().dim_value(step).filter(|by| small.contains(&by.unsigned_abs()));
    let Some(by) = by else { return Ok(None) };
    if is_number(start) && is_number(limit) {
        return Ok(None);
    }
    node.ignore("stash_type");
    let room = node.cx().dim_sub(limit, start);
    let room = if by > 0 { room } else { node.cx().dim_mul(room, node.cx().dim(-1)) };
    let room = not_below_zero(node, room);
    let cx = node.cx();
    let above = cx.dim_add(room, cx.dim(by.abs() - 1));
    let count = cx.dim_floor_div(above, cx.dim(by.abs()));
    if ![count, start].iter().all(|&dim| node.terms().is_small_dim(dim)) {
        return Ok(None);
    }
    let dtype = inputs[0].dtype;
    let shape = node.shape(&[count])?;
    let mut numbers = node.call("arange", &[shape], &[("dtype", dtype.to_string().into())])?;
    if by != 1 {
        let by = node.scalar(dtype, by as f64)?;
        numbers = node.apply("multiply", &[numbers, by])?;
    }
    if node.terms().dim_value(start) != Some(0) {
        let start = node.known(&Known::scalar(dtype, start))?;
        numbers = node.apply("add", &[numbers, start])?;
    }
    Ok(Some(vec![numbers]))
}

/// `Range` of numbers that are computed: how many there are is found. One of integers whose step is known has a limit that is a size.
#[rule(import.onnx, domain = "tenon.found", key = "Range", since = 11)]
fn range_of_numbers(node: &mut Node<'_>) -> Folded {
    node.ignore("stash_type");
    let [start, limit, delta] = [node.input(0)?, node.input(1)?, node.input(2)?];
    let dtype = node.dtype(start)?;
    if !dtype.is_float() && node.number(delta).is_some() {
        return Ok(None);
    }
    let mut wide = Vec::with_capacity(3);
    for number in [start, limit, delta] {
        let number = reshape_to(node, number, &[])?;
        wide.push(cast_to(node, number, DType::F64)?);
    }
    let room = node.apply("subtract", &[wide[1], wide[0]])?;
    let count = node.apply("divide", &[room, wide[2]])?;
    let count = node.apply("ceil", &[count])?;
    let zero = node.scalar_like(count, 0.0)?;
    let count = node.apply("maximum", &[count, zero])?;
    let count = cast_to(node, count, DType::I64)?;
    let count = extent(node, count, None)?;
    let shape = node.shape(&[count])?;
    // In the arithmetic of the type itself; short floats in that of f32.
    let inner = if dtype.is_float() && dtype != DType::F64 { DType::F32 } else { dtype };
    let places = node.call("arange", &[shape], &[("dtype", inner.to_string().into())])?;
    let [start, delta] = [cast_to(node, start, inner)?, cast_to(node, delta, inner)?];
    let numbers = node.apply("multiply", &[places, delta])?;
    let numbers = node.apply("add", &[numbers, start])?;
    Ok(Some(vec![cast_to(node, numbers, dtype)?]))
}

/// The length of a range, when there is room for so many numbers.
fn length(node: &mut Node<'_>, count: f64) -> Result<i64, Problem> {
    // More than this is no business of a model without data of that size.
    const LONGEST: f64 = 65536.0;
    let count = count.max(0.0);
    if count.is_nan() || count > LONGEST {
        return unsupported(format!("a range of {count} numbers"));
    }
    match node.spend(8 * count as usize) {
        true => Ok(count as i64),
        false => unsupported("a model that computes so many constants"),
    }
}
