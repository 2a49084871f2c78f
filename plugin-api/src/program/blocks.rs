//! What a program does, block by block.
//!
//! ```ir
//! for %i in 0..8 { for %r in 0..64 {                                     program.reduce("sum", …, &[8], &[64], |i, r| x.at(…))
//!   block "sum" (%vi: spatial = %i, %vr: reduce = %r) {
//!     init { %sum[%vi] = 0.0 }
//!     %sum[%vi] = %sum[%vi] + %x[%vi, %vr] } } }
//! for %i in 0..8 { block "mean" (%vi: spatial = %i) {                    program.set(&out, |i| sum.at(i) / 64.0)
//!   %out[%vi] = %sum[%vi] / 64.0 } }
//! ```

use crate::ir::{
    AttrValue, Attrs, BinaryOp, BlockIter, Build, BuildPrim, Context, DType, Expr, LoopKind,
    NewBlock, View, Walk,
};

use crate::rule::REDUCER;

use super::{Buffer, Extent, Program, Reducer, Scalar, Stmt};

/// Names of the variables of loops, and with a `v` of the iterators that go through them.
const AXES: [&str; 6] = ["i", "j", "k", "l", "m", "n"];
/// The same of what is reduced.
const REDUCED: [&str; 3] = ["r", "s", "t"];

impl Program {
    /// Writes every element of a buffer: `value` says which, for its place.
    pub fn set<'p>(&'p self, buffer: &Buffer<'p>, value: impl FnOnce(&[Scalar<'p>]) -> Scalar<'p>) {
        self.each(&buffer.shape, |place| buffer.set(place, value(place)));
    }

    /// A buffer of the program's own whose elements are what `value` says for their places.
    pub fn map<'p, E: Extent>(
        &'p self,
        name: &str,
        dtype: DType,
        shape: &[E],
        value: impl FnOnce(&[Scalar<'p>]) -> Scalar<'p>,
    ) -> Buffer<'p> {
        let buffer = self.temporary(name, dtype, shape);
        self.set(&buffer, value);
        buffer
    }

    /// A buffer of the program's own, of `dtype` and `shape`, whose elements are reduced: each of the terms at its place and at all
    /// places of the axes `reduced`, starting from the identity. Of no terms it is the identity.
    pub fn reduce<'p, E: Extent, R: Extent>(
        &'p self,
        name: &str,
        reducer: Reducer,
        dtype: DType,
        shape: &[E],
        reduced: &[R],
        term: impl FnOnce(&[Scalar<'p>], &[Scalar<'p>]) -> Scalar<'p>,
    ) -> Buffer<'p> {
        let mut buffer = self.temporary(name, dtype, shape);
        let identity = reducer.identity(self, dtype);
        if reduced.iter().any(|extent| extent.is(self, 0)) {
            self.set(&buffer, |_| identity);
            return buffer;
        }
        let (place, terms) =
            (self.axes("v", &AXES, shape.len()), self.axes("v", &REDUCED, reduced.len()));
        let init = buffer.set(&place, identity);
        let value = reducer.combine(buffer.at(&place), term(&place, &terms));
        let body = buffer.set(&place, value);
        self.add_block(
            &[(&place, true, &self.extents(shape)), (&terms, false, &self.extents(reduced))],
            Some(init),
            body,
        );
        buffer.empty = self.is_empty(reduced).map(|is_empty| (is_empty, identity.expr));
        buffer
    }

    /// The same as a statement, which stands among those of a loop: for each place of `shape` the element of `buffer` at the indices
    /// `into` is set to what is reduced, of at least one term.
    pub fn reduced_into<'p, E: Extent, R: Extent>(
        &'p self,
        buffer: &Buffer<'p>,
        reducer: Reducer,
        (shape, reduced): (&[E], &[R]),
        into: impl FnOnce(&[Scalar<'p>]) -> Vec<Scalar<'p>>,
        term: impl FnOnce(&[Scalar<'p>], &[Scalar<'p>]) -> Scalar<'p>,
    ) -> Stmt {
        let (place, terms) =
            (self.axes("v", &AXES, shape.len()), self.axes("v", &REDUCED, reduced.len()));
        let into = into(&place);
        let init = buffer.set(&into, reducer.identity(self, buffer.compute_dtype()));
        let value = reducer.combine(buffer.at(&into), term(&place, &terms));
        let body = buffer.set(&into, value);
        let parts: [(&[Scalar<'_>], bool, &[Expr]); 2] =
            [(&place, true, &self.extents(shape)), (&terms, false, &self.extents(reduced))];
        self.block_in_loops(&parts, Some(init), body, Attrs::NONE)
    }

    /// Buffers of the program's own of one shape that change together: at each place `first` says what they hold, and `next`, for
    /// each place of the axes `reduced` in order, what they hold afterwards. There is at least one such place.
    pub fn fold<'p, E: Extent, R: Extent, const N: usize>(
        &'p self,
        names: [&str; N],
        shape: &[E],
        reduced: &[R],
        first: impl FnOnce(&[Scalar<'p>]) -> [Scalar<'p>; N],
        next: impl FnOnce(&[Scalar<'p>], &[Scalar<'p>], [Scalar<'p>; N]) -> [Scalar<'p>; N],
    ) -> [Buffer<'p>; N] {
        self.fold_with(None, names, shape, reduced, first, next)
    }

    /// The same by a reducer of this name, from the facet `reducer`, which knows how two of them are joined: so a schedule may reduce
    /// over parts first. What they hold at first is the reducer's state of nothing.
    pub fn fold_by<'p, E: Extent, R: Extent, const N: usize>(
        &'p self,
        reducer: &str,
        names: [&str; N],
        shape: &[E],
        reduced: &[R],
        first: [Scalar<'p>; N],
        next: impl FnOnce(&[Scalar<'p>], &[Scalar<'p>], [Scalar<'p>; N]) -> [Scalar<'p>; N],
    ) -> [Buffer<'p>; N] {
        self.fold_with(Some(reducer), names, shape, reduced, |_| first, next)
    }

    fn fold_with<'p, E: Extent, R: Extent, const N: usize>(
        &'p self,
        reducer: Option<&str>,
        names: [&str; N],
        shape: &[E],
        reduced: &[R],
        first: impl FnOnce(&[Scalar<'p>]) -> [Scalar<'p>; N],
        next: impl FnOnce(&[Scalar<'p>], &[Scalar<'p>], [Scalar<'p>; N]) -> [Scalar<'p>; N],
    ) -> [Buffer<'p>; N] {
        let (place, terms) =
            (self.axes("v", &AXES, shape.len()), self.axes("v", &REDUCED, reduced.len()));
        let first = first(&place);
        let mut named = names.iter().zip(first);
        let buffers = [(); N].map(|()| {
            let (name, first) = named.next().expect("there are as many names as buffers");
            self.temporary(name, first.dtype(), shape)
        });
        let init: Vec<Stmt> =
            buffers.iter().zip(first).map(|(buffer, first)| buffer.set(&place, first)).collect();
        let held = std::array::from_fn(|index: usize| buffers[index].at(&place));
        let next = next(&place, &terms, held);
        // All of them are computed before any is written.
        let mut body = self.block();
        let named: Vec<Scalar<'p>> =
            names.iter().zip(next).map(|(name, next)| body.bind(name, next)).collect();
        buffers.iter().zip(named).for_each(|(buffer, value)| body.push(buffer.set(&place, value)));
        let body = body.finish();
        let attrs = reducer.map_or(Attrs::NONE, |name| {
            self.cx().attrs(&[(REDUCER, AttrValue::Str(name.to_owned()))])
        });
        let parts: [(&[Scalar<'_>], bool, &[Expr]); 2] =
            [(&place, true, &self.extents(shape)), (&terms, false, &self.extents(reduced))];
        self.run(self.block_in_loops(&parts, Some(self.seq(&init)), body, attrs));
        buffers
    }

    /// Runs a statement at each place of a shape. In which order is left open: what it writes must not depend on that.
    pub fn each<'p, E: Extent>(&'p self, shape: &[E], body: impl FnOnce(&[Scalar<'p>]) -> Stmt) {
        let place = self.axes("v", &AXES, shape.len());
        let body = body(&place);
        self.add_block(&[(&place, true, &self.extents(shape))], None, body);
    }

    /// Runs a statement at each place of a shape, one after the other: it may read what was written at places before.
    pub fn in_order<'p, E: Extent>(
        &'p self,
        shape: &[E],
        body: impl FnOnce(&[Scalar<'p>]) -> Stmt,
    ) {
        let place = self.axes("v", &AXES, shape.len());
        let body = body(&place);
        self.add_block(&[(&place, false, &self.extents(shape))], None, body);
    }

    /// Runs a statement at each place of `shape`, in any order, and there at each place of `ordered`, one after the other: it may
    /// read what was written before at the same place of `shape`, and nothing that is written at another one.
    pub fn sweep<'p, E: Extent, R: Extent>(
        &'p self,
        shape: &[E],
        ordered: &[R],
        body: impl FnOnce(&[Scalar<'p>], &[Scalar<'p>]) -> Stmt,
    ) {
        let (place, step) =
            (self.axes("v", &AXES, shape.len()), self.axes("v", &REDUCED, ordered.len()));
        let body = body(&place, &step);
        let parts: [(&[Scalar<'_>], bool, &[Expr]); 2] =
            [(&place, true, &self.extents(shape)), (&step, false, &self.extents(ordered))];
        self.add_block(&parts, None, body);
    }

    /// A buffer of the program's own, which lasts as long as it runs.
    pub fn temporary<E: Extent>(&self, name: &str, dtype: DType, shape: &[E]) -> Buffer<'_> {
        let buffer = self.new_buffer(name, dtype, shape, "");
        self.made.borrow_mut().push(buffer.expr);
        buffer
    }

    /// Adds a statement to what the program does.
    pub fn run(&self, stmt: Stmt) {
        self.stmts.borrow_mut().push(stmt.0);
    }

    /// Variables for axes: these names, then the first with the number of the axis.
    fn axes(&self, before: &str, names: &[&str], rank: usize) -> Vec<Scalar<'_>> {
        let name = |axis: usize| match names.get(axis) {
            Some(name) => format!("{before}{name}"),
            None => format!("{before}{}{axis}", names[0]),
        };
        (0..rank)
            .map(|axis| self.scalar(|writer| writer.scalar_var(&name(axis), DType::I64)))
            .collect()
    }

    fn extents(&self, shape: &[impl Extent]) -> Vec<Expr> {
        shape.iter().map(|extent| extent.index(self).expr).collect()
    }

    /// Whether one of the extents is zero, where that is not known.
    fn is_empty(&self, extents: &[impl Extent]) -> Option<Expr> {
        let unknown = extents.iter().filter(|extent| extent.value(self).is_none());
        let is_zero = unknown.map(|extent| extent.index(self).binary(BinaryOp::Eq, 0));
        is_zero.reduce(|a, b| a.binary(BinaryOp::Or, b)).map(|is_empty| is_empty.expr)
    }

    /// Adds a block over axes, those of each part spatial or reduced.
    fn add_block(&self, parts: &[(&[Scalar<'_>], bool, &[Expr])], init: Option<Stmt>, body: Stmt) {
        self.run(self.block_in_loops(parts, init, body, Attrs::NONE));
    }

    /// A block over axes in the loops of them.
    fn block_in_loops(
        &self,
        parts: &[(&[Scalar<'_>], bool, &[Expr])],
        init: Option<Stmt>,
        body: Stmt,
        attrs: Attrs,
    ) -> Stmt {
        let name = self.name_of(body);
        let mut iters = Vec::new();
        let mut loops = Vec::new();
        for &(places, is_spatial, extents) in parts {
            let names: &[&str] = if is_spatial { &AXES } else { &REDUCED };
            let vars = self.axes("", names, places.len());
            let kind = if is_spatial { "spatial" } else { "reduce" };
            let kind = self.writer.borrow().with_cx(|cx| cx.symbol(kind)).into();
            for ((place, var), &extent) in places.iter().zip(vars).zip(extents) {
                iters.push(BlockIter { var: place.expr, binding: var.expr, kind, domain: None });
                loops.push((var.expr, extent));
            }
        }
        let block = self.stmt(|writer| {
            writer.block(&NewBlock {
                name: writer.with_cx(|cx| cx.symbol(&name)),
                iters: &iters,
                predicate: None,
                reads: &[],
                writes: &[],
                init: init.map(|init| init.0),
                body: body.0,
                attrs,
            })
        });
        let zero = self.index(0).expr;
        loops.into_iter().rev().fold(block, |body, (var, extent)| {
            self.stmt(|writer| {
                writer.for_loop(var, zero, extent, LoopKind::Serial, body.0, Attrs::NONE)
            })
        })
    }

    /// The name of a block: that of the operator where it writes a result, that of what it writes otherwise.
    fn name_of(&self, stmt: Stmt) -> String {
        let writer = self.writer.borrow();
        let body = writer.body();
        let written = body.walk(stmt.0).find_map(|step| match step {
            Walk::Enter(stmt) => match body.view(stmt) {
                View::Store { buffer, .. } => Some(buffer),
                _ => None,
            },
            Walk::Leave(_) => None,
        });
        match written.map(|buffer| (buffer, body.view(buffer))) {
            // Outputs are made one behind the other, in the order of their numbers.
            Some((buffer, View::Buffer { name, .. }))
                if self.outputs.binary_search(&buffer).is_err() =>
            {
                body.terms().str(name).to_owned()
            }
            _ => self.op.rsplit('.').next().unwrap_or(self.op).to_owned(),
        }
    }
}
