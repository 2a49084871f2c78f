//! Passes over tensor programs, in the order in which they usually run.

mod arith;
mod flatten_buffer;
mod intrinsics;
mod loops;
mod lower_blocks;
mod lower_intrinsics;
mod simplify;
mod unroll_loop;
mod vectorize_loop;
mod widen;

tenon_plugin_api::plugin! {
    id = "tenon.tensor",
    summary = "Passes over tensor programs",
    license = "Apache-2.0 OR MIT"
}
