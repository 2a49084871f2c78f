//! A code generator as a vendor would ship it: it takes element-wise operators and compiles them by its own
//! means, here Cranelift. What it knows of Tenon is the plugin API.
//!
//! `program` reads what it takes, `emit` makes machine code of it.

mod emit;
mod program;

use tenon_plugin_api::prelude::*;

use program::Program;

tenon_plugin_api::plugin! {
    id = "tenon.byoc-example",
    summary = "A code generator of its own: element-wise operators, compiled by Cranelift",
    license = "Apache-2.0 OR MIT"
}

/// Element-wise operators on f32 tensors of one size, compiled by Cranelift.
#[codegen(
    name = "example",
    patterns = [
        "add = add(*, *)",
        "subtract = subtract(*, *)",
        "multiply = multiply(*, *)",
        "divide = divide(*, *)",
        "maximum = maximum(*, *)",
        "minimum = minimum(*, *)",
        "negative = negative(*)",
        "abs = abs(*)",
        "sqrt = sqrt(*)",
        "relu = nn.relu(*)",
    ],
    accepts = accepts
)]
fn example(module: &Module, names: &[Symbol], cx: &PassContext) -> Result<Vec<u8>> {
    let programs = names
        .iter()
        .map(|&name| Ok((cx.terms().str(name), Program::of(module, name)?)))
        .collect::<Result<Vec<_>>>()?;
    emit::object(&programs)
}

/// Whether all that a match reads and gives is f32, and of one size or a single element.
fn accepts(function: &Function, _: &PassContext) -> bool {
    Program::of_composite(function).is_ok()
}
