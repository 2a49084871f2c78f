//! Conversions between dtypes.
//!
//! Floats become integers by truncation; what is too large becomes the largest, and no number
//! becomes 0. The 16-bit floats are converted by one instruction where the processor has it, and
//! otherwise by integer arithmetic, because LLVM would call a library that is not there.

use inkwell::{
    FloatPredicate, IntPredicate,
    values::{BasicValue, BasicValueEnum, InstructionOpcode as Op},
};

use super::{
    assembler::{Assembler, lanes_of},
    error::Result,
    value::{Class, Form, Value, with_lanes},
};
use crate::target::Architecture;
use tenon_ir::DType;

impl<'cx> Assembler<'cx, '_> {
    /// `value` as `dtype`.
    pub(super) fn cast(&self, value: Value<'cx>, dtype: DType) -> Result<Value<'cx>> {
        if value.dtype == dtype {
            return Ok(value);
        }
        let (from, to) = (Class::of(value.dtype)?, Class::of(dtype)?);
        let range = value.range.filter(|range| to.is_integer() && range.fits(dtype));
        let form = match value.form {
            Form::Uniform(scalar) => Form::Uniform(self.cast_on(from, to, scalar)?),
            // Lane by lane the same, as no lane overflows.
            Form::Ramp { base, stride } if range.is_some() && to != Class::Bool => {
                let base = self.cast_on(from, to, base.into())?.into_int_value();
                Form::Ramp { base, stride }
            }
            Form::Ramp { .. } | Form::Vector(_) => {
                let vector = self.whole(value, value.lanes)?;
                Form::Vector(self.cast_on(from, to, vector)?)
            }
        };
        Ok(Value { dtype, lanes: value.lanes, form, range })
    }

    fn cast_on(
        &self,
        from: Class,
        to: Class,
        x: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        use Class::{Bf16, Bool, F16, F32, F64, Signed, Unsigned};
        match (from, to) {
            (F16 | Bf16, _) if to != from => self.cast_on(F32, to, self.widen(from, x)?),
            (F64, F16 | Bf16) => self.narrow(to, self.rounded_to_odd(x)?),
            // In bf16 there are integers between which an f32 cannot choose.
            (Signed(32 | 64) | Unsigned(32 | 64), Bf16) => {
                self.cast_on(F64, to, self.cast_on(from, F64, x)?)
            }
            (Signed(_) | Unsigned(_) | Bool, F16 | Bf16) => {
                self.narrow(to, self.cast_on(from, F32, x)?)
            }
            (F32, F16 | Bf16) => self.narrow(to, x),
            (F32, F64) => self.convert(Op::FPExt, x, to.register(self.cx)),
            (F64, F32) => self.convert(Op::FPTrunc, x, to.register(self.cx)),
            (F32 | F64, Bool) => {
                self.compare_floats(FloatPredicate::UNE, x, self.float_like(x, 0.0)?)
            }
            (F32 | F64, Signed(8 | 16) | Unsigned(8 | 16)) => self.float_to_short(to, x),
            (F32 | F64, Signed(bits) | Unsigned(bits)) => self.float_to_int(to, bits, x),
            (Signed(_) | Unsigned(_), Bool) => self.is_not_zero(x),
            (Signed(_), F32 | F64) => self.convert(Op::SIToFP, x, to.register(self.cx)),
            (Unsigned(_) | Bool, F32 | F64) => self.convert(Op::UIToFP, x, to.register(self.cx)),
            (Bool, Signed(_) | Unsigned(_)) => self.convert(Op::ZExt, x, to.register(self.cx)),
            (Signed(a) | Unsigned(a), Signed(b) | Unsigned(b)) => {
                let ty = to.register(self.cx);
                match a.cmp(&b) {
                    std::cmp::Ordering::Equal => Ok(x),
                    std::cmp::Ordering::Greater => self.convert(Op::Trunc, x, ty),
                    std::cmp::Ordering::Less => match wide_of_short(x).filter(|_| b == 32) {
                        Some(wide) => Ok(wide),
                        None if from.is_signed() => self.convert(Op::SExt, x, ty),
                        None => self.convert(Op::ZExt, x, ty),
                    },
                }
            }
            (F32, F32) | (F64, F64) | (F16, F16) | (Bf16, Bf16) | (Bool, Bool) => Ok(x),
            (F16 | Bf16, _) => Ok(x),
        }
    }

    /// A float as an integer of 8 or 16 bits. LLVM converts vectors to such lane by lane, so it is done by way of 32 bits: all bounds
    /// of these are floats, and what lies beyond them is moved to them first.
    fn float_to_short(&self, to: Class, x: BasicValueEnum<'cx>) -> Result<BasicValueEnum<'cx>> {
        let (Class::Signed(bits) | Class::Unsigned(bits)) = to else { return Ok(x) };
        let [least, largest] = match to.is_signed() {
            true => [-(1i64 << (bits - 1)), (1 << (bits - 1)) - 1],
            false => [0, (1 << bits) - 1],
        };
        let [least, largest] =
            [self.float_like(x, least as f64)?, self.float_like(x, largest as f64)?];
        // No number is not greater than the least one.
        let is_above = self.compare_floats(FloatPredicate::OGT, x, least)?;
        let above = self.select(is_above, x, least)?;
        let is_below = self.compare_floats(FloatPredicate::OLT, above, largest)?;
        let mut bounded = self.select(is_below, above, largest)?;
        if to.is_signed() {
            let is_number = self.compare_floats(FloatPredicate::ORD, x, x)?;
            bounded = self.select(is_number, bounded, self.float_like(x, 0.0)?)?;
        }
        let wide = self.convert(Op::FPToSI, bounded, Class::Signed(32).register(self.cx))?;
        self.convert(Op::Trunc, wide, to.register(self.cx))
    }

    /// A float as an integer of 32 or 64 bits. On x86 LLVM's saturating conversions of vectors go lane by lane, so there the conversion
    /// that knows no bounds is chosen where its result is one, and the bounds elsewhere; the largest of them is a float only once 1 is
    /// added. Other processors have instructions that saturate.
    fn float_to_int(
        &self,
        to: Class,
        bits: u32,
        x: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        let ty = with_lanes(to.register(self.cx), lanes_of(x));
        if lanes_of(x) == 1 || self.target.architecture() != Architecture::X86_64 {
            let name = if to.is_signed() { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
            return self.intrinsic(name, &[ty, x.get_type()], &[x]);
        }
        let (op, least, largest, below) = match to.is_signed() {
            true => (Op::FPToSI, i64::MIN >> (64 - bits), i64::MAX >> (64 - bits), bits - 1),
            // All bits of the largest one are set.
            false => (Op::FPToUI, 0, -1, bits),
        };
        let is_least = self.float_like(x, least as f64)?;
        let is_within = self.compare_floats(FloatPredicate::OGE, x, is_least)?;
        let is_beyond = self.compare_floats(
            FloatPredicate::OGE,
            x,
            self.float_like(x, 2f64.powi(below as i32))?,
        )?;
        let is_number = self.compare_floats(FloatPredicate::ORD, x, x)?;
        let [zero, least, largest] = [0, least, largest].map(|value| self.int_of(ty, value));
        let mut result = self.select(is_number, least?, zero?)?;
        result = self.select(is_within, self.convert(op, x, to.register(self.cx))?, result)?;
        self.select(is_beyond, largest?, result)
    }

    /// An f64 as the f32 that has an odd last bit unless it is exact: rounding that further rounds once.
    fn rounded_to_odd(&self, x: BasicValueEnum<'cx>) -> Result<BasicValueEnum<'cx>> {
        let (int, float) = (self.cx.i32_type().into(), self.cx.f32_type().into());
        let near = self.convert(Op::FPTrunc, x, float)?;
        let back = self.convert(Op::FPExt, near, self.cx.f64_type().into())?;
        let size = |x: BasicValueEnum<'cx>| self.intrinsic("llvm.fabs", &[x.get_type()], &[x]);
        let is_past = self.compare_floats(FloatPredicate::OGT, size(back)?, size(x)?)?;
        let is_inexact = self.compare_floats(FloatPredicate::ONE, back, x)?;
        let bits = self.convert(Op::BitCast, near, int)?;
        let bits = self.int_op(Op::Sub, bits, self.convert(Op::ZExt, is_past, int)?)?;
        let bits = self.int_op(Op::Or, bits, self.convert(Op::ZExt, is_inexact, int)?)?;
        self.convert(Op::BitCast, bits, float)
    }

    /// A 16-bit float as f32, exactly.
    pub(super) fn widen(
        &self,
        class: Class,
        x: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        let (int, float) = (self.cx.i32_type().into(), self.cx.f32_type().into());
        if class == Class::F16 && self.target.has_half() {
            let half = self.convert(Op::BitCast, x, self.cx.f16_type().into())?;
            return self.convert(Op::FPExt, half, float);
        }
        let bits = self.convert(Op::ZExt, x, int)?;
        if class == Class::Bf16 {
            let bits = self.shift(Op::Shl, bits, 16)?;
            return self.convert(Op::BitCast, bits, float);
        }
        let magnitude = self.masked(bits, 0x7fff)?;
        let sign = self.shift(Op::Shl, self.masked(bits, 0x8000)?, 16)?;
        // With the exponent where f32 has it, the value is 2^112 times too small, subnormal or not.
        let moved = self.shift(Op::Shl, magnitude, 13)?;
        let small = self.convert(Op::BitCast, moved, float)?;
        let scale = self.float_like(small, f64::from(2f32.powi(112)))?;
        let scaled = self.float_op(Op::FMul, small, scale)?;
        let finite = self.convert(Op::BitCast, scaled, int)?;
        let special = self.int_op(Op::Or, moved, self.int_like(moved, 0x7f80_0000)?)?;
        let is_special =
            self.compare_ints(IntPredicate::UGT, magnitude, self.int_like(magnitude, 0x7bff)?)?;
        let bits = self.select(is_special, special, finite)?;
        self.convert(Op::BitCast, self.int_op(Op::Or, bits, sign)?, float)
    }

    /// An f32 as a 16-bit float, the nearest, of two the even one.
    pub(super) fn narrow(
        &self,
        class: Class,
        x: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        let (int, short) = (self.cx.i32_type().into(), self.cx.i16_type().into());
        if class == Class::F16 && self.target.has_half() {
            let half = self.convert(Op::FPTrunc, x, self.cx.f16_type().into())?;
            return self.convert(Op::BitCast, half, short);
        }
        let bits = self.convert(Op::BitCast, x, int)?;
        let result = match class {
            Class::Bf16 => self.bf16_bits(bits)?,
            _ => self.f16_bits(bits)?,
        };
        self.convert(Op::Trunc, result, short)
    }

    fn bf16_bits(&self, bits: BasicValueEnum<'cx>) -> Result<BasicValueEnum<'cx>> {
        let odd = self.masked(self.shift(Op::LShr, bits, 16)?, 1)?;
        let bias = self.int_op(Op::Add, odd, self.int_like(odd, 0x7fff)?)?;
        let rounded = self.shift(Op::LShr, self.int_op(Op::Add, bits, bias)?, 16)?;
        let cut = self.shift(Op::LShr, bits, 16)?;
        let nan = self.int_op(Op::Or, cut, self.int_like(cut, 0x40)?)?;
        let magnitude = self.masked(bits, 0x7fff_ffff)?;
        let infinity = self.int_like(bits, 0x7f80_0000)?;
        let is_nan = self.compare_ints(IntPredicate::UGT, magnitude, infinity)?;
        self.select(is_nan, nan, rounded)
    }

    fn f16_bits(&self, bits: BasicValueEnum<'cx>) -> Result<BasicValueEnum<'cx>> {
        let (int, float) = (self.cx.i32_type().into(), self.cx.f32_type().into());
        let above = |x, limit| self.compare_ints(IntPredicate::UGT, x, self.int_like(x, limit)?);
        let magnitude = self.masked(bits, 0x7fff_ffff)?;
        let sign = self.masked(self.shift(Op::LShr, bits, 16)?, 0x8000)?;
        // Normal: rebias the exponent, round the thirteen bits that go.
        let odd = self.masked(self.shift(Op::LShr, magnitude, 13)?, 1)?;
        let rebias = self.int_like(magnitude, i64::from((-112i32 << 23) + 0xfff))?;
        let rounded = self.int_op(Op::Add, self.int_op(Op::Add, magnitude, rebias)?, odd)?;
        let normal = self.shift(Op::LShr, rounded, 13)?;
        // Subnormal: adding one half puts the last bit where f32 rounds.
        let half = self.convert(Op::BitCast, magnitude, float)?;
        let sum = self.float_op(Op::FAdd, half, self.float_like(half, 0.5)?)?;
        let sum = self.convert(Op::BitCast, sum, int)?;
        let subnormal =
            self.int_op(Op::Sub, sum, self.int_like(sum, i64::from(0.5f32.to_bits()))?)?;
        let is_normal = above(magnitude, 0x387f_ffff)?;
        let finite = self.select(is_normal, normal, subnormal)?;
        // 65520 and above round to infinity, as does infinity itself.
        let infinity = self.int_like(magnitude, 0x7c00)?;
        let finite = self.select(above(magnitude, 0x477f_efff)?, infinity, finite)?;
        let nan = self.int_like(magnitude, 0x7e00)?;
        let result = self.select(above(magnitude, 0x7f80_0000)?, nan, finite)?;
        self.int_op(Op::Or, result, sign)
    }

    fn shift(&self, op: Op, x: BasicValueEnum<'cx>, by: i64) -> Result<BasicValueEnum<'cx>> {
        self.int_op(op, x, self.int_like(x, by)?)
    }

    fn masked(&self, x: BasicValueEnum<'cx>, mask: i64) -> Result<BasicValueEnum<'cx>> {
        self.int_op(Op::And, x, self.int_like(x, mask)?)
    }
}

/// The 32 bits that a float became on its way to 8 or 16, as `float_to_short` makes them: nothing else cuts off what a float has become.
fn wide_of_short(x: BasicValueEnum<'_>) -> Option<BasicValueEnum<'_>> {
    let short = x.as_instruction_value().filter(|short| short.get_opcode() == Op::Trunc)?;
    let wide = short.get_operand(0)?.value()?;
    let instruction = wide.as_instruction_value()?;
    (instruction.get_opcode() == Op::FPToSI).then_some(wide)
}
