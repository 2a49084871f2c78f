//! Memory that a function takes while it runs: by the functions of a `struct tenon_arena`, its last argument.
//!
//! ```text
//! slot:     where an address is kept, or null        one for each piece, from the beginning of the function
//! take:     slot = arena->take(arena->context, bytes)
//! give back: arena->give_back(arena->context, slot);  slot = null
//! failed:   what is in a slot is given back
//! ```

use inkwell::{
    AddressSpace,
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
    slots: Vec<PointerValue<'cx>>,
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
        let pointer = asm.cx.ptr_type(AddressSpace::default());
        let slots = (0..body.slots).map(|_| {
            let slot = asm.builder.build_alloca(pointer, "slot")?;
            asm.builder.build_store(slot, pointer.const_null())?;
            Ok(slot)
        });
        Ok(Some(Arena { table, slots: slots.collect::<Result<_>>()? }))
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
        asm.builder.build_store(self.slot(slot)?, memory)?;
        Ok(memory)
    }

    /// What is in a slot.
    pub(super) fn taken(&self, asm: &Assembler<'cx, '_>, slot: usize) -> Result<PointerValue<'cx>> {
        let pointer = asm.cx.ptr_type(AddressSpace::default());
        Ok(asm.builder.build_load(pointer, self.slot(slot)?, "")?.into_pointer_value())
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
        b.build_store(self.slot(slot)?, memory)?;
        self.forget(asm, by)?;
        Ok(memory)
    }

    /// Leaves what is in a slot to somebody else.
    fn forget(&self, asm: &Assembler<'cx, '_>, slot: usize) -> Result<()> {
        let pointer = asm.cx.ptr_type(AddressSpace::default());
        asm.builder.build_store(self.slot(slot)?, pointer.const_null())?;
        Ok(())
    }

    /// Gives back what is in any slot.
    pub(super) fn give_back_all(
        &self,
        asm: &Assembler<'cx, '_>,
        func: FunctionValue<'cx>,
    ) -> Result<()> {
        let b = &asm.builder;
        for slot in 0..self.slots.len() {
            let memory = self.taken(asm, slot)?;
            let [some, next] = ["held", "next"].map(|name| asm.cx.append_basic_block(func, name));
            b.build_conditional_branch(b.build_is_null(memory, "")?, next, some)?;
            b.position_at_end(some);
            self.call_give_back(asm, memory)?;
            b.build_unconditional_branch(next)?;
            b.position_at_end(next);
        }
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
    pub(super) fn slot(&self, slot: usize) -> Result<PointerValue<'cx>> {
        match self.slots.get(slot) {
            Some(&slot) => Ok(slot),
            None => Problem::malformed("there is no such slot"),
        }
    }

    fn field(&self, asm: &Assembler<'cx, '_>, field: Field) -> Result<PointerValue<'cx>> {
        let pointer = asm.cx.ptr_type(AddressSpace::default());
        let place = asm.element(self.table, pointer.into(), asm.index(field as i64))?;
        Ok(asm.builder.build_load(pointer, place, "")?.into_pointer_value())
    }
}
