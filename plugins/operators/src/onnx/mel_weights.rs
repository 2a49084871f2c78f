//! Weights that make frequencies as they are heard of those of a transform.

use tenon_plugin_api::rule::prelude::*;

/// `MelWeightMatrix`: a triangle over frequencies for each of the bins, whose ends lie evenly on the mel scale.
#[rule(import.onnx, key = "MelWeightMatrix", since = 17)]
fn mel_weight_matrix(node: &mut Node<'_>) -> Outputs {
    node.check_arity(5, 5)?;
    let mut numbers = [0.0; 5];
    for (index, number) in numbers.iter_mut().enumerate() {
        match node.number(node.input(index)?).and_then(Scalar::as_float) {
            Some(value) => *number = value,
            None => return node.not_constant(index),
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
