//! Any text as `registry.toml`: no panic, and one that reads still reads after an edit, which holds.
//!
//! `cargo +nightly fuzz run registry`; put `registry.toml` into `corpus/registry` first.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tenon_compiler::registry::{Config, Edit};

fuzz_target!(|text: &str| {
    let path = Path::new("/nowhere/registry.toml");
    if let Err(error) = Config::parse(text, path) {
        return drop(error.to_diagnostics().render(false));
    }
    let mut edit = Edit::parse(text, path).expect("the same text");
    edit.set_enabled("acme.A", false);
    edit.pin("acme.npu", &"1.2.3".parse().expect("a version"), &"0".repeat(64));
    let config = Config::parse(&edit.text(), path).expect("an edited file reads");
    let enabled = config.passes["acme.A"].enabled.as_ref().expect("it was set");
    assert!(!enabled.value);
    assert!(config.pins["acme.npu"].version.is_some());
});
