//! Any bytes as a safetensors file: no panic, and every tensor lies inside.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tenon_compiler::io::{Mapping, Weights};

fuzz_target!(|bytes: &[u8]| {
    let file = Mapping::in_memory(Path::new("weights.safetensors"), bytes.to_vec());
    let Ok(weights) = Weights::read(&file) else { return };
    let total: usize = weights.iter().map(|(_, weight)| weight.data.len()).sum();
    assert!(total <= bytes.len());
});
