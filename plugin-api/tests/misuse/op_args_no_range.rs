use tenon_plugin_api::op::prelude::*;

/// Doubles.
#[op(name = "acme.double", args = "two")]
struct Double;

fn main() {}
