//! Short names of long texts.

use sha2::{Digest, Sha256};

/// Hexadecimal digits of a digest.
pub const DIGEST_LEN: usize = 32;

/// The first 128 bits of the SHA-256 of some bytes, in hexadecimal digits: the same on every machine.
pub fn digest(bytes: &[u8]) -> String {
    let all = Sha256::digest(bytes);
    all[..DIGEST_LEN / 2].iter().map(|byte| format!("{byte:02x}")).collect()
}
