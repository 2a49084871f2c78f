//! Fuzzers of all that reads files. What holds of any bytes, the right files and what changes in them are those of
//! `tests/mangled`; libFuzzer says which files are worth changing. Each binary is one kind of files, and links
//! operators if they are needed: each execution looks at the counters of all that is linked.

#[path = "../../tests/mangled/files.rs"]
pub mod files;
#[path = "../../tests/mangled/kinds.rs"]
pub mod kinds;
#[path = "../../tests/mangled/mangle.rs"]
pub mod mangle;
#[path = "../../tests/mangled/readers.rs"]
pub mod readers;

pub use libfuzzer_sys;

use libfuzzer_sys::fuzzer_mutate;
use tenon_compiler::testing::Random;

/// A fuzzer of what reads a kind of files, half of whose changes keep them whole elsewhere.
#[macro_export]
macro_rules! fuzz {
    ($read:ident, $change:ident) => {
        $crate::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            $crate::readers::$read(bytes);
        });
        $crate::libfuzzer_sys::fuzz_mutator!(|bytes: &mut [u8],
                                              size: usize,
                                              most: usize,
                                              seed: u32| {
            $crate::mutate(bytes, size, most, seed, $crate::mangle::$change)
        });
    };
}

/// Changes the first `size` bytes, which become `most` at most.
pub fn mutate(
    bytes: &mut [u8],
    size: usize,
    most: usize,
    seed: u32,
    change: fn(&mut Vec<u8>, &mut Random),
) -> usize {
    let mut random = Random::new(seed.into());
    if random.chance(50) {
        return fuzzer_mutate(bytes, size, most);
    }
    let mut changed = bytes[..size].to_vec();
    for _ in 0..1 + random.below(3) {
        change(&mut changed, &mut random);
    }
    changed.truncate(most);
    bytes[..changed.len()].copy_from_slice(&changed);
    changed.len()
}
