//! Parts of plugins that stand alone, with the unit tests that are in them. A plugin is built once that way, and not a second time
//! for a handful of tests: that of the operators takes a minute.

#![allow(dead_code, reason = "parts are there for the rest of their plugins")]

#[path = "../plugins/operators/src/random/box_muller.rs"]
mod box_muller;
#[path = "../plugins/tensor/src/arith/interval.rs"]
mod interval;
#[path = "../plugins/tensor/src/arith/linear.rs"]
mod linear;
#[path = "../plugins/fusion/src/names.rs"]
mod names;
#[path = "../plugins/memory/src/static_plan_block_memory/offsets.rs"]
mod offsets;
#[path = "../plugins/operators/src/kernel/parallel.rs"]
mod parallel;
#[path = "../plugins/operators/src/random/philox.rs"]
mod philox;
#[path = "../plugins/operators/src/movement/slice_range.rs"]
mod slice_range;
#[path = "../plugins/operators/src/kernel/space.rs"]
mod space;
#[path = "../plugins/operators/src/kernel/strided.rs"]
mod strided;

use interval::Interval;
