//! Memory that a function takes while it runs: by the functions of a `struct tenon_arena`, its last argument.
//!
//! ```text
//! slot:     where an address is kept, or null        one for each piece, from the beginning of the function
//! take:     slot = arena->take(arena->context, bytes)
//! give back: arena->give_back(arena->context, slot);  slot = null
//! failed:   what is in a slot is given back          in a loop over all slots
//! ```
//!
//! The slots are one array that the loop walks over, which keeps them in memory. As values of their own each would be merged where
//! all failures end: checks times pieces, which is millions in a detector.

use inkwell::{
    AddressSpace, IntPredicate,
    values::{BasicMetadataValueEnum, BasicValueEnum, FunctionValue, IntValue, PointerValue},
};

use super::{
    assembler::Assembler,
    error::{Problem, Result},
};
use crate::plan::Body;

/// Where a function takes memory from, and what it has of it.
pub(super) struct Arena<'cx> {
    /// The `struct tenon_arena` of the caller's.
    pub(super) table: PointerValue<'cx>,
    /// The array of the slots, and how many there are.
    slots: PointerValue<'cx>,
    count: usize,
}

/// The fields of the table.
#[derive(Clone, Copy)]
enum Field {
    Context = 0,
    Take = 1,
    GiveBack = 2,
}

impl<'cx> Arena<'cx> {
    /// That of a function, its last parameter, with slots that are empty; nothing where it takes no memory.
    pub(super) fn of(
        asm: &Assembler<'cx, '_>,
        body: &Body,
        func: FunctionValue<'cx>,
    ) -> Result<Option<Self>> {
        if !body.takes {
            return Ok(None);
        }
        // What says sizes takes nothing.
        let Some(BasicValueEnum::PointerValue(table)) = func.get_last_param() else {
            return Problem::malformed("a function is given no arena");
        };
        let array = asm.cx.ptr_type(AddressSpace::default()).array_type(body.slots as u32);
        let slots = asm.builder.build_alloca(array, "slots")?;
        let bytes = asm.cx.i64_type().const_int(8 * body.slots as u64, false);
        asm.builder.build_memset(slots, 8, asm.cx.i8_type().const_zero(), bytes)?;
        Ok(Some(Arena { table, slots, count: body.slots }))
    }

    /// Memory of so many bytes, or null.
    pub(super) fn take(
        &self,
        asm: &Assembler<'cx, '_>,
        slot: usize,
        bytes: IntValue<'cx>,
    ) -> Result<PointerValue<'cx>> {
        let pointer = asm.cx.ptr_type(AddressSpace::default());
        let ty = pointer.fn_type(&[pointer.into(), asm.cx.i64_type().into()], false);
        let args = [self.field(asm, Field::Context)?.into(), bytes.into()];
        let call = asm.builder.build_indirect_call(ty, self.field(asm, Field::Take)?, &args, "")?;
        let Some(BasicValueEnum::PointerValue(memory)) = call.try_as_basic_value().basic() else {
            return Problem::malformed("what takes memory gives none");
        };
        asm.builder.build_store(self.slot(asm, slot)?, memory)?;
        Ok(memory)
    }

    /// What is in a slot.
    pub(super) fn taken(&self, asm: &Assembler<'cx, '_>, slot: usize) -> Result<PointerValue<'cx>> {
        self.load(asm, self.slot(asm, slot)?)
    }

    /// Gives back what is in a slot, which is empty then.
    pub(super) fn give_back(&self, asm: &Assembler<'cx, '_>, slot: usize) -> Result<()> {
        let memory = self.taken(asm, slot)?;
        self.call_give_back(asm, memory)?;
        self.forget(asm, slot)
    }

    /// Gives back what is in a slot, if there is anything, and puts there what is in another, which is empty then.
    pub(super) fn replace(
        &self,
        asm: &Assembler<'cx, '_>,
        func: FunctionValue<'cx>,
        slot: usize,
        by: usize,
    ) -> Result<PointerValue<'cx>> {
        let b = &asm.builder;
        let before = self.taken(asm, slot)?;
        let [some, next] = ["held", "next"].map(|name| asm.cx.append_basic_block(func, name));
        b.build_conditional_branch(b.build_is_null(before, "")?, next, some)?;
        b.position_at_end(some);
        self.call_give_back(asm, before)?;
        b.build_unconditional_branch(next)?;
        b.position_at_end(next);
        let memory = self.taken(asm, by)?;
        b.build_store(self.slot(asm, slot)?, memory)?;
        self.forget(asm, by)?;
        Ok(memory)
    }

    /// Leaves what is in a slot to somebody else.
    fn forget(&self, asm: &Assembler<'cx, '_>, slot: usize) -> Result<()> {
        let pointer = asm.cx.ptr_type(AddressSpace::default());
        asm.builder.build_store(self.slot(asm, slot)?, pointer.const_null())?;
        Ok(())
    }

    /// Gives back what is in any slot.
    pub(super) fn give_back_all(
        &self,
        asm: &Assembler<'cx, '_>,
        func: FunctionValue<'cx>,
    ) -> Result<()> {
        let b = &asm.builder;
        let Some(before) = b.get_insert_block() else {
            return Problem::malformed("no block to emit into");
        };
        let [head, look, some, next, done] = ["slot", "look", "held", "next", "empty"]
            .map(|name| asm.cx.append_basic_block(func, name));
        b.build_unconditional_branch(head)?;
        b.position_at_end(head);
        let number = b.build_phi(asm.cx.i64_type(), "")?;
        let now = number.as_basic_value().into_int_value();
        let all = asm.index(self.count as i64);
        let is_left = b.build_int_compare(IntPredicate::ULT, now, all, "")?;
        b.build_conditional_branch(is_left, look, done)?;
        b.position_at_end(look);
        let memory = self.load(asm, self.slot_at(asm, now)?)?;
        b.build_conditional_branch(b.build_is_null(memory, "")?, next, some)?;
        b.position_at_end(some);
        self.call_give_back(asm, memory)?;
        b.build_unconditional_branch(next)?;
        b.position_at_end(next);
        let after = b.build_int_add(now, asm.index(1), "")?;
        number.add_incoming(&[(&asm.index(0), before), (&after, next)]);
        b.build_unconditional_branch(head)?;
        b.position_at_end(done);
        Ok(())
    }

    fn call_give_back(&self, asm: &Assembler<'cx, '_>, memory: PointerValue<'cx>) -> Result<()> {
        let pointer = BasicMetadataValueEnum::from(memory);
        let ty = asm.cx.ptr_type(AddressSpace::default());
        let ty = asm.cx.void_type().fn_type(&[ty.into(), ty.into()], false);
        let args = [self.field(asm, Field::Context)?.into(), pointer];
        asm.builder.build_indirect_call(ty, self.field(asm, Field::GiveBack)?, &args, "")?;
        Ok(())
    }

    /// Where the address of a piece is kept.
    pub(super) fn slot(&self, asm: &Assembler<'cx, '_>, slot: usize) -> Result<PointerValue<'cx>> {
        match slot < self.count {
            true => self.slot_at(asm, asm.index(slot as i64)),
            false => Problem::malformed("there is no such slot"),
        }
    }

    fn slot_at(
        &self,
        asm: &Assembler<'cx, '_>,
        number: IntValue<'cx>,
    ) -> Result<PointerValue<'cx>> {
        asm.element(self.slots, asm.cx.ptr_type(AddressSpace::default()).into(), number)
    }

    fn load(
        &self,
        asm: &Assembler<'cx, '_>,
        place: PointerValue<'cx>,
    ) -> Result<PointerValue<'cx>> {
        let pointer = asm.cx.ptr_type(AddressSpace::default());
        Ok(asm.builder.build_load(pointer, place, "")?.into_pointer_value())
    }

    fn field(&self, asm: &Assembler<'cx, '_>, field: Field) -> Result<PointerValue<'cx>> {
        let pointer = asm.cx.ptr_type(AddressSpace::default());
        self.load(asm, asm.element(self.table, pointer.into(), asm.index(field as i64))?)
    }
}
