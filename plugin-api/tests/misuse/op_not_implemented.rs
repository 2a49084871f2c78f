use tenon_plugin_api::op::prelude::*;

/// Doubles.
#[op(name = "acme.double")]
struct Double;

fn main() {}
