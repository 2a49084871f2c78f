//! Values in registers: what an expression has become.
//!
//! Vectors stay symbolic while they can: lanes that are all equal are held as the one scalar, and
//! `base, base + stride, …` as its base and stride. So arithmetic on vector indices is scalar
//! arithmetic, and a load knows that its lanes lie side by side.

use inkwell::{
    context::Context,
    types::BasicTypeEnum,
    values::{BasicValueEnum, IntValue},
};

use super::{
    error::{Problem, Result},
    range::Range,
};
use tenon_ir::DType;

/// A scalar or a vector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'cx> {
    pub(super) dtype: DType,
    pub(super) lanes: u16,
    pub(super) form: Form<'cx>,
    /// Of all lanes; for integers.
    pub(super) range: Option<Range>,
}

/// How the lanes are held.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'cx> {
    /// Every lane is this scalar; the form of all scalars.
    Uniform(BasicValueEnum<'cx>),
    /// Lane `i` is `base + i * stride`.
    Ramp { base: IntValue<'cx>, stride: i64 },
    /// One LLVM vector.
    Vector(BasicValueEnum<'cx>),
}

impl<'cx> Value<'cx> {
    pub(super) fn scalar(dtype: DType, value: impl Into<BasicValueEnum<'cx>>) -> Value<'cx> {
        Value { dtype, lanes: 1, form: Form::Uniform(value.into()), range: None }
    }

    pub(super) fn with_range(self, range: Option<Range>) -> Value<'cx> {
        Value { range, ..self }
    }
}

/// What the registers of a dtype are and how they are computed with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// `i1` in registers, a byte in memory.
    Bool,
    Signed(u32),
    Unsigned(u32),
    /// 16 bits held as an integer; every operation goes through f32 and rounds back.
    F16,
    /// Likewise.
    Bf16,
    F32,
    F64,
}

impl Class {
    pub(super) fn of(dtype: DType) -> Result<Class> {
        Ok(match dtype {
            DType::BOOL => Class::Bool,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => Class::Signed(dtype.bits()),
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => Class::Unsigned(dtype.bits()),
            DType::F16 => Class::F16,
            DType::BF16 => Class::Bf16,
            DType::F32 => Class::F32,
            DType::F64 => Class::F64,
            _ => {
                let reason = "the processor code generator has no arithmetic for it";
                return Problem::unsupported(format!("dtype {dtype}"), reason);
            }
        })
    }

    /// The type of a scalar in a register.
    pub(super) fn register<'cx>(self, cx: &'cx Context) -> BasicTypeEnum<'cx> {
        match self {
            Class::Bool => cx.bool_type().into(),
            _ => self.memory(cx),
        }
    }

    /// The type of an element in memory.
    pub(super) fn memory<'cx>(self, cx: &'cx Context) -> BasicTypeEnum<'cx> {
        match self {
            Class::Bool | Class::Signed(8) | Class::Unsigned(8) => cx.i8_type().into(),
            Class::F16 | Class::Bf16 | Class::Signed(16) | Class::Unsigned(16) => {
                cx.i16_type().into()
            }
            Class::Signed(32) | Class::Unsigned(32) => cx.i32_type().into(),
            Class::Signed(_) | Class::Unsigned(_) => cx.i64_type().into(),
            Class::F32 => cx.f32_type().into(),
            Class::F64 => cx.f64_type().into(),
        }
    }

    /// Bytes of an element in memory.
    pub(super) fn bytes(self) -> u32 {
        match self {
            Class::Bool => 1,
            Class::Signed(bits) | Class::Unsigned(bits) => bits / 8,
            Class::F16 | Class::Bf16 => 2,
            Class::F32 => 4,
            Class::F64 => 8,
        }
    }

    pub(super) fn is_signed(self) -> bool {
        matches!(self, Class::Signed(_))
    }

    pub(super) fn is_integer(self) -> bool {
        matches!(self, Class::Bool | Class::Signed(_) | Class::Unsigned(_))
    }
}

/// `ty`, or the vector of `lanes` of it.
pub(super) fn with_lanes(ty: BasicTypeEnum<'_>, lanes: u16) -> BasicTypeEnum<'_> {
    match ty {
        _ if lanes <= 1 => ty,
        BasicTypeEnum::IntType(ty) => ty.vec_type(u32::from(lanes)).into(),
        BasicTypeEnum::FloatType(ty) => ty.vec_type(u32::from(lanes)).into(),
        _ => ty,
    }
}
