//! The rules, one a file.

mod block_form;
mod bound_once;
mod calls;
mod closed;
mod dataflow;
mod dimensions;
mod globals;
mod legal;
mod outputs;
mod parts;
mod phase;
mod planned;
mod scalars;
mod scope;
mod target;
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
    outputs::RULE,
    dataflow::RULE,
    closed::RULE,
    block_form::RULE,
    legal::RULE,
    planned::RULE,
    target::RULE,
];
