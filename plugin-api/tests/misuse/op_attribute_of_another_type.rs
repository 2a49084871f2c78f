use tenon_plugin_api::op::prelude::*;

/// Scales.
#[op(name = "acme.scale")]
struct Scale {
    /// By how much.
    by: f32,
}

fn main() {}
