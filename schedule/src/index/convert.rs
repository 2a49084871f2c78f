//! Sums from expressions and dimensions, and back.

use tenon_plugin_api::ir::{
    BinaryOp, BodyView, Build, BuildPrim, Context, DType, Dim, DimView, Expr, Terms, View,
};

use super::sum::Product;
use super::{Atom, AtomId, Space, Sum};

/// What is nested deeper than this is one atom.
pub(super) const MAX_DEPTH: usize = 48;

impl Space {
    /// The sum that an i64 expression is.
    pub(crate) fn read(&mut self, body: BodyView<'_>, expr: Expr) -> Sum {
        if let View::Int(value) = body.view(expr)
            && body.scalar_ty(expr) == Some((DType::I64, 1))
        {
            return Sum::int(value);
        }
        let sum = self.read_to(body, expr, MAX_DEPTH);
        self.rejoin(sum)
    }

    fn read_to(&mut self, body: BodyView<'_>, expr: Expr, depth: usize) -> Sum {
        if body.scalar_ty(expr) != Some((DType::I64, 1)) || depth == 0 {
            return self.node(expr);
        }
        match body.view(expr) {
            View::Int(value) => Sum::int(value),
            View::Prim { dim } => self.read_dim(body.terms(), dim),
            View::Binary { op, a, b } => {
                let (x, y) = (self.read_to(body, a, depth - 1), self.read_to(body, b, depth - 1));
                self.combine(op, &x, &y).unwrap_or_else(|| self.node(expr))
            }
            _ => self.node(expr),
        }
    }

    fn combine(&mut self, op: BinaryOp, a: &Sum, b: &Sum) -> Option<Sum> {
        let is_positive = |space: &Self| space.is_natural(&b.add_int(-1));
        Some(match op {
            BinaryOp::Add => a.add(b),
            BinaryOp::Sub => a.sub(b),
            BinaryOp::Mul => a.mul(b)?,
            BinaryOp::FloorDiv if is_positive(self) => self.div(a, b),
            // Truncation rounds down what is not negative.
            BinaryOp::Div if is_positive(self) && self.is_natural(a) => self.div(a, b),
            BinaryOp::FloorMod if is_positive(self) => self.modulo(a, b),
            BinaryOp::Min => self.min(a, b),
            BinaryOp::Max => self.max(a, b),
            _ => return None,
        })
    }

    /// The sum that a dimension is.
    pub(crate) fn read_dim(&mut self, terms: Terms<'_>, dim: Dim) -> Sum {
        self.read_dim_to(terms, dim, MAX_DEPTH)
    }

    fn read_dim_to(&mut self, terms: Terms<'_>, dim: Dim, depth: usize) -> Sum {
        let opaque = |space: &mut Self| Sum::atom(space.intern(Atom::Dim(dim)));
        if depth == 0 {
            return opaque(self);
        }
        let pair = |space: &mut Self, op: BinaryOp, a: Dim, b: Dim| {
            let a = space.read_dim_to(terms, a, depth - 1);
            let b = space.read_dim_to(terms, b, depth - 1);
            space.combine(op, &a, &b)
        };
        let sum = match terms.dim(dim) {
            DimView::Const(value) => Some(Sum::int(value)),
            DimView::Add(parts) => parts.iter().try_fold(Sum::default(), |sum, &part| {
                Some(sum.add(&self.read_dim_to(terms, part, depth - 1)))
            }),
            DimView::Mul(parts) => parts.iter().try_fold(Sum::int(1), |product, &part| {
                product.mul(&self.read_dim_to(terms, part, depth - 1))
            }),
            DimView::FloorDiv(a, b) => pair(self, BinaryOp::FloorDiv, a, b),
            DimView::FloorMod(a, b) => pair(self, BinaryOp::FloorMod, a, b),
            DimView::Min(a, b) => pair(self, BinaryOp::Min, a, b),
            DimView::Max(a, b) => pair(self, BinaryOp::Max, a, b),
            DimView::Symbol(_) | DimView::Unknown(_) => None,
        };
        sum.unwrap_or_else(|| opaque(self))
    }

    /// An expression that computes a sum: outer steps before inner ones, the constant last.
    pub(crate) fn build(&self, to: &mut impl Build, sum: &Sum) -> Expr {
        if self.is_symbolic(sum) {
            let dim = self.dim(&to.cx(), sum);
            return self.dim_expr(to, dim);
        }
        let mut terms: Vec<&(Product, i64)> = sum.terms().iter().collect();
        terms.sort_by_key(|(atoms, coefficient)| {
            let symbols = atoms.iter().filter(|&&atom| self.is_symbol(atom)).count();
            let rank = if atoms.is_empty() { 2 } else { (symbols == atoms.len()) as usize };
            let (is_negative, size) = (*coefficient < 0, coefficient.unsigned_abs());
            (rank, is_negative, usize::MAX - symbols, u64::MAX - size, atoms.clone())
        });
        let mut result = None;
        for (atoms, coefficient) in terms {
            let is_negative = *coefficient < 0 && result.is_some();
            let factor = if is_negative { coefficient.wrapping_neg() } else { *coefficient };
            let product = self.build_product(to, atoms, factor);
            result = Some(match result {
                None => product,
                Some(sum) if is_negative => to.sub(sum, product),
                Some(sum) => to.add(sum, product),
            });
        }
        result.unwrap_or_else(|| to.index(0))
    }

    fn build_product(&self, to: &mut impl Build, atoms: &[AtomId], factor: i64) -> Expr {
        let symbols = atoms.iter().copied().filter(|&atom| self.is_symbol(atom)).collect();
        let others = atoms.iter().copied().filter(|&atom| !self.is_symbol(atom));
        let scale = self.dim(&to.cx(), &Sum::product(symbols, factor));
        let scale = self.dim_expr(to, scale);
        let product = others.fold(None, |product, atom| {
            let value = self.build_atom(to, atom);
            Some(match product {
                None => value,
                Some(product) => to.mul(product, value),
            })
        });
        match product {
            None => scale,
            Some(product) => to.mul(product, scale),
        }
    }

    fn build_atom(&self, to: &mut impl Build, atom: AtomId) -> Expr {
        let (op, a, b) = match self.atom(atom) {
            &Atom::Node(node) => return node,
            &Atom::Dim(dim) => return self.dim_expr(to, dim),
            Atom::Div(a, b) => (BinaryOp::FloorDiv, a, b),
            Atom::Mod(a, b) => (BinaryOp::FloorMod, a, b),
            Atom::Min(a, b) => (BinaryOp::Min, a, b),
            Atom::Max(a, b) => (BinaryOp::Max, a, b),
        };
        let (a, b) = (self.build(to, a), self.build(to, b));
        to.binary(op, a, b)
    }

    fn dim_expr(&self, to: &mut impl Build, dim: Dim) -> Expr {
        match to.with_cx(|cx| cx.terms().dim_value(dim)) {
            Some(value) => to.index(value),
            None => to.prim(dim),
        }
    }

    /// The dimension that a sum of numbers and symbols is.
    ///
    /// # Panics
    /// When it holds a variable.
    pub(crate) fn dim(&self, cx: &impl Context, sum: &Sum) -> Dim {
        let products = sum.terms().iter().map(|(atoms, coefficient)| {
            let factors: Vec<Dim> = atoms.iter().map(|&atom| self.dim_of_atom(cx, atom)).collect();
            (cx.dim_product(&factors), *coefficient)
        });
        cx.dim_sum(&products.collect::<Vec<(Dim, i64)>>())
    }

    fn dim_of_atom(&self, cx: &impl Context, atom: AtomId) -> Dim {
        match self.atom(atom) {
            Atom::Node(node) => panic!("node {} is no dimension", node.0),
            &Atom::Dim(dim) => dim,
            Atom::Div(a, b) => cx.dim_floor_div(self.dim(cx, a), self.dim(cx, b)),
            Atom::Mod(a, b) => cx.dim_floor_mod(self.dim(cx, a), self.dim(cx, b)),
            Atom::Min(a, b) => cx.dim_min(self.dim(cx, a), self.dim(cx, b)),
            Atom::Max(a, b) => cx.dim_max(self.dim(cx, a), self.dim(cx, b)),
        }
    }

    fn is_symbol(&self, atom: AtomId) -> bool {
        !self.holds_one(atom, |_| true)
    }
}
