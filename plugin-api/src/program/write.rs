//! Writing a program: literals, statements, axes.

use crate::abi::host::{Host, TransactionHandle};
use crate::ir::{
    Attrs, BodyView, Build, BuildPrim, Context, DType, Dim, Expr, LoopKind, NodeSpec, Type,
};

use super::{Block, Buffer, Program, Scalar};

/// A statement of a [`Program`].
#[derive(Clone, Copy, Debug)]
pub struct Stmt(pub Expr);

/// The nodes of a program, for what has no method of its own.
pub struct Writer(pub(super) TransactionHandle);

impl Build for Writer {
    type Cx = Host;

    fn cx(&self) -> Host {
        self.0.host().clone()
    }

    fn with_cx<R>(&self, work: impl FnOnce(&Host) -> R) -> R {
        work(self.0.host())
    }

    fn body(&self) -> BodyView<'_> {
        self.0.body()
    }

    fn push(&mut self, spec: NodeSpec, operands: &[Expr]) -> Expr {
        self.0.push(spec, operands)
    }

    fn constant(&mut self, ty: Type, bytes: &[u8]) -> Expr {
        match self.0.constant(ty.0, bytes) {
            Some(constant) => constant,
            None => panic!("{} bytes do not fit the type of this constant", bytes.len()),
        }
    }
}

/// The extent of an axis: an integer, or a dimension that may be a symbol.
pub trait Extent: Copy {
    /// Its value, where that is known.
    fn value(self, program: &Program) -> Option<i64>;

    /// Whether it is known to be `value`.
    fn is(self, program: &Program, value: i64) -> bool {
        self.value(program) == Some(value)
    }

    /// It as an index.
    fn index(self, program: &Program) -> Scalar<'_>;

    /// It as a dimension.
    fn dim(self, cx: &Host) -> Dim;
}

impl Extent for i64 {
    fn value(self, _: &Program) -> Option<i64> {
        Some(self)
    }

    fn index(self, program: &Program) -> Scalar<'_> {
        program.index(self)
    }

    fn dim(self, cx: &Host) -> Dim {
        cx.dim(self)
    }
}

impl Extent for Dim {
    fn value(self, program: &Program) -> Option<i64> {
        program.dim_value(self)
    }

    fn index(self, program: &Program) -> Scalar<'_> {
        match program.dim_value(self) {
            Some(value) => program.index(value),
            None => program.scalar(|writer| writer.prim(self)),
        }
    }

    fn dim(self, _: &Host) -> Dim {
        self
    }
}

impl Program {
    /// A scalar expression that `make` adds to the program.
    pub fn scalar(&self, make: impl FnOnce(&mut Writer) -> Expr) -> Scalar<'_> {
        let expr = make(&mut self.writer.borrow_mut());
        Scalar { program: self, expr }
    }

    /// A statement that `make` adds to the program.
    pub fn stmt(&self, make: impl FnOnce(&mut Writer) -> Expr) -> Stmt {
        Stmt(make(&mut self.writer.borrow_mut()))
    }

    /// The value of a dimension that is no symbol.
    pub fn dim_value(&self, dim: Dim) -> Option<i64> {
        self.writer.borrow().with_cx(|cx| cx.terms().dim_value(dim))
    }

    /// An index literal.
    pub fn index(&self, value: i64) -> Scalar<'_> {
        self.scalar(|writer| writer.index(value))
    }

    /// A literal of any dtype; of an integer dtype it is truncated, and the nearest value it has.
    pub fn literal(&self, dtype: DType, value: f64) -> Scalar<'_> {
        if dtype.is_float() {
            return self.scalar(|writer| writer.float_of(dtype, value));
        }
        if dtype == DType::U64 {
            return self.int(dtype, (value as u64).cast_signed());
        }
        let (low, high) = dtype.int_bounds();
        self.int(dtype, (value as i64).clamp(low, high))
    }

    /// An integer or bool literal; of u64 by its bits.
    pub fn int(&self, dtype: DType, value: i64) -> Scalar<'_> {
        self.scalar(|writer| writer.int_of(dtype, value))
    }

    /// A sequence that may name scalars and make buffers.
    pub fn block(&self) -> Block<'_> {
        Block::new(self)
    }

    /// Statements in order.
    pub fn seq(&self, stmts: &[Stmt]) -> Stmt {
        let stmts: Vec<Expr> = stmts.iter().map(|stmt| stmt.0).collect();
        self.stmt(|writer| writer.seq(&stmts))
    }

    /// A statement that runs where `cond` is true.
    pub fn when(&self, cond: Scalar<'_>, then: Stmt) -> Stmt {
        self.stmt(|writer| writer.if_stmt(cond.expr, then.0, None))
    }

    /// One of two statements.
    pub fn choose(&self, cond: Scalar<'_>, then: Stmt, otherwise: Stmt) -> Stmt {
        self.stmt(|writer| writer.if_stmt(cond.expr, then.0, Some(otherwise.0)))
    }

    /// A statement for each index below a count, one after the other: it may read what was written at indices before.
    pub fn in_turn<'p>(&'p self, count: Scalar<'p>, body: impl FnOnce(Scalar<'p>) -> Stmt) -> Stmt {
        let var = self.scalar(|writer| writer.scalar_var("i", DType::I64));
        let (zero, body) = (self.index(0), body(var));
        self.stmt(|writer| {
            let kind = LoopKind::Serial;
            writer.for_loop(var.expr, zero.expr, count.expr, kind, body.0, Attrs::NONE)
        })
    }

    pub(super) fn new_buffer(
        &self,
        name: &str,
        dtype: DType,
        shape: &[impl Extent],
        scope: &str,
    ) -> Buffer<'_> {
        let mut writer = self.writer.borrow_mut();
        let dims: Vec<Dim> =
            writer.with_cx(|cx| shape.iter().map(|extent| extent.dim(cx)).collect());
        let ty = writer.with_cx(|cx| cx.tensor_type(dtype, &dims));
        let expr = writer.buffer(name, ty, scope);
        Buffer { program: self, expr, dtype, shape: dims, empty: None }
    }
}
