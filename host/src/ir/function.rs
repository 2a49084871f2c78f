//! A published function: an immutable arena of nodes.

use std::sync::Arc;

use tenon_plugin_api::abi::read::BodyRecords;
use tenon_plugin_api::abi::records::{RawConstant, RawNode};
use tenon_plugin_api::ir::{BodyView, Expr, Kind, View};

use super::{Constant, Cx};

/// A graph function or a tensor program.
///
/// Operands stand before their users, every node is reachable from the root, and the root is the last
/// node. It never changes: a pass edits a [`super::Transaction`] and publishes a new function.
#[derive(Debug)]
pub struct Function {
    pub(super) cx: Cx,
    pub(super) nodes: Vec<RawNode>,
    pub(super) operands: Vec<u32>,
    pub(super) constants: Vec<Arc<Constant>>,
    pub(super) raw_constants: Vec<RawConstant>,
}

impl Function {
    /// The context of its terms.
    pub fn cx(&self) -> &Cx {
        &self.cx
    }

    /// Reads it.
    pub fn view(&self) -> BodyView<'_> {
        BodyView::new(BodyRecords::from_slices(
            &self.nodes,
            &self.operands,
            &self.raw_constants,
            self.nodes.len() as u32 - 1,
            self.cx.table(),
        ))
    }

    /// The constants, by their numbers.
    pub fn constants(&self) -> &[Arc<Constant>] {
        &self.constants
    }

    /// Whether this is a tensor program.
    pub fn is_prim(&self) -> bool {
        self.view().kind(self.view().root()) == Kind::PRIM_FUNC
    }

    /// Whether it is private to its module.
    pub fn is_private(&self) -> bool {
        self.view().raw_node(self.view().root()).flags & 1 == 1
    }

    /// The parameters.
    pub fn params(&self) -> Vec<Expr> {
        match self.view().view(self.view().root()) {
            View::Function { params, .. } | View::PrimFunc { params, .. } => params.to_vec(),
            _ => Vec::new(),
        }
    }

    /// Bytes of memory behind it, constants not counted.
    pub fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<RawNode>() + self.operands.capacity() * 4
    }
}
