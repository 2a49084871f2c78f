//! A transaction: a function being edited.

use std::sync::Arc;

use tenon_plugin_api::abi::read::BodyRecords;
use tenon_plugin_api::abi::records::{RawConstant, RawNode};
use tenon_plugin_api::ir::{BodyView, Build, Expr, Kind, NodeSource, NodeSpec, Type};
use thiserror::Error;

use super::compact::compact;
use super::{Bytes, Constant, Cx, Function, normalize};

/// Builds a function, from nothing or from a published one.
///
/// Starting one costs nothing. The base's nodes are copied when the first node is added; replacing a
/// node only writes a side table. Finishing applies the replacements, drops what is unreachable and
/// renumbers the rest into post-order, all in linear time.
#[derive(Debug, Clone)]
pub struct Transaction {
    cx: Cx,
    base: Option<Arc<Function>>,
    base_len: usize,
    /// Whether `nodes`, `operands` and the constants are this transaction's own copy.
    is_copied: bool,
    nodes: Vec<RawNode>,
    operands: Vec<u32>,
    constants: Vec<Arc<Constant>>,
    raw_constants: Vec<RawConstant>,
    replaced: Vec<u32>,
    root: Option<Expr>,
    /// Of what is built.
    source: NodeSource,
}

/// Why a transaction cannot be published.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum TransactionError {
    /// No root was set in a transaction that started from nothing.
    #[error("the function has no root")]
    NoRoot,
    /// The root is not a function.
    #[error("the root is a {0}, not a function or a tensor program")]
    WrongRoot(&'static str),
    /// Replacements lead from a node back to itself.
    #[error("node {0} was replaced by something that is built from it")]
    Cycle(u32),
    /// An operand is not a node of the body.
    #[error("node {0} refers to a node that does not exist")]
    MissingOperand(u32),
}

impl Transaction {
    /// Builds a new function.
    pub fn new(cx: Cx) -> Self {
        Self {
            cx,
            base: None,
            base_len: 0,
            is_copied: true,
            nodes: Vec::new(),
            operands: Vec::new(),
            constants: Vec::new(),
            raw_constants: Vec::new(),
            replaced: Vec::new(),
            root: None,
            source: NodeSource::NONE,
        }
    }

    /// Edits a published function.
    pub fn edit(base: &Arc<Function>) -> Self {
        Self {
            base_len: base.nodes.len(),
            is_copied: false,
            root: Some(Expr(base.nodes.len() as u32 - 1)),
            base: Some(base.clone()),
            ..Self::new(base.cx.clone())
        }
    }

    /// Makes every use of `old` by nodes of the base read `new`. The places that bind a variable stay.
    pub fn replace(&mut self, old: Expr, new: Expr) {
        let old = self.body().resolve(old);
        let new = self.body().resolve(new);
        if old == new {
            return;
        }
        let count = self.body().len() as u32;
        let known = self.replaced.len() as u32;
        self.replaced.extend(known..count);
        self.replaced[old.index()] = new.0;
    }

    /// Says what nodes came from that are built from here on, but for those that say it themselves.
    pub fn set_source(&mut self, source: NodeSource) {
        self.source = source;
    }

    /// Sets the root: a function or a tensor program.
    pub fn set_root(&mut self, root: Expr) {
        self.root = Some(root);
    }

    /// Makes the function private to its module. Its root must be set.
    pub fn make_private(&mut self) {
        if let Some(root) = self.root {
            self.copy_base();
            self.nodes[root.index()].flags |= 1;
        }
    }

    /// Sets the type of a node, or clears it to have it inferred again.
    pub fn set_type(&mut self, expr: Expr, ty: Option<Type>) {
        self.copy_base();
        self.nodes[expr.index()].ty = ty.map_or(0, |ty| ty.0);
    }

    /// Sets what a node came from.
    pub fn set_source_of(&mut self, expr: Expr, source: NodeSource) {
        self.copy_base();
        self.nodes[expr.index()].span = source.0;
    }

    /// Whether anything was changed.
    pub fn is_changed(&self) -> bool {
        self.base.is_none() || self.is_copied || !self.replaced.is_empty()
    }

    /// Adds a constant that shares its bytes. Its type must be a static tensor type of their size.
    pub fn shared_constant(&mut self, constant: Arc<Constant>) -> Expr {
        self.copy_base();
        let data = self.constants.len() as u32;
        let ty = Some(constant.ty);
        self.raw_constants.push(constant.raw());
        self.constants.push(constant);
        self.push(NodeSpec { ty, data, ..NodeSpec::new(Kind::CONSTANT) }, &[])
    }

    /// The constants, by their numbers.
    pub fn constants(&self) -> &[Arc<Constant>] {
        match &self.base {
            Some(base) if !self.is_copied => &base.constants,
            _ => &self.constants,
        }
    }

    /// Publishes the function. The base itself comes back when nothing was changed. A function in block
    /// form stays in block form: nested calls that were built become bindings.
    pub fn finish(self) -> Result<Arc<Function>, TransactionError> {
        let is_changed = self.is_changed();
        let function = self.publish()?;
        Ok(if is_changed { normalize(&function) } else { function })
    }

    /// Publishes the function as it was built. The base itself comes back when nothing was changed.
    pub fn publish(mut self) -> Result<Arc<Function>, TransactionError> {
        if let Some(base) = &self.base
            && !self.is_changed()
        {
            return Ok(base.clone());
        }
        self.copy_base();
        let root = self.root.ok_or(TransactionError::NoRoot)?;
        let kind = self.body().kind(root);
        if !matches!(kind, Kind::FUNCTION | Kind::PRIM_FUNC) {
            return Err(TransactionError::WrongRoot(kind.name()));
        }
        self.pass_on_sources(root);
        if let Some(function) = self.base_with_root(root) {
            return Ok(Arc::new(function));
        }
        compact(&self.cx, self.body(), root, &self.constants).map(Arc::new)
    }

    /// The base with another root, where no node that it reaches is another one. So a pass that sets attributes of a function pays
    /// for a copy and for no walk.
    fn base_with_root(&mut self, root: Expr) -> Option<Function> {
        let base = self.base.as_ref().filter(|_| self.replaced.is_empty())?;
        let (own, new) = (*base.nodes.last()?, self.nodes[root.index()]);
        let range = |node: RawNode| node.start as usize..node.start as usize + node.len as usize;
        let is_alike = (own.kind, own.data, own.aux) == (new.kind, new.data, new.aux)
            && base.operands[range(own)] == self.operands[range(new)];
        if !is_alike {
            return None;
        }
        let mut nodes = std::mem::take(&mut self.nodes);
        nodes.truncate(base.nodes.len() - 1);
        nodes.push(RawNode { start: own.start, ..new });
        nodes.shrink_to_fit();
        Some(Function {
            cx: self.cx.clone(),
            nodes,
            operands: base.operands.clone(),
            constants: base.constants.clone(),
            raw_constants: base.raw_constants.clone(),
            parts: base.parts.clone(),
        })
    }

    /// What replaces a node came from where that came from, unless it says something else.
    fn pass_on_sources(&mut self, root: Expr) {
        for (old, &new) in self.replaced.iter().enumerate().filter(|&(old, &new)| old as u32 != new)
        {
            let span = self.nodes[old].span;
            let node = &mut self.nodes[new as usize];
            if node.span == 0 && Kind(node.kind).has_source() {
                node.span = span;
            }
        }
        if let Some(base) = &self.base
            && self.nodes[root.index()].span == 0
        {
            let own = base.nodes.last().map_or(0, |own| own.span);
            self.nodes[root.index()].span = own;
        }
    }

    fn copy_base(&mut self) {
        if self.is_copied {
            return;
        }
        self.is_copied = true;
        if let Some(base) = &self.base {
            self.nodes = copied_to_grow(&base.nodes);
            self.operands = copied_to_grow(&base.operands);
            self.constants = base.constants.clone();
            self.raw_constants = base.raw_constants.clone();
        }
    }
}

impl Build for Transaction {
    type Cx = Cx;

    fn cx(&self) -> Cx {
        self.cx.clone()
    }

    fn with_cx<R>(&self, work: impl FnOnce(&Cx) -> R) -> R {
        work(&self.cx)
    }

    fn body(&self) -> BodyView<'_> {
        let root = self.root.unwrap_or(Expr(0)).0;
        let records = match &self.base {
            Some(base) if !self.is_copied => BodyRecords::from_slices(
                &base.nodes,
                &base.operands,
                &base.raw_constants,
                root,
                self.cx.table(),
            ),
            _ => BodyRecords::from_slices(
                &self.nodes,
                &self.operands,
                &self.raw_constants,
                root,
                self.cx.table(),
            ),
        };
        // Only the base's own nodes follow replacements.
        BodyView::with_replacements(records, &self.replaced, self.base_len)
    }

    fn push(&mut self, spec: NodeSpec, operands: &[Expr]) -> Expr {
        self.copy_base();
        let id = Expr(u32::try_from(self.nodes.len()).expect("at most 2^32 nodes in a body"));
        let (start, len) = (self.operands.len() as u32, operands.len() as u32);
        let span = if spec.span == 0 { self.source.0 } else { spec.span };
        self.nodes.push(NodeSpec { span, ..spec }.record(start, len));
        self.operands.extend(operands.iter().map(|operand| operand.0));
        id
    }

    fn constant(&mut self, ty: Type, bytes: &[u8]) -> Expr {
        let name = tenon_plugin_api::ir::Symbol(0);
        let data = Bytes::new(bytes.to_vec());
        self.shared_constant(Arc::new(Constant { ty, name, data }))
    }
}

/// A copy with room for what a pass adds, so that the first addition copies nothing again.
fn copied_to_grow<T: Copy>(items: &[T]) -> Vec<T> {
    let mut copy = Vec::with_capacity(items.len() + items.len() / 2 + 16);
    copy.extend_from_slice(items);
    copy
}
