//! SHA-256, as `sha256sum` prints it.

use std::fmt::Write as _;
use std::io::{self, Write};

use sha2::{Digest, Sha256};

/// The digest of some bytes, in lowercase hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

/// Writes, and knows the digest of what was written.
pub struct Hashing<W> {
    inner: W,
    digest: Sha256,
}

impl<W: Write> Hashing<W> {
    pub fn new(inner: W) -> Self {
        Self { inner, digest: Sha256::new() }
    }

    /// The digest, in lowercase hexadecimal digits.
    pub fn finish(self) -> String {
        hex(self.digest)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn hex(digest: Sha256) -> String {
    let mut text = String::with_capacity(64);
    for byte in digest.finalize() {
        write!(text, "{byte:02x}").expect("a text takes whatever is written");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{Hashing, sha256};

    #[test]
    fn what_is_written_is_what_is_digested() {
        let mut hashing = Hashing::new(Vec::new());
        hashing.write_all(b"ab").unwrap();
        hashing.write_all(b"c").unwrap();
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((hashing.finish().as_str(), sha256(b"abc").as_str()), (known, known));
    }
}
