//! Constant tensors: shared, never copied, possibly mapped from a file.

use std::fmt;
use std::sync::Arc;

use tenon_plugin_api::abi::records::RawConstant;
use tenon_plugin_api::ir::{Symbol, Type};

/// Immutable shared bytes with any owner: a vector, a slice of a mapped file.
#[derive(Clone)]
pub struct Bytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Bytes {
    /// Shares the bytes of `owner`. The owner must answer with the same slice every time.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(owner))
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

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
