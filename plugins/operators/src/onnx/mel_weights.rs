//! Weights that make frequencies as they are heard of those of a transform.

use tenon_plugin_api::rule::prelude::*;

use super::dft_matrix::{counted, half};
use super::steps::{cast_to, reshape_to, scaled, shifted};

/// `MelWeightMatrix`: a triangle over frequencies for each of the bins, whose ends lie evenly on the mel scale.
#[rule(import.onnx, key = "MelWeightMatrix", since = 17)]
fn mel_weight_matrix(node: &mut Node<'_>) -> Outputs {
    node.check_arity(5, 5)?;
    let mut numbers = [0.0; 5];
    for (index, number) in numbers.iter_mut().enumerate() {
        match node.number(node.input(index)?).and_then(Scalar::as_float) {
            Some(value) => *number = value,
            None => return of_call(node),
        }
    }
    let [bins, length, rate, low, high] = numbers;
    let is_count =
        |value: f64| value.fract() == 0.0 && (1.0..=f64::from(i32::MAX)).contains(&value);
    if !is_count(bins) || !is_count(length) || rate <= 0.0 || low > high || low < 0.0 {
        return invalid(format!("{bins} bins of {length} numbers at {rate}, {low} to {high}"));
    }
    let dtype = node.element_type("output_datatype")?.unwrap_or(DType::F32);
    let (bins, rows) = (bins as usize, length as usize / 2 + 1);
    if !rows
        .checked_mul(bins)
        .and_then(|count| count.checked_mul(8))
        .is_some_and(|it| node.spend(it))
    {
        return unsupported(format!("{rows} frequencies in {bins} bins"));
    }
    let mel = |hertz: f64| 2595.0 * (hertz / 700.0).ln_1p() / 10f64.ln();
    let step = (mel(high) - mel(low)) / (bins + 2) as f64;
    let edge = |number: usize| {
        let hertz = 700.0 * ((number as f64 * step + mel(low)) / 2595.0 * 10f64.ln()).exp_m1();
        ((length + 1.0) * hertz / rate).floor() as usize
    };
    if edge(bins + 1) > rows {
        return invalid(format!("{high} hertz are more than half of the sample rate {rate}"));
    }
    let mut weights = vec![0.0; rows * bins];
    for bin in 0..bins {
        let [left, center, right] = [edge(bin), edge(bin + 1), edge(bin + 2)];
        let mut set = |row: usize, value: f64| {
            if let Some(weight) = weights.get_mut(row * bins + bin) {
                *weight = value;
            }
        };
        if left == center {
            set(center, 1.0);
        }
        for row in left..=center {
            if left < center {
                set(row, (row - left) as f64 / (center - left) as f64);
            }
        }
        for row in center..right {
            set(row, (right - row) as f64 / (right - center) as f64);
        }
    }
    let bytes = weights.iter().map(|&weight| Scalar::bytes_of(dtype, weight));
    match bytes.collect::<Option<Vec<_>>>() {
        Some(bytes) => {
            let shape = [rows as i64, bins as i64];
            Ok(vec![node.constant(dtype, &shape, &bytes.concat())?])
        }
        None => unsupported(format!("the element type {dtype}")),
    }
}

/// The same of numbers that a call says.
fn of_call(node: &mut Node<'_>) -> Outputs {
    let [bins, length] =
        [node.input_dims(0)?, node.input_dims(1)?].map(|dims| dims.first().copied());
    let (Some(bins), Some(length)) = (bins, length) else {
        return invalid("its numbers of bins or of frequencies are none");
    };
    let dtype = node.element_type("output_datatype")?.unwrap_or(DType::F32);
    let mut wide = Vec::with_capacity(3);
    for index in 2..5 {
        let number = node.input(index)?;
        let number = reshape_to(node, number, &[])?;
        wide.push(cast_to(node, number, DType::F64)?);
    }
    let (rate, bounds) = (wide[0], [mel(node, wide[1])?, mel(node, wide[2])?]);
    let edges = edges(node, [bins, length], rate, bounds)?;
    let (one, rows) = (node.cx().dim(1), half(node, length));
    let row = counted(node, &[rows, one], rows)?;
    // Where the triangle of each bin begins, has its top, and ends.
    let mut ends = Vec::with_capacity(3);
    for at in 0..3 {
        let places = counted(node, &[one, bins], bins)?;
        let places = shifted(node, places, f64::from(at))?;
        ends.push(node.apply("take", &[edges, places])?);
    }
    let weights = triangles(node, row, [ends[0], ends[1], ends[2]])?;
    Ok(vec![cast_to(node, weights, dtype)?])
}

/// Frequencies as they are heard.
fn mel(node: &mut Node<'_>, hertz: Value) -> Result<Value, Problem> {
    let parts = scaled(node, hertz, 1.0 / 700.0)?;
    let parts = shifted(node, parts, 1.0)?;
    let heard = node.apply("log", &[parts])?;
    scaled(node, heard, 2595.0 / 10f64.ln())
}

/// The rows at which triangles begin and end, evenly on the mel scale.
fn edges(
    node: &mut Node<'_>,
    [bins, length]: [Dim; 2],
    rate: Value,
    [low, high]: [Value; 2],
) -> Result<Value, Problem> {
    let count = node.cx().dim_add(bins, node.cx().dim(2));
    let number = |node: &mut Node<'_>, dim| {
        let number = node.known(&Known::scalar(DType::I64, dim))?;
        cast_to(node, number, DType::F64)
    };
    let span = node.apply("subtract", &[high, low])?;
    let steps = number(node, count)?;
    let step = node.apply("divide", &[span, steps])?;
    let places = counted(node, &[count], count)?;
    let places = cast_to(node, places, DType::F64)?;
    let heard = node.apply("multiply", &[places, step])?;
    let heard = node.apply("add", &[heard, low])?;
    let heard = scaled(node, heard, 10f64.ln() / 2595.0)?;
    let hertz = node.apply("exp", &[heard])?;
    let hertz = shifted(node, hertz, -1.0)?;
    let hertz = scaled(node, hertz, 700.0)?;
    let all = node.cx().dim_add(length, node.cx().dim(1));
    let all = number(node, all)?;
    let rows = node.apply("multiply", &[hertz, all])?;
    let rows = node.apply("divide", &[rows, rate])?;
    let rows = node.apply("floor", &[rows])?;
    cast_to(node, rows, DType::I64)
}

/// What each row counts in triangles with these ends; one without a side to the left has its top alone there.
fn triangles(
    node: &mut Node<'_>,
    row: Value,
    [left, center, right]: [Value; 3],
) -> Result<Value, Problem> {
    let share = |node: &mut Node<'_>, [a, b]: [Value; 2], [c, d]: [Value; 2]| {
        let [part, all] = [node.apply("subtract", &[a, b]), node.apply("subtract", &[c, d])];
        let [part, all] = [cast_to(node, part?, DType::F64)?, cast_to(node, all?, DType::F64)?];
        node.apply("divide", &[part, all])
    };
    let rising = share(node, [row, left], [center, left])?;
    let falling = share(node, [right, row], [right, center])?;
    let within = |node: &mut Node<'_>, least, before, most| {
        let [is_above, is_below] =
            [node.apply("greater_equal", &[row, least]), node.apply(before, &[row, most])];
        node.apply("logical_and", &[is_above?, is_below?])
    };
    let is_falling = within(node, center, "less", right)?;
    let is_rising = within(node, left, "less", center)?;
    let is_top = node.apply("equal", &[row, center])?;
    let [zero, one] = [0.0, 1.0].map(|number| node.scalar(DType::F64, number));
    let weights = node.apply("where", &[is_top, one?, zero?])?;
    let weights = node.apply("where", &[is_rising, rising, weights])?;
    node.apply("where", &[is_falling, falling, weights])
}
