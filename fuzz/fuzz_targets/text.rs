//! Any text as a module: no panic, and what parses prints as what parses to the same.
//!
//! `cargo +nightly fuzz run text`; put `host/compiler/tests/text/*.ir` into `corpus/text` first.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tenon_compiler::{
    diagnostics::Source,
    infer::infer_module,
    ir::{Cx, Module},
    text::{NoWeights, WeightsPolicy, parse_module, print_module},
};

fn print(module: &Module) -> Option<String> {
    let mut policy = WeightsPolicy::inline();
    let text = print_module(module, &mut policy);
    (!policy.has_elided_terms()).then_some(text)
}

fuzz_target!(|text: &str| {
    let cx = Cx::new();
    let module = match parse_module(&cx, &Source::new("fuzz", text), &mut NoWeights) {
        Ok(module) => module,
        Err(errors) => return drop(errors.render(false)),
    };
    if let Some(printed) = print(&module) {
        let again = parse_module(&cx, &Source::new("again", printed.as_str()), &mut NoWeights);
        let again = again.expect("what is printed parses");
        assert_eq!(print(&again).as_ref(), Some(&printed));
    }
    if let Ok(typed) = infer_module(&module) {
        print(&typed);
    }
});
