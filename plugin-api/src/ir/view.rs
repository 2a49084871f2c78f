//! Reading nodes.

use crate::abi::read::BodyRecords;
use crate::abi::records::RawNode;
use crate::ir::args::resolve;
use crate::ir::{
    Args, Attrs, BinaryOp, DType, Dim, Kind, LetView, LoopKind, NodeSource, NodeSpec,
    PrimBlockView, Symbol, Term, TermView, Terms, Type,
};

/// A node of one body, by its number.
///
/// An id means nothing without its body; ids of two bodies must not be mixed.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Expr(pub u32);

impl Expr {
    /// The number as an index into a dense side table.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A body, borrowed for `'a`. Free to copy.
///
/// Inside a transaction it shows the body with the replacements made so far: operands of the nodes the
/// transaction started from read as what they were replaced by.
#[derive(Clone, Copy, Debug)]
pub struct BodyView<'a> {
    records: BodyRecords<'a>,
    /// For each node, what it is replaced by (itself when it is not); may be shorter than the body.
    replaced: &'a [u32],
    /// The nodes below this number follow replacements.
    base_len: usize,
}

impl<'a> BodyView<'a> {
    /// A published body.
    pub fn new(records: BodyRecords<'a>) -> Self {
        Self { records, replaced: &[], base_len: 0 }
    }

    /// A transaction's body. `replaced[n]` is what node `n` is replaced by; the operands of the first
    /// `base_len` nodes, those that the transaction started from, follow it.
    pub fn with_replacements(
        records: BodyRecords<'a>,
        replaced: &'a [u32],
        base_len: usize,
    ) -> Self {
        Self { records, replaced, base_len }
    }

    /// The replacements, and the number of nodes that follow them.
    pub fn replacements(&self) -> (&'a [u32], usize) {
        (self.replaced, self.base_len)
    }

    /// The records underneath.
    pub fn records(&self) -> BodyRecords<'a> {
        self.records
    }

    /// The terms that types, names and attributes refer to.
    #[inline]
    pub fn terms(&self) -> Terms<'a> {
        Terms::new(self.records.terms())
    }

    /// Number of nodes; ids run from 0 to this.
    #[inline]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The root: a function or a tensor program.
    pub fn root(&self) -> Expr {
        self.resolve(Expr(self.records.raw().root))
    }

    /// All nodes. In a published body operands come before their users.
    pub fn post_order(&self) -> impl DoubleEndedIterator<Item = Expr> + use<> {
        (0..self.len() as u32).map(Expr)
    }

    /// What a node is replaced by in this transaction; itself when it is not.
    #[inline]
    pub fn resolve(&self, expr: Expr) -> Expr {
        resolve(self.replaced, expr.0)
    }

    /// The record of a node.
    #[inline]
    pub fn raw_node(&self, expr: Expr) -> RawNode {
        self.records.node(expr.0)
    }

    /// Everything of a node but its operands.
    pub fn spec(&self, expr: Expr) -> NodeSpec {
        NodeSpec::of(self.raw_node(expr))
    }

    /// The kind of a node.
    #[inline]
    pub fn kind(&self, expr: Expr) -> Kind {
        Kind(self.raw_node(expr).kind)
    }

    /// The type of a node; `None` while it is not inferred.
    #[inline]
    pub fn ty(&self, expr: Expr) -> Option<Type> {
        Some(Type(self.raw_node(expr).ty)).filter(|ty| ty.0 != 0)
    }

    /// The children of a node, whatever its kind.
    #[inline]
    pub fn operands(&self, expr: Expr) -> Args<'a> {
        let node = self.raw_node(expr);
        let replaced = if expr.index() < self.base_len { self.replaced } else { &[] };
        Args { ids: self.records.operands(node), replaced }
    }

    /// The children of a node as they are read when it is rebuilt: a place that binds a variable or a
    /// buffer keeps its node, every other one follows the replacements.
    #[inline]
    pub fn operands_keeping_binders(&self, expr: Expr) -> impl Iterator<Item = Expr> + use<'a> {
        let args = self.operands(expr);
        let node = self.raw_node(expr);
        let binders = Binders::of(node, self.terms());
        args.ids.iter().enumerate().map(move |(position, &id)| {
            if binders.contains(position, args.ids.len()) {
                Expr(id)
            } else {
                resolve(args.replaced, id)
            }
        })
    }

    /// Whether operand `position` of a node is a place that binds rather than a use.
    #[inline]
    pub fn is_binder(&self, expr: Expr, position: usize) -> bool {
        let node = self.raw_node(expr);
        Binders::of(node, self.terms()).contains(position, node.len as usize)
    }

    /// The functions of the module that are named, each with its node; one that several nodes name comes
    /// several times.
    pub fn globals(self) -> impl Iterator<Item = (Expr, Symbol)> + use<'a> {
        self.post_order().filter_map(move |expr| match self.raw_node(expr) {
            node if node.kind == Kind::GLOBAL.0 => Some((expr, Symbol(node.data))),
            _ => None,
        })
    }

    /// What a node came from.
    #[inline]
    pub fn source(&self, expr: Expr) -> NodeSource {
        NodeSource(self.raw_node(expr).span)
    }

    /// The attributes of a node.
    pub fn attrs(&self, expr: Expr) -> Attrs {
        Attrs(self.raw_node(expr).attrs)
    }

    /// A constant of the body by its number.
    pub fn constant(&self, index: u32) -> ConstantView<'a> {
        let raw = self.records.constant(index);
        ConstantView {
            index,
            ty: Type(raw.ty),
            name: Symbol(raw.name),
            bytes: self.records.constant_bytes(raw),
        }
    }

    /// Takes a node apart.
    #[inline]
    pub fn view(&self, expr: Expr) -> View<'a> {
        let node = self.raw_node(expr);
        let args = self.operands(expr);
        let attrs = Attrs(node.attrs);
        match (Kind(node.kind), args.len()) {
            (Kind::CONSTANT, 0) => View::Constant(self.constant(node.data)),
            (Kind::VAR, 0) => View::Var { name: Symbol(node.data) },
            (Kind::GLOBAL, 0) => View::Global { name: Symbol(node.data) },
            (Kind::OP, 0) => View::Op { name: Symbol(node.data) },
            (Kind::EXTERN, 0) => View::Extern { name: Symbol(node.data) },
            (Kind::TUPLE, _) => View::Tuple(args),
            (Kind::TUPLE_GET_ITEM, 1) => {
                View::TupleGetItem { tuple: args.at(0), index: node.data as usize }
            }
            (Kind::CALL, 1..) => View::Call { callee: args.at(0), args: args.skip(1), attrs },
            (Kind::IF, 3) => View::If { cond: args.at(0), then: args.at(1), otherwise: args.at(2) },
            (Kind::LET, 1..) if args.len() % 2 == 1 => {
                View::Let(LetView { args, blocks: Term(node.data), terms: self.terms() })
            }
            (Kind::FUNCTION, 1..) => View::Function {
                params: args.take(args.len() - 1),
                body: args.at(args.len() - 1),
                result: Some(Type(node.data)).filter(|ty| ty.0 != 0),
                attrs,
            },
            (Kind::SHAPE, 0) => View::Shape { ty: Type(node.data) },
            (Kind::PRIM, 0) => View::Prim { dim: Dim(node.data) },
            _ => self.view_tensor_program(expr, args),
        }
    }

    fn view_tensor_program(&self, expr: Expr, args: Args<'a>) -> View<'a> {
        let node = self.raw_node(expr);
        let attrs = Attrs(node.attrs);
        let terms = self.terms();
        match (Kind(node.kind), args.len()) {
            (Kind::PRIM_FUNC, 1..) if (node.data as usize) < args.len() => View::PrimFunc {
                params: args.take(args.len() - 1),
                outputs: node.data as usize,
                body: args.at(args.len() - 1),
                attrs,
            },
            (Kind::BUFFER, _) => View::Buffer { name: Symbol(node.data), scope: Symbol(node.aux) },
            (Kind::FOR, 4) => match LoopKind::from_code(node.data) {
                Some(kind) => View::For {
                    var: args.at(0),
                    min: args.at(1),
                    extent: args.at(2),
                    body: args.at(3),
                    kind,
                    thread: Symbol(node.aux),
                    attrs,
                },
                None => View::Unknown { kind: Kind(node.kind), children: args },
            },
            (Kind::BLOCK, 1..) => match PrimBlockView::new(node, args, terms) {
                Some(block) => View::Block(block),
                None => View::Unknown { kind: Kind(node.kind), children: args },
            },
            (Kind::REGION, 1..) => View::Region { buffer: args.at(0), ranges: args.skip(1) },
            (Kind::STORE, 2..) => {
                View::Store { buffer: args.at(0), value: args.at(1), indices: args.skip(2) }
            }
            (Kind::LOAD, 1..) => View::Load { buffer: args.at(0), indices: args.skip(1) },
            (Kind::SEQ, _) => View::Seq(args),
            (Kind::ALLOC, 1) => View::Alloc { buffer: args.at(0) },
            (Kind::LET_STMT, 2) => View::LetStmt { var: args.at(0), value: args.at(1) },
            (Kind::IF_STMT, 2 | 3) => {
                View::IfStmt { cond: args.at(0), then: args.at(1), otherwise: args.get(2) }
            }
            (Kind::EVALUATE, 1) => View::Evaluate { value: args.at(0) },
            (Kind::INT, 0) => match terms.view(Term(node.data)) {
                TermView::Int(value) => View::Int(value),
                _ => View::Int(0),
            },
            (Kind::FLOAT, 0) => match terms.view(Term(node.data)) {
                TermView::Float(value) => View::Float(value),
                _ => View::Float(0.0),
            },
            (Kind::BINARY, 2) => match BinaryOp::from_code(node.data) {
                Some(op) => View::Binary { op, a: args.at(0), b: args.at(1) },
                None => View::Unknown { kind: Kind(node.kind), children: args },
            },
            (Kind::SELECT, 3) => {
                View::Select { cond: args.at(0), then: args.at(1), otherwise: args.at(2) }
            }
            (Kind::CAST, 1) => View::Cast { value: args.at(0) },
            (Kind::INTRINSIC, _) => View::Intrinsic { name: Symbol(node.data), args },
            (Kind::RAMP, 2) => View::Ramp { base: args.at(0), stride: args.at(1) },
            (Kind::BROADCAST, 1) => View::Broadcast { value: args.at(0) },
            _ => View::Unknown { kind: Kind(node.kind), children: args },
        }
    }

    /// Name of the operator that `callee` is.
    #[inline]
    pub fn op_name(&self, callee: Expr) -> Option<&'a str> {
        self.op_symbol(callee).map(|name| self.terms().str(name))
    }

    /// Name of the operator that `callee` is, as a symbol.
    #[inline]
    pub fn op_symbol(&self, callee: Expr) -> Option<Symbol> {
        let node = self.raw_node(callee);
        (node.kind == Kind::OP.0).then_some(Symbol(node.data))
    }

    /// Dtype and lanes of a scalar expression.
    pub fn scalar_ty(&self, expr: Expr) -> Option<(DType, u16)> {
        self.terms().scalar(self.ty(expr)?)
    }
}

/// Which operands of a node bind.
#[derive(Clone, Copy)]
enum Binders {
    None,
    First,
    AllButLast,
    EvenBefore(usize),
}

impl Binders {
    #[inline]
    fn of(node: RawNode, terms: Terms<'_>) -> Self {
        match Kind(node.kind) {
            Kind::LET => Binders::EvenBefore((node.len as usize).saturating_sub(1)),
            Kind::FUNCTION | Kind::PRIM_FUNC => Binders::AllButLast,
            Kind::FOR | Kind::ALLOC | Kind::LET_STMT => Binders::First,
            Kind::BLOCK => {
                let kinds = terms.children(Term(node.aux)).len().saturating_sub(2);
                Binders::EvenBefore(2 * kinds)
            }
            _ => Binders::None,
        }
    }

    #[inline]
    fn contains(self, position: usize, len: usize) -> bool {
        match self {
            Binders::None => false,
            Binders::First => position == 0,
            Binders::AllButLast => position + 1 < len,
            Binders::EvenBefore(end) => position < end && position.is_multiple_of(2),
        }
    }
}

/// A constant tensor.
#[derive(Clone, Copy, Debug)]
pub struct ConstantView<'a> {
    /// Its number in the body.
    pub index: u32,
    /// Its tensor type; all dimensions are integers.
    pub ty: Type,
    /// Its name; the empty symbol 0 when it has none.
    pub name: Symbol,
    /// Its bytes: little-endian, row-major, not necessarily aligned.
    pub bytes: &'a [u8],
}

/// A node, taken apart. See [`Kind`] for what each is.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields are the operands that Kind documents")]
pub enum View<'a> {
    Constant(ConstantView<'a>),
    Var {
        name: Symbol,
    },
    Global {
        name: Symbol,
    },
    Op {
        name: Symbol,
    },
    Extern {
        name: Symbol,
    },
    Tuple(Args<'a>),
    TupleGetItem {
        tuple: Expr,
        index: usize,
    },
    Call {
        callee: Expr,
        args: Args<'a>,
        attrs: Attrs,
    },
    If {
        cond: Expr,
        then: Expr,
        otherwise: Expr,
    },
    Let(LetView<'a>),
    Function {
        params: Args<'a>,
        body: Expr,
        result: Option<Type>,
        attrs: Attrs,
    },
    Shape {
        ty: Type,
    },
    Prim {
        dim: Dim,
    },

    PrimFunc {
        params: Args<'a>,
        outputs: usize,
        body: Expr,
        attrs: Attrs,
    },
    Buffer {
        name: Symbol,
        scope: Symbol,
    },
    For {
        var: Expr,
        min: Expr,
        extent: Expr,
        body: Expr,
        kind: LoopKind,
        thread: Symbol,
        attrs: Attrs,
    },
    Block(PrimBlockView<'a>),
    Region {
        buffer: Expr,
        ranges: Args<'a>,
    },
    Store {
        buffer: Expr,
        value: Expr,
        indices: Args<'a>,
    },
    Load {
        buffer: Expr,
        indices: Args<'a>,
    },
    Seq(Args<'a>),
    Alloc {
        buffer: Expr,
    },
    LetStmt {
        var: Expr,
        value: Expr,
    },
    IfStmt {
        cond: Expr,
        then: Expr,
        otherwise: Option<Expr>,
    },
    Evaluate {
        value: Expr,
    },
    Int(i64),
    Float(f64),
    Binary {
        op: BinaryOp,
        a: Expr,
        b: Expr,
    },
    Select {
        cond: Expr,
        then: Expr,
        otherwise: Expr,
    },
    Cast {
        value: Expr,
    },
    Intrinsic {
        name: Symbol,
        args: Args<'a>,
    },
    Ramp {
        base: Expr,
        stride: Expr,
    },
    Broadcast {
        value: Expr,
    },

    /// A kind that this build does not know, or a node that does not have the operands of its kind.
    Unknown {
        kind: Kind,
        children: Args<'a>,
    },
}
