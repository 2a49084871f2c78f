//! The numbers of tensors, whatever their type.

use half::{bf16, f16};

use crate::eval::Tensor;
use crate::ir::DType;

/// Some roundings of a type, and how far twins may be apart, as parts of the largest element.
pub(super) fn precision(dtype: DType) -> Option<(f64, f64)> {
    match dtype {
        DType::F64 => Some((1e-12, 2e-3)),
        DType::F32 => Some((2e-6, 2e-3)),
        DType::F16 => Some((2e-3, 5e-2)),
        DType::BF16 => Some((1.6e-2, 1e-1)),
        _ => None,
    }
}

/// The elements of a tensor of floats.
pub fn numbers_of(tensor: &Tensor) -> Option<Vec<f64>> {
    Some(match tensor.dtype() {
        DType::F64 => tensor.elements::<f64>().to_vec(),
        DType::F32 => tensor.elements::<f32>().iter().map(|&x| f64::from(x)).collect(),
        DType::F16 => tensor.elements::<f16>().iter().map(|x| x.to_f64()).collect(),
        DType::BF16 => tensor.elements::<bf16>().iter().map(|x| x.to_f64()).collect(),
        _ => return None,
    })
}

/// A tensor of these numbers, which its type has.
pub(super) fn of_numbers(dtype: DType, shape: &[usize], numbers: &[f64]) -> Option<Tensor> {
    let shape = shape.to_vec();
    macro_rules! of {
        ($ty:ty, |$x:ident| $value:expr) => {
            Tensor::from_vec::<$ty>(shape, numbers.iter().map(|&$x| $value).collect())
        };
    }
    Some(match dtype {
        DType::F64 => of!(f64, |x| x),
        DType::F32 => of!(f32, |x| x as f32),
        DType::F16 => of!(f16, |x| f16::from_f64(x)),
        DType::BF16 => of!(bf16, |x| bf16::from_f64(x)),
        DType::I64 => of!(i64, |x| x as i64),
        DType::I32 => of!(i32, |x| x as i32),
        DType::I8 => of!(i8, |x| x as i8),
        DType::U8 => of!(u8, |x| x as u8),
        DType::BOOL => {
            let truths = numbers.iter().map(|&x| x as u8).collect();
            Tensor::from_vec_as(DType::BOOL, shape, truths)
        }
        _ => return None,
    })
}
