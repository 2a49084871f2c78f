//! Tables by name.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::Symbol;

/// A table by name. Names are mostly looked up in the order in which they came up, so those of a block of [`BLOCK`] numbers
/// lie together; blocks lie anywhere.
pub type SymbolMap<V> = HashMap<Symbol, V, BuildHasherDefault<InBlocks>>;

/// Names whose entries lie together: some lines of a cache.
const BLOCK: u64 = 64;

/// Hashes one number of a symbol.
#[derive(Clone, Copy, Debug, Default)]
pub struct InBlocks(u64);

impl Hasher for InBlocks {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        let number = self.0 ^ u64::from(number);
        // A multiplication mixes upwards only: the upper bits, which also tell entries of a place apart, come down. The factor is that
        // of Fibonacci hashing (Knuth, "The Art of Computer Programming", volume 3, section 6.4).
        let block = (number / BLOCK).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
        self.0 = (block & !(BLOCK - 1)) | (number % BLOCK);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_lie_together_and_blocks_anywhere() {
        let place = |number: u32| {
            let mut hasher = InBlocks::default();
            hasher.write_u32(number);
            hasher.finish()
        };
        assert!((0..63).all(|number| place(number + 1) == place(number) + 1));
        // Those of a step as large as a block, or larger, are spread over a table of 4096 blocks.
        for step in [64, 4096, 65536] {
            let blocks: std::collections::HashSet<u64> =
                (0..4096).map(|number| place(number * step) / BLOCK % 4096).collect();
            assert!(blocks.len() > 2000, "step {step}: {}", blocks.len());
        }
    }
}
