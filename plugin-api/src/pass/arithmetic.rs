//! Arithmetic on tensors, for whoever builds calls: a pass in its [`Rewriter`](crate::pass::Rewriter), a rule in its
//! [`Site`](crate::rule::Site).

use crate::ir::{Context, DType, Expr, Type, TypeView};

use super::Calls;

/// Builds calls of the operators that almost any rewrite is made of.
pub trait Arithmetic: Calls {
    /// `a + b`.
    fn add(&mut self, a: Expr, b: Expr) -> Expr {
        self.apply("add", &[a, b])
    }

    /// `a - b`.
    fn sub(&mut self, a: Expr, b: Expr) -> Expr {
        self.apply("subtract", &[a, b])
    }

    /// `a * b`.
    fn mul(&mut self, a: Expr, b: Expr) -> Expr {
        self.apply("multiply", &[a, b])
    }

    /// `a / b`.
    fn div(&mut self, a: Expr, b: Expr) -> Expr {
        self.apply("divide", &[a, b])
    }

    /// `-x`.
    fn neg(&mut self, x: Expr) -> Expr {
        self.apply("negative", &[x])
    }

    /// A number of the element type of `like`; of f32, where that is no tensor.
    ///
    /// # Panics
    /// When the element type has no such number. A float type has every one, rounded.
    fn number_like(&mut self, like: Expr, value: f64) -> Expr {
        let dtype = self.dtype(like).unwrap_or(DType::F32);
        match self.number(dtype, value) {
            Some(number) => number,
            None => panic!("{dtype} has no {value}"),
        }
    }

    /// `x * factor`.
    fn scale(&mut self, x: Expr, factor: f64) -> Expr {
        let factor = self.number_like(x, factor);
        self.mul(x, factor)
    }

    /// `x + number`.
    fn plus(&mut self, x: Expr, number: f64) -> Expr {
        let number = self.number_like(x, number);
        self.add(x, number)
    }

    /// `x` where a comparison of `a` and `b` holds, zero elsewhere. The comparison is an operator, such as `less`.
    fn masked(&mut self, comparison: &str, a: Expr, b: Expr, x: Expr) -> Expr {
        let mask = self.apply(comparison, &[a, b]);
        let zero = self.number_like(x, 0.0);
        self.apply("where", &[mask, x, zero])
    }

    /// 1 where a comparison of `a` and `b` holds, 0 elsewhere, in the element type of `a`.
    fn indicator(&mut self, comparison: &str, a: Expr, b: Expr) -> Expr {
        let one = self.number_like(a, 1.0);
        self.masked(comparison, a, b, one)
    }

    /// A reduction along axes, such as `sum`; `x` itself where there are none.
    fn reduce(&mut self, op: &str, x: Expr, axes: &[i64], keepdims: bool) -> Expr {
        match axes.is_empty() {
            true => x,
            false => {
                let attrs = [("axis", axes.into()), ("keepdims", keepdims.into())];
                self.apply_with(op, &[x], &attrs)
            }
        }
    }

    /// Zeros of a tensor type; `None` where its rank is not known.
    fn zeros(&mut self, ty: Type) -> Option<Expr> {
        let (dtype, dims) = self.terms().tensor(ty)?;
        let dims = dims.to_vec();
        let shape = self.shape(&dims);
        let attrs = [("value", 0.0.into()), ("dtype", dtype.to_string().into())];
        Some(self.apply_with("full", &[shape], &attrs))
    }

    /// The element type of a tensor.
    fn dtype(&self, x: Expr) -> Option<DType> {
        match self.terms().ty(self.body().ty(x)?) {
            TypeView::Tensor { dtype, .. } => Some(dtype),
            _ => None,
        }
    }

    /// `x` in a shape of integers; `x` itself where it has it.
    fn reshape_to(&mut self, x: Expr, extents: &[i64]) -> Expr {
        let dims =
            self.with_cx(|cx| extents.iter().map(|&extent| cx.dim(extent)).collect::<Vec<_>>());
        self.reshape(x, &dims)
    }
}

impl<T: Calls + ?Sized> Arithmetic for T {}
