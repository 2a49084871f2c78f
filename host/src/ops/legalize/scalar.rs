//! Scalar expressions with operators.

use std::ops::{Add, Div, Mul, Rem, Sub};

use crate::ir::{BinaryOp, Build, BuildPrim, DType, Expr};

use super::kernel::Kernel;

/// A scalar expression of a program. It may be used several times; each use evaluates it again.
#[derive(Clone, Copy)]
pub(super) struct Scalar<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) expr: Expr,
}

impl<'k> Scalar<'k> {
    /// The program it belongs to.
    pub(super) fn kernel(self) -> &'k Kernel {
        self.kernel
    }

    /// Its element type.
    pub(super) fn dtype(self) -> DType {
        let tx = self.kernel.tx.borrow();
        tx.body().scalar_ty(self.expr).map_or(DType::I64, |(dtype, _)| dtype)
    }

    /// `self op right`. Of the operators, `/` and `%` round down on integers.
    pub(super) fn binary(self, op: BinaryOp, right: impl Operand<'k>) -> Scalar<'k> {
        let right = right.beside(self);
        debug_assert_eq!(self.dtype(), right.dtype(), "operands of {}", op.text());
        self.kernel.scalar(|tx| tx.binary(op, self.expr, right.expr))
    }

    /// The smaller of two.
    pub(super) fn min(self, right: impl Operand<'k>) -> Scalar<'k> {
        self.binary(BinaryOp::Min, right)
    }

    /// The larger of two.
    pub(super) fn max(self, right: impl Operand<'k>) -> Scalar<'k> {
        self.binary(BinaryOp::Max, right)
    }

    /// Whether it is smaller.
    pub(super) fn lt(self, right: impl Operand<'k>) -> Scalar<'k> {
        self.binary(BinaryOp::Lt, right)
    }

    /// Whether it is larger or equal.
    pub(super) fn ge(self, right: impl Operand<'k>) -> Scalar<'k> {
        self.binary(BinaryOp::Ge, right)
    }

    /// Whether it is larger.
    pub(super) fn gt(self, right: impl Operand<'k>) -> Scalar<'k> {
        self.binary(BinaryOp::Gt, right)
    }

    /// Whether both are true.
    pub(super) fn and(self, right: Scalar<'k>) -> Scalar<'k> {
        self.binary(BinaryOp::And, right)
    }

    /// `then` where this is true, `otherwise` elsewhere; both are evaluated.
    pub(super) fn select(self, then: Scalar<'k>, otherwise: Scalar<'k>) -> Scalar<'k> {
        self.kernel.scalar(|tx| tx.select(self.expr, then.expr, otherwise.expr))
    }

    /// Conversion to `dtype`.
    pub(super) fn cast(self, dtype: DType) -> Scalar<'k> {
        self.kernel.scalar(|tx| tx.cast(self.expr, dtype))
    }

    /// The intrinsic `name` of it.
    pub(super) fn call(self, name: &str) -> Scalar<'k> {
        self.kernel.scalar(|tx| tx.intrinsic(name, &[self.expr]))
    }

    /// The intrinsic `name` of it and `right`.
    pub(super) fn call_with(self, name: &str, right: Scalar<'k>) -> Scalar<'k> {
        self.kernel.scalar(|tx| tx.intrinsic(name, &[self.expr, right.expr]))
    }
}

/// What stands right of an operator: a scalar, or a number that becomes a literal of the left dtype.
pub(super) trait Operand<'k> {
    fn beside(self, left: Scalar<'k>) -> Scalar<'k>;
}

impl<'k> Operand<'k> for Scalar<'k> {
    fn beside(self, _left: Scalar<'k>) -> Scalar<'k> {
        self
    }
}

impl<'k> Operand<'k> for i64 {
    fn beside(self, left: Scalar<'k>) -> Scalar<'k> {
        match left.dtype() {
            dtype if dtype.is_float() => left.kernel.literal(dtype, self as f64),
            dtype => left.kernel.int(dtype, self),
        }
    }
}

impl<'k> Operand<'k> for f64 {
    fn beside(self, left: Scalar<'k>) -> Scalar<'k> {
        left.kernel.literal(left.dtype(), self)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:expr;)*) => {$(
        impl<'k, R: Operand<'k>> $trait<R> for Scalar<'k> {
            type Output = Scalar<'k>;
            fn $method(self, right: R) -> Scalar<'k> {
                let op: fn(Scalar<'k>) -> BinaryOp = $op;
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

/// The dtype that arithmetic on elements of `dtype` is done in: floats below f32 are widened.
pub(super) fn compute_dtype(dtype: DType) -> DType {
    match dtype.is_float() && dtype.bits() < 32 {
        true => DType::F32,
        false => dtype,
    }
}

/// The least value of a dtype.
pub(super) fn lowest(kernel: &Kernel, dtype: DType) -> Scalar<'_> {
    kernel.literal(dtype, f64::NEG_INFINITY)
}

/// The greatest value of a dtype.
pub(super) fn highest(kernel: &Kernel, dtype: DType) -> Scalar<'_> {
    kernel.literal(dtype, f64::INFINITY)
}

/// The smallest and the largest value of an integer dtype or bool; those of u64 end where i64 does.
pub(super) fn int_bounds(dtype: DType) -> (i64, i64) {
    let bits = dtype.bits().min(64);
    match dtype.is_signed() {
        _ if dtype.is_bool() => (0, 1),
        true if bits == 64 => (i64::MIN, i64::MAX),
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false if bits == 64 => (0, i64::MAX),
        false => (0, (1 << bits) - 1),
    }
}
