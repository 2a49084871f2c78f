//! Comparison with the tolerance of a case.

use half::{bf16, f16};
use tenon_compiler::ir::narrow::{NarrowFloat, code_at};
use tenon_compiler::{eval::Tensor, ir::DType};

/// How far a float may be off: relative to what is expected, and besides.
#[derive(Clone, Copy)]
pub(crate) struct Tolerance {
    pub(crate) relative: f64,
    pub(crate) absolute: f64,
}

impl Default for Tolerance {
    /// That of onnx's own runner.
    fn default() -> Self {
        Self { relative: 1e-3, absolute: 1e-7 }
    }
}

/// Whether each element is near enough; integers and truth values must be equal.
pub(crate) fn compare(have: &Tensor, want: &Tensor, tolerance: Tolerance) -> Result<(), String> {
    if (have.dtype(), have.shape()) != (want.dtype(), want.shape()) {
        let text = |tensor: &Tensor| format!("{}{:?}", tensor.dtype(), tensor.shape());
        return Err(format!("it is {}, expected {}", text(have), text(want)));
    }
    // One step of a short float may be more than the tolerance.
    let relative = match have.dtype() {
        DType::F16 => 2e-3,
        DType::BF16 => 1.6e-2,
        dtype if dtype.is_storage() => 0.0,
        _ => tolerance.relative,
    };
    if !have.dtype().is_float() {
        let size = have.dtype().bits().div_ceil(8) as usize;
        let pairs = have.bytes().chunks(size).zip(want.bytes().chunks(size));
        return match pairs.into_iter().position(|(have, want)| have != want) {
            None => Ok(()),
            Some(at) => Err(format!("element {at} of {} differs", have.len())),
        };
    }
    let is_near = |have: f64, want: f64| {
        have == want
            || (have.is_nan() && want.is_nan())
            || (have - want).abs() <= tolerance.absolute + relative * want.abs()
    };
    let pairs: Vec<(f64, f64)> = floats(have).into_iter().zip(floats(want)).collect();
    match pairs.iter().position(|&(have, want)| !is_near(have, want)) {
        None => Ok(()),
        Some(at) => {
            let (have, want) = pairs[at];
            Err(format!("element {at} of {} is {have}, expected {want}", pairs.len()))
        }
    }
}

fn floats(tensor: &Tensor) -> Vec<f64> {
    match tensor.dtype() {
        DType::F64 => tensor.elements::<f64>().to_vec(),
        DType::F32 => tensor.elements::<f32>().iter().map(|&x| f64::from(x)).collect(),
        DType::F16 => tensor.elements::<f16>().iter().map(|&x| x.to_f64()).collect(),
        DType::BF16 => tensor.elements::<bf16>().iter().map(|&x| x.to_f64()).collect(),
        dtype => {
            let format = NarrowFloat::of(dtype).expect("there are no other floats");
            let number = |index| format.decode(code_at(dtype, tensor.bytes(), index));
            (0..tensor.len()).map(number).collect()
        }
    }
}
