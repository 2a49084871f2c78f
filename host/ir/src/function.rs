//! A published function: an immutable arena of nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenon_plugin_api::abi::read::BodyRecords;
use tenon_plugin_api::abi::records::{RawConstant, RawNode};
use tenon_plugin_api::ir::{BodyView, Expr, Kind, NodeSource, Type, View};

use super::{Constant, Cx};

/// A graph function or a tensor program.
///
/// Nodes stand in the depth-first post-order of the root, which is the last: operands before their users,
/// and every node is reachable. So two functions that are built alike are numbered alike. It never changes: a pass edits a [`super::Transaction`] and publishes a new function.
#[derive(Debug)]
pub struct Function {
    pub(super) cx: Cx,
    pub(super) nodes: Vec<RawNode>,
    pub(super) operands: Vec<u32>,
    pub(super) constants: Vec<Arc<Constant>>,
    pub(super) raw_constants: Vec<RawConstant>,
    pub(super) parts: KnownParts,
}

/// Whether the checker found that all nodes have the parts of their kinds. Neither their types nor their sources matter to it.
#[derive(Debug, Default)]
pub(super) struct KnownParts(AtomicBool);

impl KnownParts {
    pub(super) fn are_right(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set_right(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Clone for KnownParts {
    fn clone(&self) -> Self {
        Self(AtomicBool::new(self.are_right()))
    }
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

    /// The same function with other types: `types[n]` is the type of node `n`, `Type(0)` where it has none. The
    /// function itself comes back when no type differs.
    ///
    /// # Panics
    /// When there are not as many types as nodes.
    pub fn with_types(self: &Arc<Self>, types: &[Type]) -> Arc<Function> {
        assert_eq!(types.len(), self.nodes.len(), "one type for each node");
        if self.nodes.iter().zip(types).all(|(node, ty)| node.ty == ty.0) {
            return self.clone();
        }
        let typed = |(node, ty): (&RawNode, &Type)| RawNode { ty: ty.0, ..*node };
        Arc::new(Function {
            cx: self.cx.clone(),
            nodes: self.nodes.iter().zip(types).map(typed).collect(),
            operands: self.operands.clone(),
            constants: self.constants.clone(),
            raw_constants: self.raw_constants.clone(),
            parts: self.parts.clone(),
        })
    }

    /// What a node came from as a person reads it; nothing where that is not known. Of a tensor program it is what the
    /// program as a whole came from.
    pub fn source_text(&self, node: Expr) -> Option<String> {
        let body = self.view();
        let node = if self.is_prim() { body.root() } else { node };
        if node.index() >= body.len() {
            return None;
        }
        Some(self.cx.source_text(body.source(node))).filter(|text| !text.is_empty())
    }

    /// The same function with other sources: `map` is given each node's own.
    pub fn map_sources(
        self: Arc<Self>,
        map: impl Fn(usize, NodeSource) -> NodeSource,
    ) -> Arc<Self> {
        let mut this = Arc::try_unwrap(self).unwrap_or_else(|shared| Function {
            cx: shared.cx.clone(),
            nodes: shared.nodes.clone(),
            operands: shared.operands.clone(),
            constants: shared.constants.clone(),
            raw_constants: shared.raw_constants.clone(),
            parts: shared.parts.clone(),
        });
        for (index, node) in this.nodes.iter_mut().enumerate() {
            node.span = map(index, NodeSource(node.span)).0;
        }
        Arc::new(this)
    }

    /// Bytes of memory behind it, constants not counted.
    pub fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<RawNode>() + self.operands.capacity() * 4
    }
}
