use tenon_plugin_api::op::prelude::*;

/// Scales.
#[op(name = "acme.scale")]
struct Scale {
    /// By how much.
    #[attr(default = "two")]
    by: i64,
}

fn main() {}
