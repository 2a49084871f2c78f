//! Bytes that are shared and never copied.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Immutable shared bytes with any owner: a vector, a slice of a mapped file. Cloning counts an owner.
#[derive(Clone)]
pub struct Bytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Bytes {
    /// Shares the bytes of `owner`. The owner must answer with the same slice every time.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(owner))
    }
}

impl Deref for Bytes {
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
