//! The rules, one a file.

mod block_form;
mod bound_once;
mod calls;
mod closed;
mod compute_form;
mod dataflow;
mod devices;
mod dimensions;
mod explicit_memory;
mod flat_buffers;
mod globals;
mod legal;
mod no_blocks;
mod no_call_pure;
mod no_dataflow;
mod no_unrolled_loop;
mod no_vectorized_loop;
mod outputs;
mod parts;
mod phase;
mod placed;
mod scalars;
mod scheduled;
mod scope;
mod targets;
mod threads;
mod types;

pub(super) use parts::check as check_parts;

use super::Rule;

/// All of them; the first, which the others stand on, is about single nodes.
pub(super) const ALL: &[Rule] = &[
    parts::RULE,
    phase::RULE,
    globals::RULE,
    bound_once::RULE,
    scope::RULE,
    dimensions::RULE,
    types::RULE,
    calls::RULE,
    scalars::RULE,
    threads::RULE,
    targets::RULE,
    devices::RULE,
    scheduled::RULE,
    outputs::RULE,
    dataflow::RULE,
    closed::RULE,
    placed::RULE,
    block_form::RULE,
    legal::RULE,
    compute_form::RULE,
    no_dataflow::RULE,
    no_call_pure::RULE,
    explicit_memory::RULE,
    no_blocks::RULE,
    flat_buffers::RULE,
    no_vectorized_loop::RULE,
    no_unrolled_loop::RULE,
];
