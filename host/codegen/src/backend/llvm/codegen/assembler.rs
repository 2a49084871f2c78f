//! Instructions, for scalars and vectors alike.
//!
//! inkwell has a method per instruction and Rust type; here an instruction takes whatever both of
//! its operands are, which must be the same. The builder's position is the caller's business.

use inkwell::{
    FloatPredicate, IntPredicate,
    builder::Builder,
    context::Context,
    intrinsics::Intrinsic,
    module::Module,
    types::{BasicTypeEnum, IntType, VectorType},
    values::{
        BasicMetadataValueEnum, BasicValue, BasicValueEnum, InstructionOpcode, IntValue,
        PointerValue, VectorValue,
    },
};

use super::{
    error::{Problem, Result},
    taking::address_type,
    value::with_lanes,
};
use crate::target::Target;

/// A builder that knows its module and its target.
pub(super) struct Assembler<'cx, 'a> {
    pub(super) cx: &'cx Context,
    pub(super) module: &'a Module<'cx>,
    pub(super) builder: Builder<'cx>,
    pub(super) target: &'a Target,
    /// The lanes that run, where an `if` around may leave out any.
    pub(super) mask: Option<VectorValue<'cx>>,
}

impl<'cx> Assembler<'cx, '_> {
    /// Numbers as wide as an address.
    pub(super) fn address_type(&self) -> IntType<'cx> {
        address_type(self.cx, self.target)
    }

    /// An index: i64.
    pub(super) fn index(&self, value: i64) -> IntValue<'cx> {
        self.cx.i64_type().const_int(value as u64, true)
    }

    /// An integer, or a vector of equal ones, of the type of `like`.
    pub(super) fn int_like(
        &self,
        like: BasicValueEnum<'cx>,
        value: i64,
    ) -> Result<BasicValueEnum<'cx>> {
        self.int_of(like.get_type(), value)
    }

    /// An integer, or a vector of equal ones, of type `ty`.
    pub(super) fn int_of(&self, ty: BasicTypeEnum<'cx>, value: i64) -> Result<BasicValueEnum<'cx>> {
        match ty {
            BasicTypeEnum::IntType(ty) => Ok(ty.const_int(value as u64, true).into()),
            BasicTypeEnum::VectorType(ty) => {
                let lane = self.int_of(ty.get_element_type(), value)?;
                Ok(constant_splat(lane, ty))
            }
            _ => Problem::malformed("an integer is needed where there is none"),
        }
    }

    /// A float, or a vector of equal ones, of the type of `like`.
    pub(super) fn float_like(
        &self,
        like: BasicValueEnum<'cx>,
        value: f64,
    ) -> Result<BasicValueEnum<'cx>> {
        self.float_of(like.get_type(), value)
    }

    /// A float, or a vector of equal ones, of type `ty`.
    pub(super) fn float_of(
        &self,
        ty: BasicTypeEnum<'cx>,
        value: f64,
    ) -> Result<BasicValueEnum<'cx>> {
        match ty {
            BasicTypeEnum::FloatType(ty) => Ok(ty.const_float(value).into()),
            BasicTypeEnum::VectorType(ty) => {
                let lane = self.float_of(ty.get_element_type(), value)?;
                Ok(constant_splat(lane, ty))
            }
            _ => Problem::malformed("a float is needed where there is none"),
        }
    }

    /// An integer instruction of two operands.
    pub(super) fn int_op(
        &self,
        op: InstructionOpcode,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        same_type(x, y)?;
        Ok(self.builder.build_binop(op, x, y, "")?)
    }

    /// An integer instruction that is known not to overflow.
    pub(super) fn exact_int_op(
        &self,
        op: InstructionOpcode,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        let value = self.int_op(op, x, y)?;
        if let Some(instruction) = value.as_instruction_value() {
            // Fails for instructions that cannot overflow in the first place.
            let _ = instruction.set_no_signed_wrap_flag(true);
        }
        Ok(value)
    }

    /// A float instruction of two operands, rounded as it is written.
    pub(super) fn float_op(
        &self,
        op: InstructionOpcode,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        same_type(x, y)?;
        Ok(self.builder.build_binop(op, x, y, "")?)
    }

    /// A conversion to the scalar type `ty` with the lanes of `x`.
    pub(super) fn convert(
        &self,
        op: InstructionOpcode,
        x: BasicValueEnum<'cx>,
        ty: BasicTypeEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        let ty = with_lanes(ty, lanes_of(x));
        Ok(self.builder.build_cast(op, x, ty, "")?)
    }

    pub(super) fn compare_ints(
        &self,
        predicate: IntPredicate,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        use BasicValueEnum::{IntValue, VectorValue};
        same_type(x, y)?;
        match (x, y) {
            (IntValue(x), IntValue(y)) => {
                Ok(self.builder.build_int_compare(predicate, x, y, "")?.into())
            }
            (VectorValue(x), VectorValue(y)) => {
                Ok(self.builder.build_int_compare(predicate, x, y, "")?.into())
            }
            _ => Problem::malformed("integers are compared that are none"),
        }
    }

    pub(super) fn compare_floats(
        &self,
        predicate: FloatPredicate,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        use BasicValueEnum::{FloatValue, VectorValue};
        same_type(x, y)?;
        match (x, y) {
            (FloatValue(x), FloatValue(y)) => {
                Ok(self.builder.build_float_compare(predicate, x, y, "")?.into())
            }
            (VectorValue(x), VectorValue(y)) => {
                Ok(self.builder.build_float_compare(predicate, x, y, "")?.into())
            }
            _ => Problem::malformed("floats are compared that are none"),
        }
    }

    /// `cond ? x : y`, lane by lane; a scalar condition chooses whole vectors.
    pub(super) fn select(
        &self,
        cond: BasicValueEnum<'cx>,
        x: BasicValueEnum<'cx>,
        y: BasicValueEnum<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        same_type(x, y)?;
        match cond {
            BasicValueEnum::IntValue(cond) => Ok(self.builder.build_select(cond, x, y, "")?),
            BasicValueEnum::VectorValue(cond) => Ok(self.builder.build_select(cond, x, y, "")?),
            _ => Problem::malformed("a condition is not a truth value"),
        }
    }

    /// A call of LLVM's intrinsic `name`, overloaded on the types in `overload`.
    pub(super) fn intrinsic(
        &self,
        name: &'static str,
        overload: &[BasicTypeEnum<'cx>],
        args: &[BasicValueEnum<'cx>],
    ) -> Result<BasicValueEnum<'cx>> {
        let declared = Intrinsic::find(name)
            .and_then(|intrinsic| intrinsic.get_declaration(self.module, overload));
        let Some(func) = declared else {
            return Problem::unsupported(format!("`{name}`"), "LLVM does not have it");
        };
        let args: Vec<BasicMetadataValueEnum<'cx>> = args.iter().map(|&arg| arg.into()).collect();
        let call = self.builder.build_call(func, &args, "")?;
        match call.try_as_basic_value().basic() {
            Some(value) => Ok(value),
            None => Problem::malformed(format!("`{name}` has no value")),
        }
    }

    /// Whether it is an f64, or a vector of them.
    pub(super) fn is_double(&self, value: BasicValueEnum<'cx>) -> bool {
        let f64 = self.cx.f64_type();
        match value {
            BasicValueEnum::FloatValue(value) => value.get_type() == f64,
            BasicValueEnum::VectorValue(value) => value.get_type().get_element_type() == f64.into(),
            _ => false,
        }
    }

    /// A vector of `lanes` lanes, all of them `value`.
    pub(super) fn splat(
        &self,
        value: BasicValueEnum<'cx>,
        lanes: u16,
    ) -> Result<BasicValueEnum<'cx>> {
        if lanes <= 1 {
            return Ok(value);
        }
        let BasicTypeEnum::VectorType(ty) = with_lanes(value.get_type(), lanes) else {
            return Problem::malformed("a vector of something that is no scalar");
        };
        if is_constant(value) {
            return Ok(constant_splat(value, ty));
        }
        let first = self.cx.i32_type().const_zero();
        let one = self.builder.build_insert_element(ty.get_poison(), value, first, "")?;
        let mask = self.cx.i32_type().vec_type(u32::from(lanes)).const_zero();
        Ok(self.builder.build_shuffle_vector(one, ty.get_poison(), mask, "")?.into())
    }

    /// Lane `lane` of a vector.
    pub(super) fn lane(&self, vector: VectorValue<'cx>, lane: u16) -> Result<BasicValueEnum<'cx>> {
        let lane = self.cx.i32_type().const_int(u64::from(lane), false);
        Ok(self.builder.build_extract_element(vector, lane, "")?)
    }

    /// The lanes of `a` and then of `b` that `lanes` names.
    pub(super) fn shuffle(
        &self,
        a: VectorValue<'cx>,
        b: VectorValue<'cx>,
        lanes: impl Iterator<Item = u64>,
    ) -> Result<VectorValue<'cx>> {
        let int = self.cx.i32_type();
        let mask: Vec<IntValue<'cx>> = lanes.map(|lane| int.const_int(lane, false)).collect();
        Ok(self.builder.build_shuffle_vector(a, b, VectorType::const_vector(&mask), "")?)
    }

    /// The address of element `offset` behind `base`.
    pub(super) fn element(
        &self,
        base: PointerValue<'cx>,
        ty: BasicTypeEnum<'cx>,
        offset: IntValue<'cx>,
    ) -> Result<PointerValue<'cx>> {
        if offset.get_zero_extended_constant() == Some(0) {
            return Ok(base);
        }
        // SAFETY: nothing is read or written here, an instruction is added. That the address it
        // computes lies in the buffer is what a tensor program promises of its indices, and the
        // module's verifier checks the types.
        Ok(unsafe { self.builder.build_in_bounds_gep(ty, base, &[offset], "")? })
    }

    /// The address of what would be element `offset` behind `base`, which may be none.
    pub(super) fn element_anywhere(
        &self,
        base: PointerValue<'cx>,
        ty: BasicTypeEnum<'cx>,
        offset: IntValue<'cx>,
    ) -> Result<PointerValue<'cx>> {
        // SAFETY: nothing is read or written here, an instruction is added. It may compute any address, and the module's
        // verifier checks the types.
        Ok(unsafe { self.builder.build_gep(ty, base, &[offset], "")? })
    }

    pub(super) fn load(
        &self,
        ty: BasicTypeEnum<'cx>,
        place: PointerValue<'cx>,
        align: u32,
    ) -> Result<BasicValueEnum<'cx>> {
        let value = self.builder.build_load(ty, place, "")?;
        set_alignment(value.as_instruction_value(), align)?;
        Ok(value)
    }

    pub(super) fn store(
        &self,
        place: PointerValue<'cx>,
        value: BasicValueEnum<'cx>,
        align: u32,
    ) -> Result<()> {
        let instruction = self.builder.build_store(place, value)?;
        set_alignment(Some(instruction), align)
    }
}

fn set_alignment(
    instruction: Option<inkwell::values::InstructionValue<'_>>,
    align: u32,
) -> Result<()> {
    match instruction.map(|instruction| instruction.set_alignment(align)) {
        Some(Ok(())) | None => Ok(()),
        Some(Err(error)) => Problem::malformed(error.to_string()),
    }
}

pub(super) fn lanes_of(value: BasicValueEnum<'_>) -> u16 {
    match value {
        // Vectors are made from 16-bit lane counts only.
        BasicValueEnum::VectorValue(vector) => vector.get_type().get_size() as u16,
        _ => 1,
    }
}

fn is_constant(value: BasicValueEnum<'_>) -> bool {
    match value {
        BasicValueEnum::IntValue(value) => value.is_const(),
        BasicValueEnum::FloatValue(value) => value.is_const(),
        _ => false,
    }
}

fn constant_splat<'cx>(lane: BasicValueEnum<'cx>, ty: VectorType<'cx>) -> BasicValueEnum<'cx> {
    VectorType::const_vector(&vec![lane; ty.get_size() as usize]).into()
}

/// LLVM takes the types of operands on trust.
fn same_type(x: BasicValueEnum<'_>, y: BasicValueEnum<'_>) -> Result<()> {
    if x.get_type() == y.get_type() {
        return Ok(());
    }
    let (x, y) = (x.get_type().print_to_string(), y.get_type().print_to_string());
    Problem::malformed(format!("an operation on {} and {}", x.to_string(), y.to_string()))
}
