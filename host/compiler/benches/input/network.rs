//! Texts of networks, and modules of texts.

use std::fmt::Write;

use tenon_compiler::diagnostics::Source;
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::Module;
use tenon_compiler::text::{NoWeights, parse_module};

/// Layers of a network, all of one shape: a product, a bias, an activation, a sum with what was before. One
/// function of `bindings` bindings, types inferred.
#[allow(dead_code, reason = "not every benchmark has a use for it")]
pub(crate) fn layers(bindings: usize) -> Module {
    module(&layers_text(bindings, "f32[16, 16]", &format!("%v{bindings}"), ""))
}

/// The same, and the sum of the elements of the result.
#[allow(dead_code, reason = "not every benchmark has a use for it")]
pub(crate) fn loss(bindings: usize) -> Module {
    let sum = format!("    %loss: f32[] = sum(%v{bindings})\n");
    module(&layers_text(bindings, "f32[]", "%loss", &sum))
}

/// A chain in which each binding has a shape of its own, and so a tensor program of its own.
#[allow(dead_code, reason = "not every benchmark has a use for it")]
pub(crate) fn growing(bindings: usize) -> Module {
    let mut text = format!("fn @main(%x: f32[16]) -> f32[{bindings}, 16] {{\n  dataflow {{\n");
    text.push_str("    %v1: f32[1, 16] = reshape(%x, shape(1, 16))\n");
    for i in 1..bindings {
        let rows = i + 1;
        let value = format!("concatenate((%v{i}, %v1)) {{ axis = 0 }}");
        writeln!(text, "    %v{rows}: f32[{rows}, 16] = {value}").expect("memory");
    }
    write!(text, "  }}\n  ret %v{bindings}\n}}\n").expect("memory");
    module(&text)
}

fn layers_text(bindings: usize, result_type: &str, result: &str, last: &str) -> String {
    let ty = "f32[16, 16]";
    let mut text =
        format!("fn @main(%v0: {ty}, %w: {ty}, %b: f32[16]) -> {result_type} {{\n  dataflow {{\n");
    for i in 0..bindings {
        let value = match i % 4 {
            0 => format!("matmul(%v{i}, %w)"),
            1 => format!("add(%v{i}, %b)"),
            2 => format!("nn.relu(%v{i})"),
            _ => format!("add(%v{i}, %v{})", i - 3),
        };
        writeln!(text, "    %v{}: {ty} = {value}", i + 1).expect("memory");
    }
    write!(text, "{last}  }}\n  ret {result}\n}}\n").expect("memory");
    text
}

/// The module of a text, types inferred.
pub(crate) fn module(text: &str) -> Module {
    let module =
        parse_module(&tenon_compiler::testing::cx(), &Source::new("bench", text), &mut NoWeights);
    infer_module(&module.expect("it parses")).expect("it has types")
}
