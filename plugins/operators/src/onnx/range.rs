//! Numbers at equal distances, when they are known.

use tenon_plugin_api::rule::prelude::*;

/// `Range` of constants.
#[rule(import.onnx, key = "Range", since = 11)]
fn range(node: &mut Node<'_>) -> Outputs {
    node.ignore("stash_type");
    let dtype = node.dtype(node.input(0)?)?;
    let mut numbers = [Scalar::Int(0); 3];
    for (index, found) in numbers.iter_mut().enumerate() {
        *found = match node.number(node.input(index)?) {
            Some(number) => number,
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
