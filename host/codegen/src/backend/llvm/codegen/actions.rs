//! What a planned function does, as code: calls with addresses that are known up to the start of an argument, a constant
//! or the workspace, copies, and choices.

use inkwell::{
    AtomicOrdering, IntPredicate,
    basic_block::BasicBlock,
    values::{BasicMetadataValueEnum, BasicValue, BasicValueEnum, IntValue, PointerValue},
};

use super::{
    callees::Callees,
    error::{Problem, Result},
    frame::Frame,
    value::{Class, Value},
};
use crate::plan::{
    Action, Base, Call, Callee, CheckNumber, Circle, Copy, EntryArgument, Find, Place, Size, Take,
};
use tenon_ir::DType;
use tenon_runtime::status::Failure;

/// A function whose actions are emitted.
pub(super) struct Actions<'cx, 'a> {
    pub(super) frame: &'a Frame<'cx, 'a>,
    pub(super) callees: &'a Callees<'cx>,
    /// Where the elements of inputs and outputs lie.
    inputs: Vec<PointerValue<'cx>>,
    outputs: Vec<PointerValue<'cx>>,
    lent: Lent<'cx>,
    /// The number of the first call of a kernel among those of all functions.
    calls: usize,
    /// The choices that are open.
    choices: Vec<Choice<'cx>>,
}

/// What a function is lent for a call.
#[derive(Clone, Copy)]
pub(super) struct Lent<'cx> {
    pub(super) workspace: PointerValue<'cx>,
    pub(super) parallel: PointerValue<'cx>,
    /// The byte that says whether the call is cancelled.
    pub(super) cancelled: PointerValue<'cx>,
    /// Of a function that calls itself.
    pub(super) depth: Option<Depth<'cx>>,
}

/// How deep calls of a circle may go from here on.
#[derive(Clone, Copy)]
pub(super) struct Depth<'cx> {
    pub(super) circle: Circle,
    /// How many may be in work, this one among them.
    pub(super) left: IntValue<'cx>,
    /// Where the memory for all of them ends.
    pub(super) end: PointerValue<'cx>,
}

struct Choice<'cx> {
    /// Where the other branch begins.
    otherwise: BasicBlock<'cx>,
    end: BasicBlock<'cx>,
}

impl<'cx, 'a> Actions<'cx, 'a> {
    pub(super) fn new(
        frame: &'a Frame<'cx, 'a>,
        callees: &'a Callees<'cx>,
        inputs: Vec<PointerValue<'cx>>,
        outputs: Vec<PointerValue<'cx>>,
        lent: Lent<'cx>,
    ) -> Self {
        let choices = Vec::new();
        Actions { frame, callees, inputs, outputs, lent, calls: 0, choices }
    }

    /// Emits the actions of the body, whose calls of kernels are counted from `calls` on.
    pub(super) fn emit(mut self, calls: usize) -> Result<()> {
        self.calls = calls;
        let body = self.frame.body;
        body.actions.iter().try_for_each(|action| self.action(action))
    }

    fn action(&mut self, action: &Action) -> Result<()> {
        match action {
            Action::Call(call) => self.call(call),
            Action::Write(write) => self.frame.write(self.address(write.to)?, &write.numbers),
            Action::Copy(copy) => self.copy(copy),
            &Action::Agree(agreement, check) => self.frame.agree(agreement, check),
            Action::Find(find) => self.find(find),
            &Action::Take(take) => self.frame.take(take).map(drop),
            Action::Keep(_) => Ok(()),
            &Action::GiveBack(slot) => self.frame.give_back(slot),
            &Action::Expect(truth, check) => self.expect(truth, check),
            &Action::Choose(condition) => self.choose(condition),
            Action::Otherwise => self.otherwise(),
            Action::End => self.end(),
            Action::Loop(it) => self.repeat(it),
        }
    }

    fn copy(&self, copy: &Copy) -> Result<()> {
        let (from, to) = (self.address(copy.from)?, self.address(copy.to)?);
        let mut bytes = self.frame.size(copy.bytes)?;
        let (asm, b) = (self.frame.asm, &self.frame.asm.builder);
        if copy.unless_same {
            let [from, to] = [from, to].map(|it| b.build_ptr_to_int(it, asm.cx.i64_type(), ""));
            let is_same = b.build_int_compare(IntPredicate::EQ, from?, to?, "")?;
            bytes = b.build_select(is_same, asm.index(0), bytes, "")?.into_int_value();
        }
        let Some(rows) = copy.rows else {
            b.build_memcpy(to, 1, from, 1, bytes)?;
            return Ok(());
        };
        let count = self.frame.size(rows.count)?;
        let [from_step, to_step] =
            [self.frame.size(rows.from_step)?, self.frame.size(rows.to_step)?];
        // Of nothing there is nothing to do, however many rows there are.
        let is_empty = b.build_int_compare(IntPredicate::EQ, bytes, asm.index(0), "")?;
        let count = b.build_select(is_empty, asm.index(0), count, "")?.into_int_value();
        let Some(before) = b.get_insert_block() else {
            return Problem::malformed("no block to emit into");
        };
        let [head, row, after] =
            ["rows", "row", "copied"].map(|name| asm.cx.append_basic_block(self.frame.func, name));
        b.build_unconditional_branch(head)?;
        b.position_at_end(head);
        let number = b.build_phi(asm.cx.i64_type(), "")?;
        let now = number.as_basic_value().into_int_value();
        let goes_on = b.build_int_compare(IntPredicate::ULT, now, count, "")?;
        b.build_conditional_branch(goes_on, row, after)?;
        b.position_at_end(row);
        let byte = asm.cx.i8_type().into();
        let place = |first, step| asm.element(first, byte, b.build_int_mul(now, step, "")?);
        b.build_memcpy(place(to, to_step)?, 1, place(from, from_step)?, 1, bytes)?;
        let next = b.build_int_add(now, asm.index(1), "")?;
        number.add_incoming(&[(&asm.index(0), before), (&next, row)]);
        b.build_unconditional_branch(head)?;
        b.position_at_end(after);
        Ok(())
    }

    fn find(&self, find: &Find) -> Result<()> {
        let asm = self.frame.asm;
        let (first, int) = (self.address(find.from)?, asm.cx.i64_type().into());
        let place = asm.element(first, int, asm.index(find.at as i64))?;
        self.frame.find(find.size, asm.load(int, place, 8)?.into_int_value())
    }

    /// Whether the byte at a place is 0, or is not.
    fn compare(&self, place: Place, predicate: IntPredicate) -> Result<IntValue<'cx>> {
        let asm = self.frame.asm;
        let byte = asm.load(asm.cx.i8_type().into(), self.address(place)?, 1)?;
        let zero = asm.cx.i8_type().const_zero();
        Ok(asm.builder.build_int_compare(predicate, byte.into_int_value(), zero, "")?)
    }

    fn expect(&self, truth: Place, check: CheckNumber) -> Result<()> {
        let is_false = self.compare(truth, IntPredicate::EQ)?;
        let status = Failure::Expected.of_check(check.0);
        self.frame.fail_if(is_false, self.frame.code(status))
    }

    fn choose(&mut self, condition: Place) -> Result<()> {
        let is_true = self.compare(condition, IntPredicate::NE)?;
        let asm = self.frame.asm;
        let [then, otherwise, end] = ["then", "otherwise", "end"]
            .map(|name| asm.cx.append_basic_block(self.frame.func, name));
        asm.builder.build_conditional_branch(is_true, then, otherwise)?;
        asm.builder.position_at_end(then);
        self.choices.push(Choice { otherwise, end });
        Ok(())
    }

    fn otherwise(&self) -> Result<()> {
        let Some(choice) = self.choices.last() else { return Problem::malformed("no choice") };
        let b = &self.frame.asm.builder;
        b.build_unconditional_branch(choice.end)?;
        b.position_at_end(choice.otherwise);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let Some(choice) = self.choices.pop() else { return Problem::malformed("no choice") };
        let b = &self.frame.asm.builder;
        b.build_unconditional_branch(choice.end)?;
        b.position_at_end(choice.end);
        Ok(())
    }

    /// Takes what a call is lent.
    pub(super) fn take_lent(&self, lent: Option<Take>) -> Result<()> {
        lent.map_or(Ok(()), |take| self.frame.take(take).map(drop))
    }

    /// Gives it back.
    pub(super) fn give_back_lent(&self, lent: Option<Take>) -> Result<()> {
        lent.map_or(Ok(()), |take| self.frame.give_back(take.slot))
    }

    fn call(&mut self, call: &Call) -> Result<()> {
        let (frame, asm) = (self.frame, self.frame.asm);
        self.take_lent(call.lent)?;
        let count = call.args.len() + call.symbols.len() + 2;
        let mut args: Vec<BasicMetadataValueEnum<'cx>> = Vec::with_capacity(count);
        for &arg in &call.args {
            args.push(match arg {
                EntryArgument::Memory(place) => self.address(place)?.into(),
                EntryArgument::Taken(place) => self.slot(place)?.into(),
                EntryArgument::Scalar { dtype, value } => self.scalar(dtype, value)?.into(),
            });
        }
        for &symbol in &call.symbols {
            args.push(frame.size(symbol)?.into());
        }
        self.call_with(call.callee, args, call.lent)?;
        if let Callee::Kernel(_) = call.callee {
            self.calls += 1;
            self.callees.mark(asm, self.calls)?;
        }
        self.give_back_lent(call.lent)
    }

    /// Ends the call with an error where it is cancelled.
    fn heed(&self) -> Result<()> {
        let asm = self.frame.asm;
        let byte = asm.load(asm.cx.i8_type().into(), self.lent.cancelled, 1)?.into_int_value();
        if let Some(load) = byte.as_instruction_value() {
            // Somebody else writes it, at any time.
            let seen = load.set_volatile(true).is_ok();
            if !seen || load.set_atomic_ordering(AtomicOrdering::Monotonic).is_err() {
                return Problem::malformed("a flag that cannot be looked at");
            }
        }
        let zero = asm.cx.i8_type().const_zero();
        let is_set = asm.builder.build_int_compare(IntPredicate::NE, byte, zero, "")?;
        self.frame.fail_if(is_set, self.frame.code(Failure::Cancelled as i32))
    }

    /// Calls something with these arguments, and the memory and the threads that it is lent, unless the call is cancelled.
    pub(super) fn call_with(
        &self,
        callee: Callee,
        mut args: Vec<BasicMetadataValueEnum<'cx>>,
        lent: Option<Take>,
    ) -> Result<()> {
        self.heed()?;
        let (frame, asm) = (self.frame, self.frame.asm);
        let func = self.callees.get(callee)?;
        let scratch = match lent {
            None => self.address(Place { base: Base::Workspace, offset: frame.body.scratch })?,
            Some(Take { slot, .. }) => self.address(taken(slot))?,
        };
        let parallel = BasicMetadataValueEnum::from(self.lent.parallel);
        args.extend([scratch.into(), parallel]);
        if let Callee::Routine(_) = callee {
            args.push(self.lent.cancelled.into());
        }
        if let Some(circle) = self.callees.circle(callee) {
            let (left, end) = self.depth_of(circle, lent)?;
            args.push(left.into());
            args.push(end.into());
        }
        if self.callees.takes(callee) {
            let Some(arena) = &frame.arena else { return Problem::malformed("there is no arena") };
            args.push(arena.table.into());
        }
        let result = asm.builder.build_call(func, &args, "")?.try_as_basic_value().basic();
        let Some(BasicValueEnum::IntValue(status)) = result else {
            return Problem::malformed("a callee without a status");
        };
        let zero = asm.cx.i32_type().const_zero();
        let is_bad = asm.builder.build_int_compare(IntPredicate::NE, status, zero, "")?;
        match callee {
            Callee::Kernel(_) if !self.callees.is_external(callee) => {
                frame.fail_if(is_bad, frame.code(Failure::Threads as i32))
            }
            Callee::Kernel(_) | Callee::Routine(_) => frame.fail_if(is_bad, status),
        }
    }

    /// How many calls of a circle may be in work behind here, and where their memory ends.
    fn depth_of(
        &self,
        circle: Circle,
        lent: Option<Take>,
    ) -> Result<(IntValue<'cx>, PointerValue<'cx>)> {
        let asm = self.frame.asm;
        match self.lent.depth.filter(|own| own.circle == circle) {
            Some(own) => Ok((asm.builder.build_int_sub(own.left, asm.index(1), "")?, own.end)),
            None => {
                let end = match lent {
                    None => Place { base: Base::Workspace, offset: self.frame.body.workspace },
                    Some(Take { slot, bytes }) => Place { base: Base::Taken(slot), offset: bytes },
                };
                let end = self.address(end)?;
                Ok((asm.index(circle.depth), end))
            }
        }
    }

    fn scalar(&self, dtype: DType, value: Size) -> Result<BasicValueEnum<'cx>> {
        let asm = self.frame.asm;
        match value {
            Size::Known(value) => asm.int_of(Class::of(dtype)?.register(asm.cx), value),
            Size::Computed(_) => {
                let number = Value::scalar(DType::I64, self.frame.size(value)?);
                asm.whole(asm.cast(number, dtype)?, 1)
            }
        }
    }

    /// Where the address of what is taken is kept.
    pub(super) fn slot(&self, place: Place) -> Result<PointerValue<'cx>> {
        match (place.base, &self.frame.arena) {
            (Base::Taken(slot), Some(arena)) => arena.slot(self.frame.asm, slot),
            _ => Problem::malformed("a result is taken, and nothing keeps it"),
        }
    }

    pub(super) fn address(&self, place: Place) -> Result<PointerValue<'cx>> {
        let base = match place.base {
            Base::Input(index) => self.inputs.get(index).copied(),
            Base::Output(index) => self.outputs.get(index).copied(),
            Base::Constant(index) => Some(self.callees.constant(self.frame.asm, index)?),
            Base::Workspace => Some(self.lent.workspace),
            Base::Taken(slot) => match &self.frame.arena {
                Some(arena) => Some(arena.taken(self.frame.asm, slot)?),
                None => None,
            },
        };
        let Some(base) = base else { return Problem::malformed("an address of nothing") };
        let (asm, offset) = (self.frame.asm, self.frame.size(place.offset)?);
        asm.element(base, asm.cx.i8_type().into(), offset)
    }
}

/// The beginning of what was taken.
fn taken(slot: usize) -> Place {
    Place { base: Base::Taken(slot), offset: Size::Known(0) }
}
