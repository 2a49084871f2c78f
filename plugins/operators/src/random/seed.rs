//! Which seed a node of a model has.
//!
//! The one that it says: an integer, or the bits of a float, as ONNX has it. Else one of its place among the values of the model, so that
//! importing a model again gives the same numbers, and two nodes that say nothing draw different ones. Bit 63 tells the two kinds apart.

use std::hash::{Hash, Hasher};

use tenon_plugin_api::rule::prelude::*;

/// The seed of a node, as an argument of an operator.
pub(crate) fn seed_of(node: &mut Node<'_>) -> Result<Value, Problem> {
    let said = match node.int("seed") {
        Ok(seed) => seed.map(|seed| seed as u64),
        Err(_) => node.float("seed")?.map(|seed| u64::from(seed.to_bits())),
    };
    let seed = match said {
        Some(seed) => seed & !(1 << 63),
        None => {
            // A constant that is made gets a place that no other value has.
            let place = node.constant(DType::U64, &[], &0u64.to_le_bytes())?;
            let mut number = Place(0);
            place.hash(&mut number);
            mixed(number.finish()) | 1 << 63
        }
    };
    node.constant(DType::U64, &[], &seed.to_le_bytes())
}

/// The number that a value is, which is all that it hashes.
struct Place(u64);

impl Hasher for Place {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |number, &byte| number << 8 | u64::from(byte));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = self.0 << 32 | u64::from(number);
    }
}

/// The finalizer of SplitMix64: a permutation of the numbers of 64 bits.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}
