use tenon_plugin_api::op::prelude::*;

/// Doubles.
#[op(name = "acme.double", pattern = "pointwise")]
struct Double;

fn main() {}
