use tenon_plugin_api::op::prelude::*;

/// Doubles.
#[op(args = 1)]
struct Double;

fn main() {}
