//! Writing tensor programs: scalars with operators, buffers with indices, loops as closures.
//!
//! ```ignore
//! kernel.serial("i", rows, |i| {
//!     kernel.serial("j", columns, |j| out.set(&[i, j], (x.at(&[i, j]) * 2).max(kernel.index(0))))
//! })
//! ```
//!
//! A [`Scalar`] is an expression and may be used several times; each use evaluates it again, so what is
//! dear or long is named by [`Block::bind`].

use std::cell::RefCell;

use crate::ir::{
    Attrs, Build, BuildPrim, Context, Cx, DType, Dim, Expr, LoopKind, Transaction, Type,
};
use crate::ops::{LegalizeCx, OpError};

use super::scalar::{Scalar, compute_dtype, int_bounds};

/// A vectorized loop of up to so many vectors is written out, a longer one stays a loop.
pub(super) const MAX_VECTORS: i64 = 4;

/// A tensor program that is being written.
pub(super) struct Kernel {
    pub(super) tx: RefCell<Transaction>,
}

/// A statement of a [`Kernel`].
#[derive(Clone, Copy)]
pub(super) struct Stmt(pub(super) Expr);

/// A buffer of a [`Kernel`]; its extents are integers, or dimensions in a program for tensors of any shape.
#[derive(Clone)]
pub(super) struct Buffer<'k, E = i64> {
    kernel: &'k Kernel,
    pub(super) expr: Expr,
    pub(super) dtype: DType,
    pub(super) shape: Vec<E>,
}

/// The extent of an axis.
pub(super) trait Extent: Copy {
    /// Element type and shape of a tensor type.
    fn tensor(cx: &LegalizeCx<'_>, ty: Type) -> Result<(DType, Vec<Self>), OpError>;

    /// Whether it is known to be `value`.
    fn is(self, kernel: &Kernel, value: i64) -> bool;

    /// It as an index.
    fn index(self, kernel: &Kernel) -> Scalar<'_>;
}

impl Extent for i64 {
    fn tensor(cx: &LegalizeCx<'_>, ty: Type) -> Result<(DType, Vec<i64>), OpError> {
        cx.static_tensor(ty)
    }

    fn is(self, _: &Kernel, value: i64) -> bool {
        self == value
    }

    fn index(self, kernel: &Kernel) -> Scalar<'_> {
        kernel.index(self)
    }
}

impl Extent for Dim {
    fn tensor(cx: &LegalizeCx<'_>, ty: Type) -> Result<(DType, Vec<Dim>), OpError> {
        let terms = cx.attrs.terms();
        let text = || format!("a tensor of known rank is expected, not {}", terms.type_text(ty));
        let (dtype, dims) = terms.tensor(ty).ok_or_else(|| OpError::Unsupported(text()))?;
        Ok((dtype, dims.to_vec()))
    }

    fn is(self, kernel: &Kernel, value: i64) -> bool {
        kernel.cx().terms().dim_value(self) == Some(value)
    }

    fn index(self, kernel: &Kernel) -> Scalar<'_> {
        match kernel.cx().terms().dim_value(self) {
            Some(value) => kernel.index(value),
            None => kernel.scalar(|tx| tx.prim(self)),
        }
    }
}

impl Kernel {
    pub(super) fn new(tx: Transaction) -> Self {
        Self { tx: RefCell::new(tx) }
    }

    /// The transaction with all that was written.
    pub(super) fn into_transaction(self) -> Transaction {
        self.tx.into_inner()
    }

    /// A scalar expression that `make` adds to the program.
    pub(super) fn scalar(&self, make: impl FnOnce(&mut Transaction) -> Expr) -> Scalar<'_> {
        let expr = make(&mut self.tx.borrow_mut());
        Scalar { kernel: self, expr }
    }

    fn stmt(&self, make: impl FnOnce(&mut Transaction) -> Expr) -> Stmt {
        Stmt(make(&mut self.tx.borrow_mut()))
    }

    /// An index literal.
    pub(super) fn index(&self, value: i64) -> Scalar<'_> {
        self.scalar(|tx| tx.index(value))
    }

    /// A literal of any dtype; of an integer dtype it is truncated, and the nearest value it has.
    pub(super) fn literal(&self, dtype: DType, value: f64) -> Scalar<'_> {
        if dtype.is_float() {
            return self.scalar(|tx| tx.float_of(dtype, value));
        }
        if dtype == DType::U64 {
            return self.int(dtype, (value as u64).cast_signed());
        }
        let (low, high) = int_bounds(dtype);
        self.int(dtype, (value as i64).clamp(low, high))
    }

    /// An integer or bool literal; of u64 by its bits.
    pub(super) fn int(&self, dtype: DType, value: i64) -> Scalar<'_> {
        self.scalar(|tx| tx.int_of(dtype, value))
    }

    /// A buffer that is given from outside.
    pub(super) fn param<E>(
        &self,
        name: &str,
        ty: Type,
        dtype: DType,
        shape: Vec<E>,
    ) -> Buffer<'_, E> {
        let expr = self.tx.borrow_mut().buffer(name, ty, "");
        Buffer { kernel: self, expr, dtype, shape }
    }

    fn fresh_buffer(&self, name: &str, dtype: DType, shape: &[i64], scope: &str) -> Buffer<'_> {
        let mut tx = self.tx.borrow_mut();
        let ty = tx.cx().static_tensor_type(dtype, shape);
        let expr = tx.buffer(name, ty, scope);
        Buffer { kernel: self, expr, dtype, shape: shape.to_vec() }
    }

    /// A sequence that may name scalars and make buffers.
    pub(super) fn block(&self) -> Block<'_> {
        Block { kernel: self, stmts: Vec::new() }
    }

    /// Statements in order.
    pub(super) fn seq(&self, stmts: &[Stmt]) -> Stmt {
        let stmts: Vec<Expr> = stmts.iter().map(|stmt| stmt.0).collect();
        self.stmt(|tx| tx.seq(&stmts))
    }

    /// A statement that runs where `cond` is true.
    pub(super) fn when(&self, cond: Scalar<'_>, then: Stmt) -> Stmt {
        self.stmt(|tx| tx.if_stmt(cond.expr, then.0, None))
    }

    /// One of two statements.
    pub(super) fn choose(&self, cond: Scalar<'_>, then: Stmt, otherwise: Stmt) -> Stmt {
        self.stmt(|tx| tx.if_stmt(cond.expr, then.0, Some(otherwise.0)))
    }

    /// A loop; none when it has exactly one step.
    fn each<'k>(
        &'k self,
        name: &str,
        extent: impl Extent,
        kind: LoopKind,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        if extent.is(self, 1) {
            return body(self.index(0));
        }
        let var = self.scalar(|tx| tx.scalar_var(name, DType::I64));
        let body = body(var);
        self.loop_over(var, extent, kind, body)
    }

    fn loop_over(&self, var: Scalar<'_>, extent: impl Extent, kind: LoopKind, body: Stmt) -> Stmt {
        let (zero, extent) = (self.index(0), extent.index(self));
        self.stmt(|tx| tx.for_loop(var.expr, zero.expr, extent.expr, kind, body.0, Attrs::NONE))
    }

    /// A serial loop.
    pub(super) fn serial<'k>(
        &'k self,
        name: &str,
        extent: impl Extent,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        self.each(name, extent, LoopKind::Serial, body)
    }

    /// A loop whose steps are independent and worth a thread. There is at most one around a statement.
    pub(super) fn parallel<'k>(
        &'k self,
        name: &str,
        extent: i64,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        self.each(name, extent, LoopKind::Parallel, body)
    }

    /// A loop to be written out.
    pub(super) fn unrolled<'k>(
        &'k self,
        name: &str,
        extent: i64,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        self.each(name, extent, LoopKind::Unrolled, body)
    }

    /// A loop that becomes vectors: as many of the target's length as go in, then shorter ones. Up to
    /// [`MAX_VECTORS`] are written out.
    pub(super) fn vectorized<'k>(
        &'k self,
        name: &str,
        extent: i64,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        self.each(name, extent, LoopKind::Vectorized, body)
    }

    /// A serial loop over `min .. end` where both are known only at run time.
    pub(super) fn range<'k>(
        &'k self,
        name: &str,
        min: Scalar<'k>,
        end: Scalar<'k>,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        let var = self.scalar(|tx| tx.scalar_var(name, DType::I64));
        let body = body(var);
        let extent = end - min;
        self.stmt(|tx| {
            tx.for_loop(var.expr, min.expr, extent.expr, LoopKind::Serial, body.0, Attrs::NONE)
        })
    }

    /// The same, written out however many vectors it takes, for what shall stay in registers.
    pub(super) fn in_registers<'k>(
        &'k self,
        name: &str,
        extent: i64,
        lanes: i64,
        body: impl FnOnce(Scalar<'k>) -> Stmt,
    ) -> Stmt {
        if extent <= MAX_VECTORS * lanes {
            return self.vectorized(name, extent, body);
        }
        let width = vector_width(extent, lanes);
        self.unrolled(&format!("{name}o"), extent / width, |outer| {
            self.vectorized(name, width, |inner| body(outer * width + inner))
        })
    }

    /// Serial loops over the axes of a shape, one for each of them, whatever its extent: the form in which
    /// a program of one statement is fused with others.
    pub(super) fn nest<'k>(
        &'k self,
        shape: &[impl Extent],
        body: impl FnOnce(&[Scalar<'k>]) -> Stmt,
    ) -> Stmt {
        let vars = self.axes(shape.len());
        let body = body(&vars);
        self.over_axes(&vars, shape, body)
    }

    /// Variables for the loops of [`Kernel::over_axes`].
    pub(super) fn axes(&self, rank: usize) -> Vec<Scalar<'_>> {
        (0..rank)
            .map(|axis| self.scalar(|tx| tx.scalar_var(&axis_name(axis), DType::I64)))
            .collect()
    }

    /// Serial loops of `vars` over the axes of a shape.
    pub(super) fn over_axes(&self, vars: &[Scalar<'_>], shape: &[impl Extent], body: Stmt) -> Stmt {
        vars.iter()
            .zip(shape)
            .rev()
            .fold(body, |body, (&var, &extent)| self.loop_over(var, extent, LoopKind::Serial, body))
    }

    /// The tensor program: the last `outputs` parameters are written.
    pub(super) fn finish(&self, params: &[Expr], outputs: u32, body: Stmt, attrs: Attrs) {
        let mut tx = self.tx.borrow_mut();
        let root = tx.prim_func(params, outputs, body.0, attrs);
        tx.set_root(root);
    }

    /// The context of its terms.
    pub(super) fn cx(&self) -> Cx {
        self.tx.borrow().cx()
    }
}

/// `i`, `j`, … for the first axes, then `i6`, `i7`, ….
fn axis_name(axis: usize) -> String {
    match ["i", "j", "k", "l", "m", "n"].get(axis) {
        Some(name) => (*name).to_owned(),
        None => format!("i{axis}"),
    }
}

/// The largest power of two that is at most `lanes` and divides `extent`.
pub(super) fn vector_width(extent: i64, lanes: i64) -> i64 {
    let mut width = 1;
    while width * 2 <= lanes && extent % (width * 2) == 0 && extent > 0 {
        width *= 2;
    }
    width
}

/// The largest divisor of `extent` that is written out as vectors of `lanes` lanes.
pub(super) fn vector_chunk(extent: i64, lanes: i64) -> i64 {
    let limit = extent.min(MAX_VECTORS * lanes);
    (1..=limit).rev().find(|chunk| extent % chunk == 0).unwrap_or(1)
}

/// A sequence that is being written. What it names and makes is known until its end.
pub(super) struct Block<'k> {
    kernel: &'k Kernel,
    stmts: Vec<Stmt>,
}

impl<'k> Block<'k> {
    /// The program it belongs to.
    pub(super) fn kernel(&self) -> &'k Kernel {
        self.kernel
    }

    /// Adds a statement.
    pub(super) fn push(&mut self, stmt: Stmt) {
        self.stmts.push(stmt);
    }

    /// Names a scalar; a literal or a variable is its own name.
    pub(super) fn bind(&mut self, name: &str, value: Scalar<'k>) -> Scalar<'k> {
        let kernel = self.kernel;
        if kernel.tx.borrow().body().operands(value.expr).is_empty() {
            return value;
        }
        let var = kernel.scalar(|tx| {
            let ty = tx.body().ty(value.expr);
            tx.var(name, ty)
        });
        self.push(kernel.stmt(|tx| tx.let_stmt(var.expr, value.expr)));
        var
    }

    /// Makes a buffer that is small enough for registers or the nearest cache.
    pub(super) fn local(&mut self, name: &str, dtype: DType, shape: &[i64]) -> Buffer<'k> {
        self.alloc(self.kernel.fresh_buffer(name, dtype, shape, "local"))
    }

    /// Makes a buffer in memory.
    pub(super) fn global(&mut self, name: &str, dtype: DType, shape: &[i64]) -> Buffer<'k> {
        self.alloc(self.kernel.fresh_buffer(name, dtype, shape, ""))
    }

    fn alloc(&mut self, buffer: Buffer<'k>) -> Buffer<'k> {
        self.push(self.kernel.stmt(|tx| tx.alloc(buffer.expr)));
        buffer
    }

    /// The sequence.
    pub(super) fn finish(self) -> Stmt {
        self.kernel.seq(&self.stmts)
    }
}

impl<'k, E> Buffer<'k, E> {
    /// The element at `indices`.
    pub(super) fn at(&self, indices: &[Scalar<'k>]) -> Scalar<'k> {
        debug_assert_eq!(indices.len(), self.shape.len(), "indices of a buffer");
        let indices: Vec<Expr> = indices.iter().map(|index| index.expr).collect();
        self.kernel.scalar(|tx| tx.load(self.expr, &indices))
    }

    /// The element at `indices` in the dtype that arithmetic on it is done in.
    pub(super) fn wide(&self, indices: &[Scalar<'k>]) -> Scalar<'k> {
        self.at(indices).cast(compute_dtype(self.dtype))
    }

    /// Writes the element at `indices`, converted to the dtype of the buffer.
    pub(super) fn set(&self, indices: &[Scalar<'k>], value: Scalar<'k>) -> Stmt {
        debug_assert_eq!(indices.len(), self.shape.len(), "indices of a buffer");
        let value = value.cast(self.dtype);
        let indices: Vec<Expr> = indices.iter().map(|index| index.expr).collect();
        self.kernel.stmt(|tx| tx.store(self.expr, value.expr, &indices))
    }
}
