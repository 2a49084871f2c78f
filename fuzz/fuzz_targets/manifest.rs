//! Any bytes as a plugin's file: no panic, and what a manifest says of itself reads back the same.
//!
//! `cargo +nightly fuzz run manifest`; put `target/release/*.so` into `corpus/manifest` first.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tenon_compiler::registry::Manifest;

fuzz_target!(|bytes: &[u8]| {
    let manifest = match Manifest::from_bytes(bytes, Path::new("fuzz.so")) {
        Ok(manifest) => manifest,
        Err(error) => return drop(error.to_string()),
    };
    let plugin = serde_json::to_string(&manifest.plugin).expect("a record is JSON");
    let passes = manifest.passes.iter().map(|pass| serde_json::to_string(pass).expect("so is this"));
    let records: Vec<String> = [plugin].into_iter().chain(passes).collect();
    assert_eq!(Manifest::parse(records.join("\n")).expect("what is written reads"), manifest);
});
