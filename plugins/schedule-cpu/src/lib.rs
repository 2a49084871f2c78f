//! Rules that schedule tensor programs for CPUs.

mod attempt;
mod byte_conv;
mod byte_dots;
mod caches;
mod dots_in_turn;
mod fallback;
mod finish;
mod inlining;
mod intrinsics;
mod product;
mod rows;
mod scaled;
mod threads;
mod tile_dots;
mod transposes;
mod vectors;
mod windows;
mod winograd;
mod winograd_groups;

use attempt::attempt;

tenon_plugin_api::plugin! {
    id = "tenon.schedule_cpu",
    summary = "Rules that schedule tensor programs for CPUs",
    license = "Apache-2.0 OR MIT"
}
