//! Building graph nodes.

use crate::abi::records::RawNode;
use crate::ir::{Attrs, BodyView, Context, Dim, Expr, Kind, Symbol, Term, Type};

/// Everything of a node but its operands. It may gain fields: start from [`NodeSpec::new`] or
/// [`BodyView::spec`].
#[derive(Clone, Copy, Debug)]
pub struct NodeSpec {
    /// What it is.
    pub kind: Kind,
    /// See [`Kind`].
    pub flags: u16,
    /// Its type; `None` to have it inferred.
    pub ty: Option<Type>,
    /// See [`Kind`].
    pub data: u32,
    /// See [`Kind`].
    pub aux: u32,
    /// Its attributes.
    pub attrs: Attrs,
    /// What it came from, the number of a [`crate::ir::NodeSource`]; 0 when nothing is known.
    pub span: u32,
}

impl NodeSpec {
    /// A node of this kind with nothing else set.
    pub fn new(kind: Kind) -> Self {
        Self { kind, flags: 0, ty: None, data: 0, aux: 0, attrs: Attrs::NONE, span: 0 }
    }

    /// What a record says.
    pub fn of(node: RawNode) -> Self {
        Self {
            kind: Kind(node.kind),
            flags: node.flags,
            ty: (node.ty != 0).then_some(Type(node.ty)),
            data: node.data,
            aux: node.aux,
            attrs: Attrs(node.attrs),
            span: node.span,
        }
    }

    /// The record of a node with `len` operands from `start` on in the pool.
    pub fn record(self, start: u32, len: u32) -> RawNode {
        RawNode {
            kind: self.kind.0,
            flags: self.flags,
            ty: self.ty.map_or(0, |ty| ty.0),
            start,
            len,
            data: self.data,
            aux: self.aux,
            attrs: self.attrs.0,
            span: self.span,
        }
    }
}

/// Adds nodes to a body.
///
/// Operands must be nodes of the same body. A node keeps the operands it was given; only nodes that a
/// transaction started from follow its replacements.
pub trait Build {
    /// The context the body's terms belong to.
    type Cx: Context + Clone;

    /// The context the body's terms belong to.
    fn cx(&self) -> Self::Cx;

    /// What `work` makes of the context, of which no other owner is counted.
    fn with_cx<R>(&self, work: impl FnOnce(&Self::Cx) -> R) -> R {
        work(&self.cx())
    }

    /// The body as it stands.
    fn body(&self) -> BodyView<'_>;

    /// Adds a node.
    fn push(&mut self, spec: NodeSpec, operands: &[Expr]) -> Expr;

    /// Adds a constant tensor; `bytes` are little-endian, row-major and as many as the static tensor
    /// type `ty` says.
    fn constant(&mut self, ty: Type, bytes: &[u8]) -> Expr;

    /// A fresh variable.
    fn var(&mut self, name: &str, ty: Option<Type>) -> Expr {
        let data = self.with_cx(|cx| cx.symbol(name)).0;
        self.push(NodeSpec { ty, data, ..NodeSpec::new(Kind::VAR) }, &[])
    }

    /// The operator called `name`.
    fn op(&mut self, name: &str) -> Expr {
        let name = self.with_cx(|cx| cx.symbol(name));
        self.named(Kind::OP, name)
    }

    /// The module's function called `name`.
    fn global(&mut self, name: &str) -> Expr {
        let name = self.with_cx(|cx| cx.symbol(name));
        self.named(Kind::GLOBAL, name)
    }

    /// The function outside of the module with link name `name`.
    fn extern_func(&mut self, name: &str) -> Expr {
        let name = self.with_cx(|cx| cx.symbol(name));
        self.named(Kind::EXTERN, name)
    }

    /// An operator, a global or an external function by a name that was looked up before.
    fn named(&mut self, kind: Kind, name: Symbol) -> Expr {
        self.push(NodeSpec { data: name.0, ..NodeSpec::new(kind) }, &[])
    }

    /// A call of any callee.
    fn call(&mut self, callee: Expr, args: &[Expr], attrs: Attrs, ty: Option<Type>) -> Expr {
        let operands: Vec<Expr> = [callee].iter().chain(args).copied().collect();
        self.push(NodeSpec { ty, attrs, ..NodeSpec::new(Kind::CALL) }, &operands)
    }

    /// A call of the operator called `name`, its type left to inference.
    fn call_op(&mut self, name: &str, args: &[Expr], attrs: Attrs) -> Expr {
        let op = self.op(name);
        self.call(op, args, attrs, None)
    }

    /// A tuple.
    fn tuple(&mut self, fields: &[Expr]) -> Expr {
        self.push(NodeSpec::new(Kind::TUPLE), fields)
    }

    /// Field `index` of a tuple.
    fn tuple_get_item(&mut self, tuple: Expr, index: u32) -> Expr {
        self.push(NodeSpec { data: index, ..NodeSpec::new(Kind::TUPLE_GET_ITEM) }, &[tuple])
    }

    /// A choice between two values.
    fn if_else(&mut self, cond: Expr, then: Expr, otherwise: Expr) -> Expr {
        self.push(NodeSpec::new(Kind::IF), &[cond, then, otherwise])
    }

    /// A shape value.
    fn shape(&mut self, dims: &[Dim]) -> Expr {
        let ty = self.with_cx(|cx| cx.shape_type(Some(dims)));
        self.push(NodeSpec { ty: Some(ty), data: ty.0, ..NodeSpec::new(Kind::SHAPE) }, &[])
    }

    /// A dimension as a scalar value.
    fn prim(&mut self, dim: Dim) -> Expr {
        let ty = self.with_cx(|cx| cx.scalar_type(crate::ir::DType::I64));
        self.push(NodeSpec { ty: Some(ty), data: dim.0, ..NodeSpec::new(Kind::PRIM) }, &[])
    }

    /// Blocks of bindings, then a result. Each block is `(is_dataflow, bindings)`.
    fn let_blocks(&mut self, blocks: &[(bool, Vec<(Expr, Expr)>)], result: Expr) -> Expr {
        let counts: Vec<i64> = blocks
            .iter()
            .filter(|(_, bindings)| !bindings.is_empty())
            .map(|(is_dataflow, bindings)| 2 * bindings.len() as i64 + *is_dataflow as i64)
            .collect();
        let data = self.with_cx(|cx| cx.int_list(&counts)).0;
        let mut operands: Vec<Expr> = blocks
            .iter()
            .flat_map(|(_, bindings)| bindings.iter().flat_map(|&(var, value)| [var, value]))
            .collect();
        operands.push(result);
        self.push(NodeSpec { data, ..NodeSpec::new(Kind::LET) }, &operands)
    }

    /// A graph function.
    fn function(
        &mut self,
        params: &[Expr],
        body: Expr,
        result: Option<Type>,
        attrs: Attrs,
    ) -> Expr {
        let operands: Vec<Expr> = params.iter().copied().chain([body]).collect();
        let data = result.map_or(0, |ty| ty.0);
        self.push(NodeSpec { data, attrs, ..NodeSpec::new(Kind::FUNCTION) }, &operands)
    }

    /// A copy of a function or tensor program that is private to its module.
    fn private(&mut self, function: Expr) -> Expr {
        let body = self.body();
        let spec = body.spec(function);
        let operands: Vec<Expr> = body.operands_keeping_binders(function).collect();
        self.push(NodeSpec { flags: spec.flags | 1, ..spec }, &operands)
    }

    /// A copy of node `expr` of `from` with other operands.
    ///
    /// Both bodies must belong to the same context. A constant's bytes are copied.
    fn copy_node(&mut self, from: BodyView<'_>, expr: Expr, operands: &[Expr]) -> Expr {
        if let crate::ir::View::Constant(constant) = from.view(expr) {
            return self.constant(constant.ty, constant.bytes);
        }
        self.push(from.spec(expr), operands)
    }

    /// The text of a name.
    fn name_of(&self, symbol: Symbol) -> String {
        self.with_cx(|cx| cx.terms().str(symbol).to_owned())
    }

    /// A list term of strings.
    fn str_list(&self, items: &[&str]) -> Term {
        self.with_cx(|cx| {
            let items: Vec<Term> = items.iter().map(|item| cx.symbol(item).into()).collect();
            cx.list(&items)
        })
    }
}
