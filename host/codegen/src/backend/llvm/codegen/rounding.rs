//! Floats to whole numbers that stay floats.

use inkwell::{
    FloatPredicate,
    values::{BasicValueEnum, InstructionOpcode as Op},
};

use super::{assembler::Assembler, error::Result};

/// To which integer a float is rounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rounding {
    Down,
    Up,
    ToZero,
    /// The nearest, of two the even one.
    ToEven,
}

impl<'cx> Assembler<'cx, '_> {
    /// The integer near `x`, as a float.
    pub(super) fn round(
        &self,
        rounding: Rounding,
        x: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        if self.target.has_rounding() {
            let name = match rounding {
                Rounding::Down => "llvm.floor",
                Rounding::Up => "llvm.ceil",
                Rounding::ToZero => "llvm.trunc",
                Rounding::ToEven => "llvm.roundeven",
            };
            return self.intrinsic(name, &[x.get_type()], &[x]);
        }
        self.round_by_adding(rounding, x)
    }

    /// Rounding for processors without an instruction for it. What is added and taken off again is
    /// so large that no fraction survives; what is larger than that has no fraction.
    fn round_by_adding(
        &self,
        rounding: Rounding,
        x: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        let limit = if self.is_double(x) { 2f64.powi(52) } else { 2f64.powi(23) };
        let limit = self.float_like(x, limit)?;
        let magnitude = self.intrinsic("llvm.fabs", &[x.get_type()], &[x])?;
        let plain = |op, a, b| self.builder.build_binop(op, a, b, "");
        let nearest = plain(Op::FSub, plain(Op::FAdd, magnitude, limit)?, limit)?;
        let sign = |value| self.intrinsic("llvm.copysign", &[x.get_type()], &[value, x]);
        let nearest = sign(nearest)?;
        let one = self.float_like(x, 1.0)?;
        let step = |predicate, op| -> Result<BasicValueEnum<'cx>> {
            let is_past = self.compare_floats(predicate, nearest, x)?;
            // The sign again, for -0.0.
            sign(self.select(is_past, plain(op, nearest, one)?, nearest)?)
        };
        let rounded = match rounding {
            Rounding::ToEven => nearest,
            Rounding::Down => step(FloatPredicate::OGT, Op::FSub)?,
            Rounding::Up => step(FloatPredicate::OLT, Op::FAdd)?,
            Rounding::ToZero => {
                let whole = sign(nearest)?;
                let size = self.intrinsic("llvm.fabs", &[x.get_type()], &[whole])?;
                let is_past = self.compare_floats(FloatPredicate::OGT, size, magnitude)?;
                sign(self.select(is_past, plain(Op::FSub, size, one)?, size)?)?
            }
        };
        let has_fraction = self.compare_floats(FloatPredicate::OLT, magnitude, limit)?;
        self.select(has_fraction, rounded, x)
    }
}
