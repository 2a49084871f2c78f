//! Passes over tensor programs, and behind them what they share. Their order stands in `registry.toml`.

mod annotate_op_pattern;
mod apply_schedules;
mod bind_threads;
mod compact_buffers;
mod flatten_buffer;
mod fuse_loops;
mod lower_blocks;
mod lower_intrinsics;
mod parallelize;
mod remove_no_op;
mod schedule;
mod simplify;
mod unroll_loop;
mod vectorize_innermost;
mod vectorize_loop;
mod vectorize_reduction;

mod arith;
mod conditions;
mod intrinsics;
mod loops;
mod nest;
mod widen;

tenon_plugin_api::plugin! {
    id = "tenon.tensor",
    summary = "Passes over tensor programs",
    license = "Apache-2.0 OR MIT"
}
