//! A function that is emitted: the numbers that it computes, and how it ends.
//!
//! A check that fails ends the function with a status. Numbers are computed once, before anything else is done, or when what
//! they are computed of is found; one that does not fit into 64 bits fails too, so that no memory is taken for smaller than it is.

use std::cell::RefCell;

use inkwell::{
    IntPredicate,
    basic_block::BasicBlock,
    values::{
        BasicValueEnum, FunctionValue, InstructionOpcode as Op, IntValue, PhiValue, PointerValue,
    },
};

use super::{
    arena::Arena,
    assembler::Assembler,
    error::{Problem, Result},
    statement::scalar,
    value::Value,
};
use crate::{
    backend::llvm::attributes::decorate,
    plan::{Agreement, Body, CheckNumber, LARGEST_EXTENT, Size, SizeStep, Take},
};
use tenon_ir::{BinaryOp, DType};
use tenon_runtime::status::Failure;

/// A function while it is emitted.
pub(super) struct Frame<'cx, 'a> {
    pub(super) asm: &'a Assembler<'cx, 'a>,
    pub(super) body: &'a Body,
    pub(super) func: FunctionValue<'cx>,
    /// What memory is taken from, where it takes any.
    pub(super) arena: Option<Arena<'cx>>,
    /// Where failures end, and their statuses.
    failed: BasicBlock<'cx>,
    status: PhiValue<'cx>,
    /// The numbers of the body's steps, as far as they are computed.
    numbers: RefCell<Vec<Option<IntValue<'cx>>>>,
    /// For each number that is found, the steps that are computed then.
    behind: Vec<Vec<usize>>,
}

impl<'cx, 'a> Frame<'cx, 'a> {
    /// The function `symbol`, which gives a status.
    pub(super) fn new(
        asm: &'a Assembler<'cx, 'a>,
        body: &'a Body,
        func: FunctionValue<'cx>,
    ) -> Result<Self> {
        decorate(func, asm.target);
        let begin = asm.cx.append_basic_block(func, "entry");
        let failed = asm.cx.append_basic_block(func, "failed");
        asm.builder.position_at_end(begin);
        let arena = Arena::of(asm, body, func)?;
        let after = asm.builder.get_insert_block().unwrap_or(begin);
        asm.builder.position_at_end(failed);
        let status = asm.builder.build_phi(asm.cx.i32_type(), "status")?;
        if let Some(arena) = &arena {
            arena.give_back_all(asm, func)?;
        }
        asm.builder.build_return(Some(&status.as_basic_value()))?;
        asm.builder.position_at_end(after);
        let numbers = RefCell::new(vec![None; body.steps.len()]);
        let behind = behind_found(body);
        Ok(Frame { asm, body, func, arena, failed, status, numbers, behind })
    }

    pub(super) fn param(&self, index: u32) -> Result<PointerValue<'cx>> {
        match self.func.get_nth_param(index) {
            Some(BasicValueEnum::PointerValue(pointer)) => Ok(pointer),
            _ => Problem::malformed("a parameter is missing"),
        }
    }

    pub(super) fn number_param(&self, index: u32) -> Result<IntValue<'cx>> {
        match self.func.get_nth_param(index) {
            Some(BasicValueEnum::IntValue(number)) => Ok(number),
            _ => Problem::malformed("a parameter is missing"),
        }
    }

    /// Fails where numbers are not what they must be.
    pub(super) fn agree(&self, agreement: Agreement, check: CheckNumber) -> Result<()> {
        let (predicate, a, b) = match agreement {
            Agreement::Equal(a, b) | Agreement::EqualOrOne(a, b) => (IntPredicate::NE, a, b),
            Agreement::AtMost(a, b) => (IntPredicate::SGT, a, b),
        };
        let (a, b) = (self.size(a)?, self.size(b)?);
        let builder = &self.asm.builder;
        let mut is_bad = builder.build_int_compare(predicate, a, b, "")?;
        if let Agreement::EqualOrOne(..) = agreement {
            let is_more = builder.build_int_compare(IntPredicate::NE, a, self.asm.index(1), "")?;
            is_bad = builder.build_and(is_bad, is_more, "")?;
        }
        self.fail_if(is_bad, self.code(Failure::Extents.of_check(check.0)))
    }

    /// Writes numbers one after the other, as i64.
    pub(super) fn write(&self, place: PointerValue<'cx>, numbers: &[Size]) -> Result<()> {
        let asm = self.asm;
        for (index, &number) in numbers.iter().enumerate() {
            let place = asm.element(place, asm.cx.i64_type().into(), asm.index(index as i64))?;
            asm.store(place, self.size(number)?.into(), 8)?;
        }
        Ok(())
    }

    /// Computes the numbers of all steps but those behind one that is found; `given` are those that are computed from nothing.
    pub(super) fn compute(
        &mut self,
        given: &dyn Fn(&Self, &SizeStep) -> Result<IntValue<'cx>>,
    ) -> Result<()> {
        let mut is_behind = vec![false; self.body.steps.len()];
        self.behind.iter().flatten().for_each(|&step| is_behind[step] = true);
        let mut binaries = Vec::with_capacity(is_behind.len());
        for (number, step) in self.body.steps.iter().enumerate() {
            match step {
                SizeStep::Extent { .. }
                | SizeStep::Element { .. }
                | SizeStep::Room { .. }
                | SizeStep::Given(_) => {
                    let value = given(self, step)?;
                    self.numbers.borrow_mut()[number] = Some(value);
                }
                SizeStep::Binary { .. } if !is_behind[number] => binaries.push(number),
                SizeStep::Binary { .. } | SizeStep::Found { .. } => {}
            }
        }
        self.compute_binaries(&binaries)
    }

    /// Takes a number that was found, and computes what is computed of it.
    pub(super) fn find(&self, size: Size, value: IntValue<'cx>) -> Result<()> {
        let Size::Computed(step) = size else { return Problem::malformed("a number is known") };
        let Some(&SizeStep::Found { number, most }) = self.body.steps.get(step) else {
            return Problem::malformed("a number is found that is computed");
        };
        // The bound may be below zero, and then no number is right.
        let (zero, most) = (self.asm.index(0), self.size(most)?);
        for (predicate, bound) in [(IntPredicate::SLT, zero), (IntPredicate::SGT, most)] {
            let is_bad = self.asm.builder.build_int_compare(predicate, value, bound, "")?;
            self.fail_if(is_bad, self.code(Failure::Value as i32))?;
        }
        self.numbers.borrow_mut()[step] = Some(value);
        self.compute_binaries(&self.behind[number])
    }

    fn compute_binaries(&self, steps: &[usize]) -> Result<()> {
        let mut overflows: Option<BasicValueEnum<'cx>> = None;
        for &step in steps {
            let SizeStep::Binary { op, a, b } = self.body.steps[step] else { continue };
            let (number, overflow) = self.binary(op, self.size(a)?, self.size(b)?)?;
            overflows = match (overflows, overflow) {
                (Some(before), Some(now)) => Some(self.asm.int_op(Op::Or, before, now)?),
                (one, other) => one.or(other),
            };
            self.numbers.borrow_mut()[step] = Some(number);
        }
        match overflows {
            Some(overflows) => {
                self.fail_if(overflows.into_int_value(), self.code(Failure::Size as i32))
            }
            None => Ok(()),
        }
    }

    /// `a op b`, and whether it does not fit into 64 bits.
    fn binary(
        &self,
        op: BinaryOp,
        a: IntValue<'cx>,
        b: IntValue<'cx>,
    ) -> Result<(IntValue<'cx>, Option<BasicValueEnum<'cx>>)> {
        let name = match op {
            BinaryOp::Add => "llvm.sadd.with.overflow",
            BinaryOp::Sub => "llvm.ssub.with.overflow",
            BinaryOp::Mul => "llvm.smul.with.overflow",
            _ => {
                let [a, b] = [a, b].map(|value| Value::scalar(DType::I64, value));
                return Ok((scalar(self.asm.binary(op, a, b)?)?, None));
            }
        };
        let pair = self.asm.intrinsic(name, &[a.get_type().into()], &[a.into(), b.into()])?;
        let part =
            |index| self.asm.builder.build_extract_value(pair.into_struct_value(), index, "");
        Ok((part(0)?.into_int_value(), Some(part(1)?)))
    }

    /// The number that a size is, once the inputs are checked.
    pub(super) fn size(&self, size: Size) -> Result<IntValue<'cx>> {
        match size {
            Size::Known(value) => Ok(self.asm.index(value)),
            Size::Computed(step) => match self.numbers.borrow().get(step) {
                Some(&Some(number)) => Ok(number),
                _ => Problem::malformed("a number is used before it is computed"),
            },
        }
    }

    /// Fails where a size that is not known is none of memory.
    pub(super) fn check_memory(&self, size: Size) -> Result<()> {
        if let Size::Computed(_) = size {
            let (size, most) = (self.size(size)?, self.asm.index(LARGEST_EXTENT));
            let is_bad = self.asm.builder.build_int_compare(IntPredicate::UGT, size, most, "")?;
            self.fail_if(is_bad, self.code(Failure::Size as i32))?;
        }
        Ok(())
    }

    /// Takes memory, or fails.
    pub(super) fn take(&self, take: Take) -> Result<PointerValue<'cx>> {
        self.check_memory(take.bytes)?;
        self.take_bytes(take.slot, self.size(take.bytes)?)
    }

    /// The same of a number that was checked.
    pub(super) fn take_bytes(
        &self,
        slot: usize,
        bytes: IntValue<'cx>,
    ) -> Result<PointerValue<'cx>> {
        let Some(arena) = &self.arena else { return Problem::malformed("there is no arena") };
        let memory = arena.take(self.asm, slot, bytes)?;
        let is_none = self.asm.builder.build_is_null(memory, "")?;
        self.fail_if(is_none, self.code(Failure::Limit as i32))?;
        Ok(memory)
    }

    /// Gives back what was taken.
    pub(super) fn give_back(&self, slot: usize) -> Result<()> {
        match &self.arena {
            Some(arena) => arena.give_back(self.asm, slot),
            None => Problem::malformed("there is no arena"),
        }
    }

    pub(super) fn code(&self, status: i32) -> IntValue<'cx> {
        self.asm.cx.i32_type().const_int(status as u64, true)
    }

    pub(super) fn differ(&self, a: IntValue<'cx>, b: IntValue<'cx>, status: i32) -> Result<()> {
        let differ = self.asm.builder.build_int_compare(IntPredicate::NE, a, b, "")?;
        self.fail_if(differ, self.code(status))
    }

    /// Ends the function with `status` when `cond` is true.
    pub(super) fn fail_if(&self, cond: IntValue<'cx>, status: IntValue<'cx>) -> Result<()> {
        let b = &self.asm.builder;
        let Some(here) = b.get_insert_block() else {
            return Problem::malformed("no block to emit into");
        };
        let go_on = self.asm.cx.append_basic_block(self.func, "");
        b.build_conditional_branch(cond, self.failed, go_on)?;
        self.status.add_incoming(&[(&status, here)]);
        b.position_at_end(go_on);
        Ok(())
    }

    /// Ends the function well.
    pub(super) fn succeed(&self) -> Result<()> {
        let success = self.asm.cx.i32_type().const_zero();
        self.asm.builder.build_return(Some(&success))?;
        Ok(())
    }
}

/// For each number that a body finds, the steps that can be computed when it is the last one that was found.
fn behind_found(body: &Body) -> Vec<Vec<usize>> {
    let is_found = |step: &&SizeStep| matches!(step, SizeStep::Found { .. });
    let mut behind = vec![Vec::new(); body.steps.iter().filter(is_found).count()];
    let mut last: Vec<Option<usize>> = Vec::with_capacity(body.steps.len());
    for (number, step) in body.steps.iter().enumerate() {
        let of = |size: Size| match size {
            Size::Known(_) => None,
            Size::Computed(step) => last[step],
        };
        let found = match *step {
            SizeStep::Found { number, .. } => Some(number),
            SizeStep::Binary { a, b, .. } => of(a).max(of(b)),
            SizeStep::Extent { .. }
            | SizeStep::Element { .. }
            | SizeStep::Room { .. }
            | SizeStep::Given(_) => None,
        };
        if let (Some(found), SizeStep::Binary { .. }) = (found, step) {
            behind[found].push(number);
        }
        last.push(found);
    }
    behind
}
