//! Small tensors of integers or truth values whose elements are known as dimensions.
//!
//! Models compute shapes with the operators that compute everything else: `Shape`, `Gather`, `Mul`,
//! `Concat`. Where such a tensor is only read as a shape it never becomes part of the program.

use crate::ir::{Context, DType, Dim, Terms, Type};

/// More elements than this are data, not a shape.
pub const LARGEST_KNOWN: usize = 1024;

/// A tensor of integers or truth values (0 and 1).
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The type of each element.
    pub dtype: DType,
    /// The extents, outermost first.
    pub shape: Vec<usize>,
    /// Row-major, as many as the shape says.
    pub elements: Vec<Dim>,
}

impl Known {
    /// A vector of i64.
    pub fn vector(elements: Vec<Dim>) -> Self {
        Self { dtype: DType::I64, shape: vec![elements.len()], elements }
    }

    /// A tensor of one element without dimensions.
    pub fn scalar(dtype: DType, element: Dim) -> Self {
        Self { dtype, shape: Vec::new(), elements: vec![element] }
    }

    /// The elements of a constant of this type, if it is a small one of integers or truth values.
    pub fn of_constant(cx: &(impl Context + ?Sized), ty: Type, data: &[u8]) -> Option<Self> {
        let (dtype, shape) = cx.terms().static_tensor(ty)?;
        let size = (dtype.bits() / 8) as usize;
        if !Self::has_elements_of(dtype) || data.len() > LARGEST_KNOWN * size {
            return None;
        }
        let elements = data.chunks_exact(size).map(|bytes| {
            let mut wide = [0u8; 8];
            wide[..size].copy_from_slice(bytes);
            let unused = 64 - 8 * size as u32;
            let value = u64::from_le_bytes(wide);
            match dtype.is_signed() {
                true => Some(cx.dim((value << unused).cast_signed() >> unused)),
                false => i64::try_from(value).ok().map(|value| cx.dim(value)),
            }
        });
        let shape = shape.iter().map(|&dim| dim as usize).collect();
        Some(Self { dtype, shape, elements: elements.collect::<Option<_>>()? })
    }

    /// Its type.
    pub fn ty(&self, cx: &(impl Context + ?Sized)) -> Type {
        let shape: Vec<i64> = self.shape.iter().map(|&dim| dim as i64).collect();
        cx.static_tensor_type(self.dtype, &shape)
    }

    /// The elements as numbers, if all of them are.
    pub fn numbers(&self, terms: Terms<'_>) -> Option<Vec<i64>> {
        self.elements.iter().map(|&element| terms.dim_value(element)).collect()
    }

    /// The elements as bytes of a constant, if all of them are numbers.
    pub fn bytes(&self, terms: Terms<'_>) -> Option<Vec<u8>> {
        let size = (self.dtype.bits() / 8) as usize;
        let numbers = self.numbers(terms)?;
        Some(
            numbers.iter().flat_map(|number| number.to_le_bytes().into_iter().take(size)).collect(),
        )
    }

    /// Whether tensors of this type are looked into.
    pub fn has_elements_of(dtype: DType) -> bool {
        (dtype.is_int() && dtype.bits() >= 8) || dtype.is_bool()
    }
}
