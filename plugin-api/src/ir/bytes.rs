//! Bytes that are shared and never copied.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Immutable shared bytes with any owner: a vector, a slice of a mapped file. Cloning counts an owner.
#[derive(Clone)]
pub struct Bytes(Arc<dyn Owner>);

impl Bytes {
    /// Shares the bytes of `owner`. The owner must answer with the same slice every time.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self::with_unread(owner, |_| {})
    }

    /// The same for an owner that has the bytes somewhere else as well, in a file, and is told by [`Bytes::unread`] that
    /// nobody may need them in memory for a while.
    pub fn with_unread<O: AsRef<[u8]> + Send + Sync + 'static>(owner: O, unread: fn(&O)) -> Self {
        Self(Arc::new(Owned { owner, unread }))
    }

    /// Says that the bytes were read and may not be for a while. They can be read at any time all the same.
    pub fn unread(&self) {
        self.0.unread();
    }
}

trait Owner: Send + Sync {
    fn bytes(&self) -> &[u8];
    fn unread(&self);
}

struct Owned<O> {
    owner: O,
    unread: fn(&O),
}

impl<O: AsRef<[u8]> + Send + Sync> Owner for Owned<O> {
    fn bytes(&self) -> &[u8] {
        self.owner.as_ref()
    }

    fn unread(&self) {
        (self.unread)(&self.owner);
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}
