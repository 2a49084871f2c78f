//! Constant tensors: shared, never copied, possibly mapped from a file.

use tenon_plugin_api::abi::records::RawConstant;
use tenon_plugin_api::ir::{Bytes, Symbol, Terms, Type};
use tenon_plugin_api::op::Tensor;

use super::Cx;

/// A constant tensor.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Its tensor type; all dimensions are integers.
    pub ty: Type,
    /// Its name, or symbol 0.
    pub name: Symbol,
    /// Its elements: little-endian, row-major, not necessarily aligned.
    pub data: Bytes,
}

impl Constant {
    /// A constant that holds a tensor; the bytes are shared.
    pub fn of_tensor(tensor: &Tensor, cx: &Cx) -> Self {
        Self { ty: tensor.ty(cx), name: Symbol(0), data: tensor.bytes().clone() }
    }

    /// The tensor that it holds; the bytes are shared.
    pub fn to_tensor(&self, terms: Terms<'_>) -> Option<Tensor> {
        let (dtype, shape) = terms.static_tensor(self.ty)?;
        let shape = shape.iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<_>>()?;
        Tensor::new(dtype, shape, self.data.clone())
    }

    /// The record that crosses the border; valid as long as the constant.
    pub(super) fn raw(&self) -> RawConstant {
        RawConstant {
            ty: self.ty.0,
            name: self.name.0,
            data: self.data.as_ptr(),
            len: self.data.len() as u64,
        }
    }
}
