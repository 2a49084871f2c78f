//! Which of several processors a library has code for is the one at hand.
//!
//! ```c
//! static const struct code { run, sizes } first[], second[], …;   of each function; the best processor first
//! static const struct code *chosen;                               null as long as nobody has asked
//! uint64_t                  runnable(void);                       a bit for each that this machine can run
//! const struct code        *choose(void);                         chosen, or the first that runs; null where none does
//! ```
//!
//! What is chosen is the same whoever asks, so threads that ask at once write the same.

use std::collections::BTreeMap;

use inkwell::{
    AddressSpace, AtomicOrdering, IntPredicate,
    builder::Builder,
    context::Context,
    module::{Linkage, Module},
    types::FunctionType,
    values::{FunctionValue, InstructionValue, IntValue, PointerValue, StructValue},
};

use super::error::{Problem, Result};
use super::front::{internal, result_of};
use crate::{backend::FrontProcessor, target::Target};
use tenon_runtime::cpu::{CpuRegister, CpuWord};

/// What asks the processor.
pub(super) struct Chooser<'cx> {
    /// Gives a bit for each processor that this machine can run.
    pub(super) runnable: FunctionValue<'cx>,
    /// Gives the address of the code of the best; null where there is none.
    pub(super) choose: FunctionValue<'cx>,
}

impl<'cx> Chooser<'cx> {
    /// `code` has the functions of each processor.
    pub(super) fn build(
        cx: &'cx Context,
        module: &Module<'cx>,
        target: &Target,
        processors: &[FrontProcessor],
        code: &[PointerValue<'cx>],
    ) -> Result<Self> {
        let pointer = cx.ptr_type(AddressSpace::default());
        let asks = Asks { cx, b: cx.create_builder() };
        let ty = cx.i64_type().fn_type(&[], false);
        let runnable = internal(module, target, "tenon_runnable", ty);
        asks.runnable(runnable, processors)?;

        let chosen = module.add_global(pointer, None, "tenon_chosen");
        chosen.set_initializer(&pointer.const_null());
        chosen.set_linkage(Linkage::Internal);
        let ty = pointer.fn_type(&[], false);
        let choose = internal(module, target, "tenon_choose", ty);
        asks.choose(choose, runnable, chosen.as_pointer_value(), code)?;
        Ok(Chooser { runnable, choose })
    }
}

struct Asks<'cx> {
    cx: &'cx Context,
    b: Builder<'cx>,
}

impl<'cx> Asks<'cx> {
    /// The body of what gives a bit for each processor.
    fn runnable(&self, func: FunctionValue<'cx>, processors: &[FrontProcessor]) -> Result<()> {
        let (b, long) = (&self.b, self.cx.i64_type());
        self.b.position_at_end(self.cx.append_basic_block(func, "entry"));
        let words = self.words(func, processors)?;
        let mut bits = long.const_zero();
        for (at, processor) in processors.iter().enumerate() {
            let mut runs = self.cx.bool_type().const_all_ones();
            for need in &processor.needs {
                let mask = self.number(need.mask);
                let has = b.build_and(words[&need.word], mask, "")?;
                let has = b.build_int_compare(IntPredicate::EQ, has, mask, "")?;
                runs = b.build_and(runs, has, "")?;
            }
            let bit = b.build_int_z_extend(runs, long, "")?;
            let bit = b.build_left_shift(bit, long.const_int(at as u64, false), "")?;
            bits = b.build_or(bits, bit, "")?;
        }
        b.build_return(Some(&bits))?;
        Ok(())
    }

    /// All words that are needed.
    fn words(
        &self,
        func: FunctionValue<'cx>,
        processors: &[FrontProcessor],
    ) -> Result<BTreeMap<CpuWord, IntValue<'cx>>> {
        // The last leaf of each kind.
        let last = [0, 0x8000_0000].map(|leaf| self.cpuid(leaf, 0, CpuRegister::Eax));
        let [basic, extended] = last;
        let (basic, extended) = (basic?, extended?);
        let mut words = BTreeMap::new();
        let needs = processors.iter().flat_map(|processor| &processor.needs);
        for word in needs.map(|need| need.word).chain([CpuWord::FIRST]) {
            let CpuWord::Leaf { leaf, part, register } = word else { continue };
            if words.contains_key(&word) {
                continue;
            }
            let value = self.cpuid(leaf, part, register)?;
            let last = if leaf < 0x8000_0000 { basic } else { extended };
            let is_there =
                self.b.build_int_compare(IntPredicate::ULE, self.number(leaf), last, "")?;
            let value = self.b.build_select(is_there, value, self.number(0), "")?;
            words.insert(word, value.into_int_value());
        }
        words.insert(CpuWord::SavedRegisters, self.saved(func, words[&CpuWord::FIRST])?);
        Ok(words)
    }

    /// A register behind `cpuid`.
    fn cpuid(&self, leaf: u32, part: u32, register: CpuRegister) -> Result<IntValue<'cx>> {
        let int = self.cx.i32_type();
        let four = self.cx.struct_type(&[int.into(); 4], false);
        let answer = self.assembly(
            four.fn_type(&[int.into(); 2], false),
            "cpuid",
            "={eax},={ebx},={ecx},={edx},{eax},{ecx}",
            &[self.number(leaf), self.number(part)],
        )?;
        Ok(self.b.build_extract_value(answer, register as u32, "")?.into_int_value())
    }

    /// What the system keeps of registers, where there is an instruction that says it.
    fn saved(&self, func: FunctionValue<'cx>, first: IntValue<'cx>) -> Result<IntValue<'cx>> {
        let (b, int) = (&self.b, self.cx.i32_type());
        let [asked, behind] =
            ["asked", "behind"].map(|name| self.cx.append_basic_block(func, name));
        let keeps = b.build_and(first, self.number(CpuWord::KEEPS_REGISTERS), "")?;
        let keeps = b.build_int_compare(IntPredicate::NE, keeps, self.number(0), "")?;
        let before = b.get_insert_block();
        let Some(before) = before else { return Problem::malformed("there is no block") };
        b.build_conditional_branch(keeps, asked, behind)?;
        b.position_at_end(asked);
        let two = self.cx.struct_type(&[int.into(); 2], false);
        let ty = two.fn_type(&[int.into()], false);
        let answer = self.assembly(ty, "xgetbv", "={eax},={edx},{ecx}", &[self.number(0)])?;
        let saved = b.build_extract_value(answer, 0, "")?.into_int_value();
        b.build_unconditional_branch(behind)?;
        b.position_at_end(behind);
        let value = b.build_phi(int, "saved")?;
        value.add_incoming(&[(&saved, asked), (&self.number(0), before)]);
        Ok(value.as_basic_value().into_int_value())
    }

    fn assembly(
        &self,
        ty: FunctionType<'cx>,
        text: &str,
        constraints: &str,
        arguments: &[IntValue<'cx>],
    ) -> Result<StructValue<'cx>> {
        let (text, constraints) = (text.to_owned(), constraints.to_owned());
        let code = self.cx.create_inline_asm(ty, text, constraints, true, false, None, false);
        let arguments: Vec<_> = arguments.iter().map(|&it| it.into()).collect();
        let call = self.b.build_indirect_call(ty, code, &arguments, "")?;
        Ok(result_of(call)?.into_struct_value())
    }

    /// The body of what gives the code.
    fn choose(
        &self,
        func: FunctionValue<'cx>,
        runnable: FunctionValue<'cx>,
        chosen: PointerValue<'cx>,
        code: &[PointerValue<'cx>],
    ) -> Result<()> {
        let (b, cx, long) = (&self.b, self.cx, self.cx.i64_type());
        let pointer = cx.ptr_type(AddressSpace::default());
        let [entry, first, end] =
            ["entry", "first", "end"].map(|name| cx.append_basic_block(func, name));
        b.position_at_end(entry);
        let known = b.build_load(pointer, chosen, "")?.into_pointer_value();
        shared(known.as_instruction(), AtomicOrdering::Monotonic)?;
        let is_known = b.build_is_not_null(known, "")?;
        b.build_conditional_branch(is_known, end, first)?;

        b.position_at_end(first);
        let bits = result_of(b.build_call(runnable, &[], "")?)?.into_int_value();
        let mut best = pointer.const_null();
        for (at, &code) in code.iter().enumerate().rev() {
            let bit = b.build_and(bits, long.const_int(1 << at, false), "")?;
            let runs = b.build_int_compare(IntPredicate::NE, bit, long.const_zero(), "")?;
            best = b.build_select(runs, code, best, "")?.into_pointer_value();
        }
        shared(Some(b.build_store(chosen, best)?), AtomicOrdering::Monotonic)?;
        b.build_unconditional_branch(end)?;

        b.position_at_end(end);
        let found = b.build_phi(pointer, "code")?;
        found.add_incoming(&[(&known, entry), (&best, first)]);
        b.build_return(Some(&found.as_basic_value()))?;
        Ok(())
    }

    fn number(&self, value: u32) -> IntValue<'cx> {
        self.cx.i32_type().const_int(u64::from(value), false)
    }
}

/// Makes an access one of what several threads may write.
pub(super) fn shared(access: Option<InstructionValue<'_>>, ordering: AtomicOrdering) -> Result<()> {
    let Some(access) = access else { return Problem::malformed("an access is none") };
    access.set_atomic_ordering(ordering).or_else(|error| Problem::malformed(error.to_string()))
}
