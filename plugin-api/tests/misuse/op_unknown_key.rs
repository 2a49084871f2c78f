use tenon_plugin_api::op::prelude::*;

/// Doubles.
#[op(name = "acme.double", inputs = 2)]
struct Double;

fn main() {}
