//! Statements under an `if` whose condition is a vector: lanes for which it is false read and write nothing.
//!
//! ```text
//! if ramp(i*16, 1, 16) < broadcast(197, 16) {      all lanes are true: load, fmul, store
//!   y[ramp(…)] = x[ramp(…)]*broadcast(2.0, 16)      any lane is true: llvm.masked.load, fmul, llvm.masked.store
//! }
//! ```
//!
//! The code is there twice, since most steps of a loop leave nothing out. A vector of a buffer on the stack is read and written whole,
//! with what it was in lanes that are left out, so that accumulators stay in registers.
//! What a lane that is left out has read is zero. Elements that lie apart are read from where the buffer begins in such lanes,
//! which is there when any lane has an element, and are written under a branch each.

use inkwell::{
    IntPredicate,
    attributes::AttributeLoc,
    intrinsics::Intrinsic,
    types::BasicTypeEnum,
    values::{
        BasicMetadataValueEnum, BasicValueEnum, CallSiteValue, InstructionOpcode as Op, IntValue,
        VectorValue,
    },
};

use super::{
    access::Buffer,
    assembler::{Assembler, lanes_of},
    error::{Problem, Result},
    statement::{Emitter, Task},
    value::{Class, Value, with_lanes},
};
use tenon_ir::{DType, Expr};

impl<'cx> Emitter<'cx, '_> {
    /// Runs `then` when any lane of a condition is true, with the others left out; as it is when all are.
    pub(super) fn masked_branch(
        &mut self,
        cond: Value<'cx>,
        then: Expr,
        otherwise: Option<Expr>,
    ) -> Result<()> {
        if otherwise.is_some() {
            return Problem::malformed("a condition of several lanes has two branches");
        }
        let cond = self.asm.cast(cond, DType::BOOL)?;
        let mask = self.asm.whole(cond, cond.lanes)?;
        if let Some(outer) = self.asm.mask {
            let mask = self.asm.int_op(Op::And, outer.into(), mask)?;
            return self.begin_mask(mask.into_vector_value(), then);
        }
        let mask = mask.into_vector_value();
        let bits = self.asm.bits(mask)?;
        let all = bits.get_type().const_all_ones();
        let all = self.asm.builder.build_int_compare(IntPredicate::EQ, bits, all, "")?;
        let [whole, part, after] = ["whole", "part", "endmask"]
            .map(|name| self.asm.cx.append_basic_block(self.frame.func, name));
        self.asm.builder.build_conditional_branch(all, whole, part)?;
        self.asm.builder.position_at_end(whole);
        self.tasks.push(Task::Part { mask, then, begin: part, after });
        self.tasks.push(Task::Stmt(then));
        Ok(())
    }

    /// Runs a statement when any lane of a mask is true, with the others left out.
    pub(super) fn begin_mask(&mut self, mask: VectorValue<'cx>, then: Expr) -> Result<()> {
        let bits = self.asm.bits(mask)?;
        let none = bits.get_type().const_zero();
        let any = self.asm.builder.build_int_compare(IntPredicate::NE, bits, none, "")?;
        let outer = self.asm.mask.replace(mask);
        self.tasks.push(Task::EndMask { outer });
        self.open_branch(any, then, None)
    }
}

/// Whether elements side by side are a vector of a buffer on the stack of this function, all lanes of which are there: nobody else
/// sees them.
fn is_whole_on_stack(buffer: &Buffer<'_>, offset: IntValue<'_>, lanes: u16) -> bool {
    let made = buffer.pointer.as_instruction();
    let elements: Option<i64> = buffer.layout.shape.iter().map(|extent| extent.known()).product();
    let end = offset.get_sign_extended_constant().and_then(|at| at.checked_add(lanes.into()));
    made.is_some_and(|made| made.get_opcode() == Op::Alloca)
        && matches!((end, elements), (Some(end), Some(elements)) if i64::from(lanes) <= end && end <= elements)
}

impl<'cx> Assembler<'cx, '_> {
    /// The lanes that an access of so many of them does not leave out, where it may leave out any.
    pub(super) fn mask_over(&self, lanes: u16) -> Option<VectorValue<'cx>> {
        self.mask.filter(|mask| lanes > 1 && mask.get_type().get_size() == u32::from(lanes))
    }

    /// The lanes of a mask as the bits of an integer.
    fn bits(&self, mask: VectorValue<'cx>) -> Result<IntValue<'cx>> {
        let bits = std::num::NonZeroU32::new(mask.get_type().get_size());
        let ty = bits.and_then(|bits| self.cx.custom_width_int_type(bits).ok());
        let Some(ty) = ty else { return Problem::malformed("a condition of no or too many lanes") };
        Ok(self.builder.build_bit_cast(mask, ty, "")?.into_int_value())
    }

    /// Elements side by side, in registers; zero where the mask is false.
    pub(super) fn read_masked(
        &self,
        buffer: &Buffer<'cx>,
        class: Class,
        offset: IntValue<'cx>,
        mask: VectorValue<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        let element = class.memory(self.cx);
        let ty = with_lanes(element, lanes_of(mask.into()));
        if is_whole_on_stack(buffer, offset, lanes_of(mask.into())) {
            let value = self.read_elements(buffer, class, offset, lanes_of(mask.into()))?;
            return self.select(mask.into(), value, value.get_type().const_zero());
        }
        let place = self.element_anywhere(buffer.pointer, element, offset)?;
        let args = [place.into(), mask.into(), ty.const_zero()];
        let overload = [ty, place.get_type().into()];
        let call = self.memory_intrinsic("llvm.masked.load", &overload, &args)?;
        call.set_alignment_attribute(AttributeLoc::Param(0), class.bytes());
        let Some(value) = call.try_as_basic_value().basic() else {
            return Problem::malformed("a masked load has no value");
        };
        if class == Class::Bool { self.is_not_zero(value) } else { Ok(value) }
    }

    /// Every other element, by two loads of those side by side; zero where the mask is false.
    pub(super) fn read_every_other(
        &self,
        buffer: &Buffer<'cx>,
        class: Class,
        base: IntValue<'cx>,
        mask: VectorValue<'cx>,
    ) -> Result<BasicValueEnum<'cx>> {
        let lanes = u64::from(mask.get_type().get_size());
        let none = mask.get_type().const_zero();
        let half = |at: u64| -> Result<VectorValue<'cx>> {
            // Between two elements that are wanted lies one that need not be there.
            let wanted = (0..lanes).map(|i| if i % 2 == 0 { at / 2 + i / 2 } else { lanes });
            let mask = self.shuffle(mask, none, wanted)?;
            let offset = self.moved(base, at as i64)?;
            Ok(self.read_masked(buffer, class, offset, mask)?.into_vector_value())
        };
        let (low, high) = (half(0)?, half(lanes)?);
        Ok(self.shuffle(low, high, (0..lanes).map(|i| 2 * i))?.into())
    }

    /// Writes elements side by side where the mask is true.
    pub(super) fn write_masked(
        &self,
        buffer: &Buffer<'cx>,
        class: Class,
        offset: IntValue<'cx>,
        value: BasicValueEnum<'cx>,
        mask: VectorValue<'cx>,
    ) -> Result<()> {
        let lanes = lanes_of(mask.into());
        if is_whole_on_stack(buffer, offset, lanes) {
            let before = self.read_elements(buffer, class, offset, lanes)?;
            let value = self.select(mask.into(), value, before)?;
            return self.write_elements(buffer, class, offset, value);
        }
        let element = class.memory(self.cx);
        let place = self.element_anywhere(buffer.pointer, element, offset)?;
        let value = self.to_memory(class, value)?;
        let args = [value, place.into(), mask.into()];
        let overload = [value.get_type(), place.get_type().into()];
        let call = self.memory_intrinsic("llvm.masked.store", &overload, &args)?;
        call.set_alignment_attribute(AttributeLoc::Param(1), class.bytes());
        Ok(())
    }

    /// Elements that lie apart; zero where the mask is false.
    pub(super) fn gather_masked(
        &self,
        buffer: &Buffer<'cx>,
        class: Class,
        mask: VectorValue<'cx>,
        offset: impl Fn(u16) -> Result<IntValue<'cx>>,
    ) -> Result<BasicValueEnum<'cx>> {
        let first = self.index(0).into();
        let inside = |lane| {
            let offset = offset(lane)?.into();
            Ok(self.select(self.lane(mask, lane)?, offset, first)?.into_int_value())
        };
        let vector = self.gather(buffer, class, lanes_of(mask.into()), inside)?;
        self.select(mask.into(), vector, vector.get_type().const_zero())
    }

    /// Runs `write` where lane `lane` of a mask is true.
    pub(super) fn in_lane(
        &self,
        mask: Option<VectorValue<'cx>>,
        lane: u16,
        write: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Some(mask) = mask else { return write() };
        let here = self.builder.get_insert_block().and_then(|block| block.get_parent());
        let Some(func) = here else { return Problem::malformed("no block to emit into") };
        let [yes, after] = ["lane", "next"].map(|name| self.cx.append_basic_block(func, name));
        let cond = self.lane(mask, lane)?.into_int_value();
        self.builder.build_conditional_branch(cond, yes, after)?;
        self.builder.position_at_end(yes);
        write()?;
        self.builder.build_unconditional_branch(after)?;
        self.builder.position_at_end(after);
        Ok(())
    }

    /// A call of an intrinsic that touches memory, and may have no value.
    pub(super) fn memory_intrinsic(
        &self,
        name: &'static str,
        overload: &[BasicTypeEnum<'cx>],
        args: &[BasicValueEnum<'cx>],
    ) -> Result<CallSiteValue<'cx>> {
        let declared = Intrinsic::find(name)
            .and_then(|intrinsic| intrinsic.get_declaration(self.module, overload));
        let Some(func) = declared else {
            return Problem::unsupported(format!("`{name}`"), "LLVM does not have it");
        };
        let args: Vec<BasicMetadataValueEnum<'cx>> = args.iter().map(|&arg| arg.into()).collect();
        Ok(self.builder.build_call(func, &args, "")?)
    }
}
