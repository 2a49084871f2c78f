//! Windows that a signal is weighed with, computed when their length is known.

use std::f64::consts::TAU;

use tenon_plugin_api::rule::prelude::*;

/// `HannWindow`.
#[rule(import.onnx, key = "HannWindow", since = 17)]
fn hann(node: &mut Node<'_>) -> Outputs {
    cosines(node, [0.5, -0.5, 0.0])
}

/// `HammingWindow`, with coefficients that cancel the first side lobe.
#[rule(import.onnx, key = "HammingWindow", since = 17)]
fn hamming(node: &mut Node<'_>) -> Outputs {
    cosines(node, [25.0 / 46.0, -21.0 / 46.0, 0.0])
}

/// `BlackmanWindow`.
#[rule(import.onnx, key = "BlackmanWindow", since = 17)]
fn blackman(node: &mut Node<'_>) -> Outputs {
    cosines(node, [0.42, -0.5, 0.08])
}

/// a + b cos(t) + c cos(2 t), with t over one period.
fn cosines(node: &mut Node<'_>, [a, b, c]: [f64; 3]) -> Outputs {
    // More than this is no business of a model without data of that size.
    const LONGEST: i64 = 1 << 20;
    let size = match node.input_ints(0).as_deref() {
        Ok(&[size]) => size,
        Err(Problem::NotConstant { .. }) => return node.not_extents(0),
        _ => return invalid("its size is not one number"),
    };
    let dtype = node.element_type("output_datatype")?.unwrap_or(DType::F32);
    if size < 0 {
        return invalid(format!("its size is {size}"));
    }
    if size > LONGEST || !node.spend(size as usize * dtype.bits() as usize / 8) {
        return unsupported(format!("a window of {size} numbers"));
    }
    // A symmetric window ends where it begins, a periodic one before that.
    let period = if node.flag("periodic", true)? { size } else { size - 1 };
    let at = |i: i64| match period {
        // Of one number that is symmetric it is the middle.
        0 => a - b + c,
        period => {
            let t = TAU * i as f64 / period as f64;
            a + b * t.cos() + c * (2.0 * t).cos()
        }
    };
    match (0..size).map(|i| Scalar::bytes_of(dtype, at(i))).collect::<Option<Vec<_>>>() {
        Some(elements) => Ok(vec![node.constant(dtype, &[size], &elements.concat())?]),
        None => unsupported(format!("the element type {dtype}")),
    }
}
