//! The binary operations of tensor programs.
//!
//! Integers wrap, except where their range shows that they cannot. Division by zero gives some
//! value and never a trap. `//` and `%` round down; of something that is never negative they are
//! the processor's own.
//!
//! The larger of two floats is no number where one of them is none. Of zeros with different signs it is
//! either, so that with a literal it is one instruction on processors whose maximum gives its second operand.
//!
//! LLVM is told nothing that would let it fuse or reorder floats. What is contracted is decided by expression,
//! and of f32 and f64 alone; operations on 16-bit floats are those of f32, each of them rounded.

use inkwell::{
    FloatPredicate, IntPredicate,
    values::{BasicValue, BasicValueEnum, FastMathFlags, InstructionOpcode as Op},
};

use super::{
    assembler::Assembler,
    error::{Problem, Result},
    range::{self, Range},
    rounding::Rounding,
    value::{Class, Form, Value},
};
use tenon_ir::{BinaryOp, DType};

/// What is known about the operands and the result of an operation on integers.
#[derive(Clone, Copy, Default)]
struct Facts {
    a: Option<Range>,
    b: Option<Range>,
    result: Option<Range>,
}

impl<'cx> Assembler<'cx, '_> {
    /// `a op b`.
    pub(super) fn binary(&self, op: BinaryOp, a: Value<'cx>, b: Value<'cx>) -> Result<Value<'cx>> {
        if a.dtype != b.dtype {
            let text = op.text();
            return Problem::malformed(format!("`{text}` of {} and {}", a.dtype, b.dtype));
        }
        let class = Class::of(a.dtype)?;
        let lanes = common_lanes(&[a, b])?;
        let dtype = if op.is_comparison() { DType::BOOL } else { a.dtype };
        let range = if class.is_integer() && !op.is_comparison() {
            range::of_binary(op, dtype, a.range, b.range)
        } else {
            None
        };
        let facts = Facts { a: a.range, b: b.range, result: range };
        if let Some(form) = self.ramp_arithmetic(op, a, b)? {
            return Ok(Value { dtype, lanes, form, range });
        }
        let form = match (a.form, b.form) {
            (Form::Uniform(x), Form::Uniform(y)) => {
                Form::Uniform(self.binary_on(op, class, x, y, facts)?)
            }
            _ => {
                let (x, y) = (self.whole(a, lanes)?, self.whole(b, lanes)?);
                Form::Vector(self.binary_on(op, class, x, y, facts)?)
            }
        };
        Ok(Value { dtype, lanes, form, range })
    }

    /// Sums and multiples of ramps are ramps.
    fn ramp_arithmetic(
        &self,
        op: BinaryOp,
        a: Value<'cx>,
        b: Value<'cx>,
    ) -> Result<Option<Form<'cx>>> {
        let is_uniform = |value: Value<'cx>| matches!(value.form, Form::Uniform(_));
        if is_uniform(a) && is_uniform(b) {
            return Ok(None);
        }
        let (Some((x, s)), Some((y, t))) = (as_ramp(a), as_ramp(b)) else { return Ok(None) };
        let factor = |value: Value<'cx>| value.range.filter(|_| is_uniform(value))?.value();
        let (opcode, stride) = match op {
            BinaryOp::Add => (Op::Add, s.checked_add(t)),
            BinaryOp::Sub => (Op::Sub, s.checked_sub(t)),
            BinaryOp::Mul => {
                let stride = factor(b)
                    .and_then(|by| s.checked_mul(by))
                    .or_else(|| factor(a).and_then(|by| t.checked_mul(by)));
                (Op::Mul, stride)
            }
            _ => return Ok(None),
        };
        let Some(stride) = stride else { return Ok(None) };
        let base = self.int_op(opcode, x.into(), y.into())?.into_int_value();
        Ok(Some(Form::Ramp { base, stride }))
    }

    fn binary_on(
        &self,
        op: BinaryOp,
        class: Class,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
        facts: Facts,
    ) -> Result<BasicValueEnum<'cx>> {
        match class {
            Class::Bool => self.binary_on_bools(op, x, y),
            Class::Signed(_) | Class::Unsigned(_) => self.binary_on_ints(op, class, x, y, facts),
            Class::F32 | Class::F64 => self.binary_on_floats(op, x, y),
            Class::F16 | Class::Bf16 => {
                let (x, y) = (self.widen(class, x)?, self.widen(class, y)?);
                let result = self.binary_on_floats(op, x, y)?;
                if op.is_comparison() { Ok(result) } else { self.narrow(class, result) }
            }
        }
    }

    fn binary_on_bools(
        &self,
        op: BinaryOp,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        match op {
            BinaryOp::And | BinaryOp::Min | BinaryOp::Mul => self.int_op(Op::And, x, y),
            BinaryOp::Or | BinaryOp::Max | BinaryOp::Add => self.int_op(Op::Or, x, y),
            BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge => self.compare_ints(int_predicate(op, false), x, y),
            BinaryOp::Sub | BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::FloorMod => {
                Problem::malformed(format!("`{}` of truth values", op.text()))
            }
        }
    }

    fn binary_on_ints(
        &self,
        op: BinaryOp,
        class: Class,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
        facts: Facts,
    ) -> Result<BasicValueEnum<'cx>> {
        let signed = class.is_signed();
        let wrapping = |opcode| match facts.result {
            Some(_) if signed => self.exact_int_op(opcode, x, y),
            _ => self.int_op(opcode, x, y),
        };
        match op {
            BinaryOp::Add => wrapping(Op::Add),
            BinaryOp::Sub => wrapping(Op::Sub),
            BinaryOp::Mul => wrapping(Op::Mul),
            BinaryOp::Div => self.divide(class, x, y, facts),
            BinaryOp::FloorDiv => self.floor_divide(class, x, y, facts),
            BinaryOp::FloorMod => self.floor_modulo(class, x, y, facts),
            BinaryOp::Min | BinaryOp::Max => {
                let name = match (op, signed) {
                    (BinaryOp::Min, true) => "llvm.smin",
                    (BinaryOp::Min, false) => "llvm.umin",
                    (_, true) => "llvm.smax",
                    (_, false) => "llvm.umax",
                };
                self.intrinsic(name, &[x.get_type()], &[x, y])
            }
            BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge => self.compare_ints(int_predicate(op, signed), x, y),
            BinaryOp::And | BinaryOp::Or => {
                let (p, q) = (self.is_not_zero(x)?, self.is_not_zero(y)?);
                let opcode = if op == BinaryOp::And { Op::And } else { Op::Or };
                let both = self.int_op(opcode, p, q)?;
                self.convert(Op::ZExt, both, scalar_type(x))
            }
        }
    }

    /// Truncating division that does not trap.
    fn divide(
        &self,
        class: Class,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
        facts: Facts,
    ) -> Result<BasicValueEnum<'cx>> {
        let divisor = facts.b.filter(|b| b.low > 0 || b.high < -1);
        if !class.is_signed() || facts.a.is_some_and(Range::is_never_negative) {
            let y = if divisor.is_some_and(|b| b.low > 0) { y } else { self.not_zero(y)? };
            let unsigned = !class.is_signed() || facts.b.is_some_and(Range::is_never_negative);
            return self.int_op(if unsigned { Op::UDiv } else { Op::SDiv }, x, y);
        }
        if divisor.is_some() {
            return self.int_op(Op::SDiv, x, y);
        }
        // The smallest integer divided by -1 overflows, which traps on some processors.
        let minus_one = self.int_like(y, -1)?;
        let is_minus_one = self.compare_ints(IntPredicate::EQ, y, minus_one)?;
        let safe = self.select(is_minus_one, self.int_like(y, 1)?, y)?;
        let quotient = self.int_op(Op::SDiv, x, self.not_zero(safe)?)?;
        let negative = self.int_op(Op::Sub, self.int_like(x, 0)?, x)?;
        self.select(is_minus_one, negative, quotient)
    }

    fn floor_divide(
        &self,
        class: Class,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
        facts: Facts,
    ) -> Result<BasicValueEnum<'cx>> {
        if !rounds_differently(class, facts) {
            return self.divide(class, x, y, facts);
        }
        if let Some(shift) = power_of_two(facts.b) {
            return self.int_op(Op::AShr, x, self.int_like(x, i64::from(shift))?);
        }
        let quotient = self.divide(class, x, y, facts)?;
        let (_, is_off) = self.remainder(x, y, quotient)?;
        let one = self.convert(Op::ZExt, is_off, scalar_type(x))?;
        self.int_op(Op::Sub, quotient, one)
    }

    fn floor_modulo(
        &self,
        class: Class,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
        facts: Facts,
    ) -> Result<BasicValueEnum<'cx>> {
        if let Some(shift) = power_of_two(facts.b) {
            return self.int_op(Op::And, x, self.int_like(x, (1 << shift) - 1)?);
        }
        if !rounds_differently(class, facts) {
            let is_safe = facts.b.is_some_and(|b| b.low > 0);
            return self.int_op(Op::URem, x, if is_safe { y } else { self.not_zero(y)? });
        }
        let quotient = self.divide(class, x, y, facts)?;
        let (remainder, is_off) = self.remainder(x, y, quotient)?;
        let corrected = self.int_op(Op::Add, remainder, y)?;
        self.select(is_off, corrected, remainder)
    }

    /// The remainder of a truncated quotient, and whether rounding down gives another.
    fn remainder(
        &self,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
        quotient: BasicValueEnum<'cx>,
    ) -> Result<(BasicValueEnum<'cx>, BasicValueEnum<'cx>)> {
        let product = self.int_op(Op::Mul, quotient, y)?;
        let remainder = self.int_op(Op::Sub, x, product)?;
        let zero = self.int_like(x, 0)?;
        let signs = self.int_op(Op::Xor, remainder, y)?;
        let differ = self.compare_ints(IntPredicate::SLT, signs, zero)?;
        let is_off = self.int_op(Op::And, self.is_not_zero(remainder)?, differ)?;
        Ok((remainder, is_off))
    }

    /// `y`, or 1 where it is 0.
    fn not_zero(&self, y: BasicValueEnum<'cx>) -> Result<BasicValueEnum<'cx>> {
        self.select(self.is_not_zero(y)?, y, self.int_like(y, 1)?)
    }

    pub(super) fn is_not_zero(&self, x: BasicValueEnum<'cx>) -> Result<BasicValueEnum<'cx>> {
        self.compare_ints(IntPredicate::NE, x, self.int_like(x, 0)?)
    }

    pub(super) fn binary_on_floats(
        &self,
        op: BinaryOp,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        match op {
            BinaryOp::Add => self.float_op(Op::FAdd, x, y),
            BinaryOp::Sub => self.float_op(Op::FSub, x, y),
            BinaryOp::Mul => self.float_op(Op::FMul, x, y),
            BinaryOp::Div => self.float_op(Op::FDiv, x, y),
            BinaryOp::FloorDiv => {
                let quotient = self.float_op(Op::FDiv, x, y)?;
                self.round(Rounding::Down, quotient)
            }
            BinaryOp::FloorMod => {
                let whole = self.binary_on_floats(BinaryOp::FloorDiv, x, y)?;
                let product = self.float_op(Op::FMul, whole, y)?;
                self.float_op(Op::FSub, x, product)
            }
            BinaryOp::Min => self.extreme("llvm.minimum", x, y),
            BinaryOp::Max => self.extreme("llvm.maximum", x, y),
            BinaryOp::Eq => self.compare_floats(FloatPredicate::OEQ, x, y),
            BinaryOp::Ne => self.compare_floats(FloatPredicate::UNE, x, y),
            BinaryOp::Lt => self.compare_floats(FloatPredicate::OLT, x, y),
            BinaryOp::Le => self.compare_floats(FloatPredicate::OLE, x, y),
            BinaryOp::Gt => self.compare_floats(FloatPredicate::OGT, x, y),
            BinaryOp::Ge => self.compare_floats(FloatPredicate::OGE, x, y),
            BinaryOp::And | BinaryOp::Or => {
                Problem::malformed(format!("`{}` of floats", op.text()))
            }
        }
    }

    /// The larger or the smaller of two floats, by LLVM's name for it.
    fn extreme(
        &self,
        name: &'static str,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        let value = self.intrinsic(name, &[x.get_type()], &[x, y])?;
        if let Some(instruction) = value.as_instruction_value() {
            // Fails for what is no operation on floats, which this is.
            let _ = instruction.set_fast_math_flags(FastMathFlags::NoSignedZeros);
        }
        Ok(value)
    }

    /// The value as one LLVM value of `lanes` lanes.
    pub(super) fn whole(&self, value: Value<'cx>, lanes: u16) -> Result<BasicValueEnum<'cx>> {
        match value.form {
            Form::Uniform(scalar) => self.splat(scalar, lanes),
            Form::Vector(vector) => Ok(vector),
            Form::Ramp { base, stride } => {
                let int = base.get_type();
                let steps: Vec<_> = (0..i64::from(lanes))
                    .map(|lane| int.const_int(lane.wrapping_mul(stride) as u64, true))
                    .collect();
                let steps = inkwell::types::VectorType::const_vector(&steps);
                self.int_op(Op::Add, self.splat(base.into(), lanes)?, steps.into())
            }
        }
    }
}

/// The lanes of an operation on `values`: vectors must agree, scalars are taken for every lane.
pub(super) fn common_lanes(values: &[Value<'_>]) -> Result<u16> {
    let lanes = values.iter().map(|value| value.lanes).max().unwrap_or(1);
    if values.iter().all(|value| value.lanes == lanes || value.lanes == 1) {
        return Ok(lanes);
    }
    let all: Vec<String> = values.iter().map(|value| value.lanes.to_string()).collect();
    Problem::malformed(format!("an operation on vectors of {} lanes", all.join(" and ")))
}

/// An integer value as base and stride.
pub(super) fn as_ramp<'cx>(value: Value<'cx>) -> Option<(inkwell::values::IntValue<'cx>, i64)> {
    match value.form {
        Form::Uniform(BasicValueEnum::IntValue(base)) => Some((base, 0)),
        Form::Ramp { base, stride } => Some((base, stride)),
        Form::Uniform(_) | Form::Vector(_) => None,
    }
}

fn scalar_type(value: BasicValueEnum<'_>) -> inkwell::types::BasicTypeEnum<'_> {
    match value.get_type() {
        inkwell::types::BasicTypeEnum::VectorType(ty) => ty.get_element_type(),
        ty => ty,
    }
}

/// Whether rounding down and truncating may differ.
fn rounds_differently(class: Class, facts: Facts) -> bool {
    let never_negative = |range: Option<Range>| range.is_some_and(Range::is_never_negative);
    class.is_signed() && !(never_negative(facts.a) && never_negative(facts.b))
}

fn power_of_two(range: Option<Range>) -> Option<u32> {
    let value = range?.value()?;
    (value > 0 && value.count_ones() == 1).then(|| value.trailing_zeros())
}

fn int_predicate(op: BinaryOp, signed: bool) -> IntPredicate {
    match (op, signed) {
        (BinaryOp::Ne, _) => IntPredicate::NE,
        (BinaryOp::Lt, true) => IntPredicate::SLT,
        (BinaryOp::Lt, false) => IntPredicate::ULT,
        (BinaryOp::Le, true) => IntPredicate::SLE,
        (BinaryOp::Le, false) => IntPredicate::ULE,
        (BinaryOp::Gt, true) => IntPredicate::SGT,
        (BinaryOp::Gt, false) => IntPredicate::UGT,
        (BinaryOp::Ge, true) => IntPredicate::SGE,
        (BinaryOp::Ge, false) => IntPredicate::UGE,
        _ => IntPredicate::EQ,
    }
}
