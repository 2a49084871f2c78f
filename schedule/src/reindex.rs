//! Buffers in the place of others, and loops around statements: what several primitives do.

use tenon_plugin_api::ir::{
    Attrs, BinaryOp, Build, BuildPrim, Context, Dim, Expr, Kind as NodeKind, LoopKind, Symbol, View,
};
use tenon_plugin_api::pass::Rewriter;

use crate::exprs::Replacing;
use crate::index::{Space, Sum};
use crate::schedule::{Schedule, normal};
use crate::tree::{For, Id, Node};

impl Schedule {
    /// A buffer of the name, the element type and the memory of another, with another shape.
    pub(crate) fn buffer_like(&mut self, buffer: Expr, shape: &[Dim]) -> Expr {
        let cx = self.rw.cx();
        let body = self.body();
        let tensor = body.ty(buffer).and_then(|ty| body.terms().tensor(ty));
        let (dtype, _) = tensor.expect("a buffer has a tensor type");
        let scope = match self.view(buffer) {
            View::Buffer { scope, .. } => self.rw.name_of(scope),
            _ => String::new(),
        };
        let name = self.var_name(buffer);
        self.new_buffer(&name, cx.tensor_type(dtype, shape), &scope)
    }

    /// A buffer of the name and the type of another, in a memory.
    pub(crate) fn in_scope(&mut self, buffer: Expr, scope: &str) -> Expr {
        let ty = self.body().ty(buffer).expect("a buffer has a tensor type");
        let name = self.var_name(buffer);
        self.new_buffer(&name, ty, scope)
    }

    /// Has every access to `old` in and below a statement go to `new`, at the indices, one for each axis, that `map` makes of those it had. The statement that makes the buffer
    /// stays as it is.
    pub(crate) fn redirect(
        &mut self,
        root: Id,
        old: Expr,
        new: Expr,
        mut map: impl FnMut(&mut Rewriter, usize, &[Expr]) -> Expr,
    ) {
        let rank = self.shape(new).len();
        let mut ranges = self.space();
        let mut mapped = |rw: &mut Rewriter, space: &mut Space, indices: &[Expr]| -> Vec<Expr> {
            let each = (0..rank).map(|axis| {
                let index = map(rw, axis, indices);
                normal(rw, space, index)
            });
            each.collect()
        };
        let mut space = self.space();
        self.rewrite(root, &mut Replacing::default(), &mut space, |rw, node, operands| {
            let is_own = rw.body().kind(node) == NodeKind::LOAD && operands[0] == old;
            is_own.then(|| {
                let indices = mapped(rw, &mut ranges, &operands[1..]);
                rw.load(new, &indices)
            })
        });
        for id in self.tree.walk(root) {
            if let Node::Store { buffer, value, indices } = self.tree.get(id).clone()
                && buffer == old
            {
                let indices = mapped(&mut self.rw, &mut ranges, &indices);
                *self.tree.get_mut(id) = Node::Store { buffer: new, value, indices };
            }
        }
    }

    /// Makes one axis of a buffer of the program's own shorter: an index is taken modulo `extent`.
    pub(crate) fn wrap(&mut self, buffer: Expr, axis: usize, extent: i64) {
        let mut shape = self.shape(buffer);
        shape[axis] = Space::default().dim(&self.rw.cx(), &Sum::int(extent));
        let new = self.buffer_like(buffer, &shape);
        self.redirect(self.tree.root, buffer, new, |rw, at, indices| match at == axis {
            true => {
                let extent = rw.index(extent);
                rw.binary(BinaryOp::FloorMod, indices[at], extent)
            }
            false => indices[at],
        });
        self.make(new, buffer);
    }

    /// Makes a buffer where another one was made.
    pub(crate) fn make(&mut self, new: Expr, old: Expr) {
        for id in self.tree.all() {
            if let Node::Alloc(made) = self.tree.get_mut(id)
                && *made == old
            {
                *made = new;
            }
        }
    }

    /// Makes a buffer in the place of another one, and has every access go to it, at the indices it had.
    pub(crate) fn make_instead(&mut self, old: Expr, new: Expr) {
        self.make(new, old);
        let (root, mut space) = (self.tree.root, self.space());
        self.rewrite(root, &mut Replacing::of([(old, new)]), &mut space, |_, _, _| None);
    }

    /// Serial loops from zero on around a statement, with these variables and extents, outermost first.
    pub(crate) fn loops_over(&mut self, body: Id, loops: Vec<(Expr, Expr)>) -> Id {
        let min = self.int(0);
        loops.into_iter().rev().fold(body, |body, (var, extent)| {
            let (kind, thread, attrs) = (LoopKind::Serial, Symbol(0), Attrs::NONE);
            self.tree.make(Node::For(For { var, min, extent, kind, thread, attrs, body }))
        })
    }
}
