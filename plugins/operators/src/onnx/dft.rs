//! Frequencies of signals: products with the matrix of the transform.

use std::cmp::Ordering;
use std::f64::consts::TAU;

use tenon_plugin_api::rule::prelude::*;

use super::dft_matrix::{self, fitted, half};
use super::steps::{extent_of, reshape_to, sliced};

/// `DFT`: along an axis, of signals whose last axis has the real and perhaps the imaginary part.
#[rule(import.onnx, key = "DFT", since = 17)]
fn dft(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let rank = dims.len();
    let given = match node.version() {
        ..20 => Some(node.int_or("axis", 1)?),
        _ => node.optional_axes(2)?.map(|axes| axes.first().copied().unwrap_or(-2)),
    };
    let axis = node.axis(given.unwrap_or(-2), rank)?;
    if rank < 2 || axis + 1 == rank {
        return invalid("the axis of its parts cannot be transformed");
    }
    let (is_inverse, is_onesided) = (node.flag("inverse", false)?, node.flag("onesided", false)?);
    let parts = extent_of(node, dims[rank - 1], "number of parts")?;
    if !(1..=2).contains(&parts) || is_onesided && (parts == 2) != is_inverse {
        return invalid(format!("signals of {parts} parts here"));
    }
    let own = dims[axis];
    let length = match node.optional(1) {
        Some(_) => match node.input_dims(1)?[..] {
            [length] => length,
            _ => return invalid("its dft_length is not one number"),
        },
        None if is_inverse && is_onesided => node.cx().dim_sum(&[(own, 2), (node.cx().dim(2), -1)]),
        None => own,
    };
    if node.terms().dim_value(length).is_some_and(|length| length < 1) {
        return invalid("signals without length");
    }
    // What is there of a period, or of its frequencies.
    let (needed, kind) = match (is_inverse, is_onesided) {
        (true, true) => (half(node, length), Kind::InverseOfHalf),
        (true, false) => (length, Kind::Inverse),
        (false, true) => (length, Kind::Half),
        (false, false) => (length, Kind::Forward),
    };
    let mut order: Vec<i64> = (0..rank as i64).collect();
    order.remove(axis);
    order.insert(rank - 2, axis as i64);
    let signal = node.call("transpose", &[x], &[("axes", order.clone().into())])?;
    let signal = match [needed, own].map(|dim| node.terms().dim_value(dim)) {
        [Some(needed), Some(own)] => known_fitted(node, signal, rank, [needed, own])?,
        _ => fitted(node, signal, rank - 2, needed)?,
    };
    let mut shape = node.dims(signal)?;
    shape.truncate(rank - 2);
    let rows = node.cx().dim_mul(needed, node.cx().dim(parts));
    let signal = reshape_to(node, signal, &[shape.as_slice(), &[rows]].concat())?;
    let dtype = node.dtype(x)?;
    let (matrix, values) = matrix_of(node, dtype, (kind, length, parts))?;
    let y = node.apply("matmul", &[signal, matrix])?;
    shape.extend(values);
    let y = reshape_to(node, y, &shape)?;
    let mut back: Vec<i64> = (0..rank as i64).collect();
    back.remove(rank - 2);
    back.insert(axis, rank as i64 - 2);
    Ok(vec![node.call("transpose", &[y], &[("axes", back.into())])?])
}

/// As many elements along the last axis but one as are needed, where both are known.
fn known_fitted(
    node: &mut Node<'_>,
    signal: Value,
    rank: usize,
    [needed, own]: [i64; 2],
) -> Result<Value, Problem> {
    match needed.cmp(&own) {
        Ordering::Less => sliced(node, signal, rank - 2, [0, needed]),
        Ordering::Equal => Ok(signal),
        Ordering::Greater => {
            let mut widths = vec![0; 2 * rank];
            widths[2 * rank - 3] = needed - own;
            node.call("nn.pad", &[signal], &[("pad_width", widths.into())])
        }
    }
}

/// The matrix of a transform, a constant where its length is known, and the extents of what its columns are.
fn matrix_of(
    node: &mut Node<'_>,
    dtype: DType,
    (kind, length, parts): (Kind, Dim, i64),
) -> Result<(Value, [Dim; 2]), Problem> {
    let Some(length) = node.terms().dim_value(length) else {
        return dft_matrix::matrix(node, dtype, (kind, length, parts));
    };
    let rows = if kind == Kind::InverseOfHalf { length / 2 + 1 } else { length };
    let (values, elements) = matrix(kind, length, parts);
    let shape = [rows * parts, values.iter().product()];
    let matrix = constant(node, dtype, &shape, &elements)?;
    Ok((matrix, values.map(|extent| node.cx().dim(extent))))
}

/// `STFT`: windows that move along signals, each multiplied by the matrix, as a convolution.
#[rule(import.onnx, key = "STFT", since = 17)]
fn stft(node: &mut Node<'_>) -> Outputs {
    node.check_arity(2, 4)?;
    let mut x = node.input(0)?;
    let mut dims = node.dims(x)?;
    if dims.len() == 2 {
        // Real signals need no axis of parts; ONNX Runtime takes them so.
        dims.push(node.cx().dim(1));
        x = reshape_to(node, x, &dims)?;
    }
    let &[batch, samples, parts] = dims.as_slice() else {
        return invalid(format!("signals of {} dimensions", dims.len()));
    };
    let count = extent_of(node, parts, "number of parts")?;
    let &[step] = node.input_dims(1)?.as_slice() else {
        return invalid("its frame_step is not one number");
    };
    let window = node.optional(2);
    let length = match (node.optional(3), window) {
        (Some(_), _) => match node.input_dims(3)?[..] {
            [length] => length,
            _ => return invalid("its frame_length is not one number"),
        },
        (None, Some(window)) => match node.dims(window)?.as_slice() {
            &[length] => length,
            _ => return invalid("its window is no vector"),
        },
        (None, None) => samples,
    };
    let kind = if node.flag("onesided", true)? { Kind::Half } else { Kind::Forward };
    let [Some(step), Some(length)] = [step, length].map(|dim| node.terms().dim_value(dim)) else {
        let frames = dft_matrix::frames(node, x, [samples, step, length])?;
        return transformed(node, frames, window, (kind, length, count));
    };
    if step < 1 || length < 1 || !(1..=2).contains(&count) {
        return invalid(format!("frames of {length}, {step} apart, of {count} parts"));
    }
    let ([bins, two], elements) = matrix(kind, length, count);
    let dtype = node.dtype(x)?;
    // A kernel for each part of each frequency.
    let kernel = constant(node, dtype, &[length, count, bins * two], &elements)?;
    let mut kernel = node.call("transpose", &[kernel], &[("axes", vec![2, 1, 0].into())])?;
    if let Some(window) = window {
        kernel = node.apply("multiply", &[kernel, window])?;
    }
    let cx = node.cx().clone();
    let dim = |value| cx.dim(value);
    let kernel = reshape_to(node, kernel, &[dim(bins * two), parts, dim(1), dim(length)])?;
    let signal = node.call("transpose", &[x], &[("axes", vec![0, 2, 1].into())])?;
    let signal = reshape_to(node, signal, &[batch, parts, dim(1), samples])?;
    let attrs = [("strides", vec![1, step].into())];
    let y = node.call("nn.conv2d", &[signal, kernel], &attrs)?;
    let frames = node.dims(y)?[3];
    let y = reshape_to(node, y, &[batch, dim(bins * two), frames])?;
    let y = node.call("transpose", &[y], &[("axes", vec![0, 2, 1].into())])?;
    Ok(vec![reshape_to(node, y, &[batch, frames, dim(bins), dim(two)])?])
}

/// The transforms of frames whose length a call says, all at once.
fn transformed(
    node: &mut Node<'_>,
    (mut frames, count): (Value, Dim),
    window: Option<Value>,
    (kind, length, parts): (Kind, Dim, i64),
) -> Outputs {
    if !(1..=2).contains(&parts) {
        return invalid(format!("signals of {parts} parts here"));
    }
    if let Some(window) = window {
        let one = node.cx().dim(1);
        let window = reshape_to(node, window, &[length, one])?;
        frames = node.apply("multiply", &[frames, window])?;
    }
    let (batch, dtype) = (node.dims(frames)?[0], node.dtype(frames)?);
    let rows = node.cx().dim_mul(length, node.cx().dim(parts));
    let frames = reshape_to(node, frames, &[batch, count, rows])?;
    let (matrix, [bins, two]) = matrix_of(node, dtype, (kind, length, parts))?;
    let y = node.apply("matmul", &[frames, matrix])?;
    Ok(vec![reshape_to(node, y, &[batch, count, bins, two])?])
}

/// What is transformed into what.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// A signal into its frequencies.
    Forward,
    /// A signal into the frequencies up to the half; those above mirror them.
    Half,
    /// Frequencies into a signal.
    Inverse,
    /// Those up to the half into a signal that is real.
    InverseOfHalf,
}

/// The matrix of signals of a length, row by row, and the extents of what a column is: of its index, and of its parts.
fn matrix(kind: Kind, length: i64, parts: i64) -> ([i64; 2], impl Fn(i64, i64) -> f64) {
    let angle = move |a: i64, b: i64| {
        let turns = (i128::from(a) * i128::from(b)).rem_euclid(i128::from(length));
        TAU * turns as f64 / length as f64
    };
    let values = match kind {
        Kind::Forward | Kind::Inverse => [length, 2],
        Kind::Half => [length / 2 + 1, 2],
        Kind::InverseOfHalf => [length, 1],
    };
    let is_inverse = matches!(kind, Kind::Inverse | Kind::InverseOfHalf);
    let scale = if is_inverse { 1.0 / length as f64 } else { 1.0 };
    let element = move |row: i64, column: i64| {
        let (from, to) = (row / parts, column / values[1]);
        let angle = angle(from, to);
        let sine = if is_inverse { angle.sin() } else { -angle.sin() };
        let value = match (row % parts, column % values[1]) {
            (0, 0) | (1, 1) => angle.cos(),
            (0, _) => sine,
            _ => -sine,
        };
        // All but the first and the one in the middle stand for their mirror images too, which the sines of these two have not.
        let is_single = from == 0 || 2 * from == length;
        let times = match kind {
            Kind::InverseOfHalf if is_single && row % parts == 1 => 0.0,
            Kind::InverseOfHalf if !is_single => 2.0,
            _ => 1.0,
        };
        value * scale * times
    };
    (values, element)
}

/// A constant of two or three dimensions by rows and columns, of which all but the last are the rows.
fn constant(
    node: &mut Node<'_>,
    dtype: DType,
    shape: &[i64],
    element: &dyn Fn(i64, i64) -> f64,
) -> Result<Value, Problem> {
    let columns = shape.last().copied().unwrap_or(1);
    let rows: i64 = shape[..shape.len() - 1].iter().product();
    let bytes = rows.checked_mul(columns).and_then(|count| count.checked_mul(8));
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    if !bytes.is_some_and(|bytes| node.spend(bytes)) {
        return unsupported(format!("a transform of {rows} numbers to {columns}"));
    }
    let mut elements = Vec::new();
    for row in 0..rows {
        for column in 0..columns {
            match Scalar::bytes_of(dtype, element(row, column)) {
                Some(bytes) => elements.extend(bytes),
                None => return unsupported(format!("the element type {dtype}")),
            }
        }
    }
    node.constant(dtype, shape, &elements)
}
