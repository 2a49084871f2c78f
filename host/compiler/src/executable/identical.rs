//! Finds tensor programs that are the same but for names.
//!
//! Networks repeat their blocks, and each block its programs. A published function is laid out in a
//! fixed order, so two programs are the same when their nodes are, one by one. Names of variables
//! and buffers, annotations and places in the text do not matter to code; what the program is for does.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;
use tenon_plugin_api::program::TARGET;

use crate::ir::{BodyView, Function, Kind};

/// Everything of a program that its code depends on.
type Key = Vec<u32>;

/// Numbers programs so that the same ones have the same number.
#[derive(Default)]
pub(super) struct Distinct {
    numbers: HashMap<Key, usize, FxBuildHasher>,
}

impl Distinct {
    /// The number of `function`, and whether it is a new one.
    pub(super) fn number(&mut self, function: &Arc<Function>) -> (usize, bool) {
        let next = self.numbers.len();
        let number = *self.numbers.entry(key(function.view())).or_insert(next);
        (number, number == next)
    }
}

fn key(body: BodyView<'_>) -> Key {
    let mut key = Vec::with_capacity(8 * body.len() + 1);
    let target = body.terms().attrs(body.attrs(body.root())).term(TARGET);
    key.push(target.map_or(0, |target| target.0));
    for expr in body.post_order() {
        let node = body.raw_node(expr);
        let kind = Kind(node.kind);
        let is_name = matches!(kind, Kind::VAR | Kind::BUFFER | Kind::BLOCK);
        let data = if is_name { 0 } else { node.data };
        // Of a program they say who may call it.
        let flags = if kind == Kind::PRIM_FUNC { 0 } else { node.flags };
        key.extend([u32::from(node.kind) | u32::from(flags) << 16, node.ty, data, node.aux]);
        key.push(node.len);
        key.extend(body.operands(expr).iter().map(|operand| operand.0));
    }
    key
}
