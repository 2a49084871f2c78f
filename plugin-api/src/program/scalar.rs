//! Scalar expressions with operators.

use std::ops::{Add, Div, Mul, Rem, Sub};

use crate::ir::{BinaryOp, Build, BuildPrim, DType, Expr};

use super::Program;

/// A scalar expression of a program. It may be used several times; each use evaluates it again, so what is dear or long is
/// named by [`Block::bind`](super::Block::bind).
#[derive(Clone, Copy)]
pub struct Scalar<'p> {
    pub(super) program: &'p Program,
    pub(super) expr: Expr,
}

impl<'p> Scalar<'p> {
    /// The program it belongs to.
    pub fn program(self) -> &'p Program {
        self.program
    }

    /// Its node.
    pub fn expr(self) -> Expr {
        self.expr
    }

    /// Its element type.
    pub fn dtype(self) -> DType {
        let writer = self.program.writer.borrow();
        writer.body().scalar_ty(self.expr).map_or(DType::I64, |(dtype, _)| dtype)
    }

    /// `self op right`; both have one dtype. Of the operators of Rust, `/` and `%` round down on integers.
    pub fn binary(self, op: BinaryOp, right: impl Operand<'p>) -> Scalar<'p> {
        let right = right.beside(self);
        debug_assert_eq!(self.dtype(), right.dtype(), "operands of {}", op.text());
        self.program.scalar(|writer| writer.binary(op, self.expr, right.expr))
    }

    /// The smaller of two; what is no number when one of them is none.
    pub fn min(self, right: impl Operand<'p>) -> Scalar<'p> {
        self.binary(BinaryOp::Min, right)
    }

    /// The larger of two; what is no number when one of them is none.
    pub fn max(self, right: impl Operand<'p>) -> Scalar<'p> {
        self.binary(BinaryOp::Max, right)
    }

    /// Whether it is smaller.
    pub fn lt(self, right: impl Operand<'p>) -> Scalar<'p> {
        self.binary(BinaryOp::Lt, right)
    }

    /// Whether it is larger or equal.
    pub fn ge(self, right: impl Operand<'p>) -> Scalar<'p> {
        self.binary(BinaryOp::Ge, right)
    }

    /// Whether it is larger.
    pub fn gt(self, right: impl Operand<'p>) -> Scalar<'p> {
        self.binary(BinaryOp::Gt, right)
    }

    /// Whether both are true.
    pub fn and(self, right: Scalar<'p>) -> Scalar<'p> {
        self.binary(BinaryOp::And, right)
    }

    /// `then` where this is true, `otherwise` elsewhere; both are evaluated.
    pub fn select(self, then: Scalar<'p>, otherwise: Scalar<'p>) -> Scalar<'p> {
        self.program.scalar(|writer| writer.select(self.expr, then.expr, otherwise.expr))
    }

    /// Conversion to `dtype`: to an integer towards zero, to the nearest value that there is; to a narrower float to nearest even.
    pub fn cast(self, dtype: DType) -> Scalar<'p> {
        self.program.scalar(|writer| writer.cast(self.expr, dtype))
    }

    /// The intrinsic `name` of it; [`INTRINSICS`](crate::ir::INTRINSICS) lists them.
    pub fn call(self, name: &str) -> Scalar<'p> {
        self.program.scalar(|writer| writer.intrinsic(name, &[self.expr]))
    }

    /// The intrinsic `name` of it and `right`.
    pub fn call_with(self, name: &str, right: Scalar<'p>) -> Scalar<'p> {
        self.program.scalar(|writer| writer.intrinsic(name, &[self.expr, right.expr]))
    }

    /// It times `factor` plus `summand`, rounded once where the processor can.
    pub fn fma(self, factor: Scalar<'p>, summand: Scalar<'p>) -> Scalar<'p> {
        let operands = [self.expr, factor.expr, summand.expr];
        self.program.scalar(|writer| writer.intrinsic("fma", &operands))
    }
}

/// What stands right of an operator: a scalar, or a number that becomes a literal of the left dtype.
pub trait Operand<'p> {
    /// It, as it stands right of `left`.
    fn beside(self, left: Scalar<'p>) -> Scalar<'p>;
}

impl<'p> Operand<'p> for Scalar<'p> {
    fn beside(self, _left: Scalar<'p>) -> Scalar<'p> {
        self
    }
}

impl<'p> Operand<'p> for i64 {
    fn beside(self, left: Scalar<'p>) -> Scalar<'p> {
        match left.dtype() {
            dtype if dtype.is_float() => left.program.literal(dtype, self as f64),
            dtype => left.program.int(dtype, self),
        }
    }
}

impl<'p> Operand<'p> for f64 {
    fn beside(self, left: Scalar<'p>) -> Scalar<'p> {
        left.program.literal(left.dtype(), self)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:expr;)*) => {$(
        impl<'p, R: Operand<'p>> $trait<R> for Scalar<'p> {
            type Output = Scalar<'p>;
            fn $method(self, right: R) -> Scalar<'p> {
                let op: fn(Scalar<'p>) -> BinaryOp = $op;
                self.binary(op(self), right)
            }
        }
    )*};
}

operators! {
    Add add |_| BinaryOp::Add;
    Sub sub |_| BinaryOp::Sub;
    Mul mul |_| BinaryOp::Mul;
    Div div |left| if left.dtype().is_float() { BinaryOp::Div } else { BinaryOp::FloorDiv };
    Rem rem |_| BinaryOp::FloorMod;
}

/// The dtype that arithmetic on elements of `dtype` is done in: floats below f32 are widened to it.
pub fn compute_dtype(dtype: DType) -> DType {
    match dtype.is_float() && dtype.bits() < 32 {
        true => DType::F32,
        false => dtype,
    }
}
