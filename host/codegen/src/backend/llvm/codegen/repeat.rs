//! Loops over a routine.
//!
//! ```text
//! head:  trip, go, where each carried tensor is, where it is written next
//!        trip < limit and go, or exit
//! body:  call;  go = what it gave;  what was written is what is read next, and the other place is written
//! exit:  what is not in its first place is copied there
//! ```

use inkwell::{
    IntPredicate,
    values::{BasicMetadataValueEnum, IntValue, PhiValue, PointerValue},
};

use super::{
    actions::Actions,
    error::{Problem, Result},
};
use crate::plan::{Callee, Carried, Limit, Loop, LoopArgument};
use tenon_runtime::status::Failure;

/// A carried tensor while trips are made.
struct Turn<'cx> {
    here: PointerValue<'cx>,
    there: PointerValue<'cx>,
    current: PhiValue<'cx>,
    next: PhiValue<'cx>,
}

impl<'cx> Turn<'cx> {
    fn current(&self) -> PointerValue<'cx> {
        self.current.as_basic_value().into_pointer_value()
    }

    fn next(&self) -> PointerValue<'cx> {
        self.next.as_basic_value().into_pointer_value()
    }
}

impl<'cx> Actions<'cx, '_> {
    pub(super) fn repeat(&self, it: &Loop) -> Result<()> {
        let (frame, asm) = (self.frame, self.frame.asm);
        let b = &asm.builder;
        let (int, byte) = (asm.cx.i64_type(), asm.cx.i8_type());
        let limit = match it.limit {
            Limit::Number(number) => frame.size(number)?,
            Limit::At(place) => asm.load(int.into(), self.address(place)?, 8)?.into_int_value(),
        };
        let go_first = asm.load(byte.into(), self.address(it.go)?, 1)?;
        let [trip_place, again] = [self.address(it.trip)?, self.address(it.again)?];
        let mut places = Vec::with_capacity(it.carried.len());
        for carried in &it.carried {
            let [from, here, there] = [carried.from, carried.here, carried.there];
            places.push([self.address(from)?, self.address(here)?, self.address(there)?]);
        }
        self.take_lent(it.lent)?;
        let Some(before) = b.get_insert_block() else {
            return Problem::malformed("no block to emit into");
        };
        let [head, body, exit] =
            ["trip", "body", "exit"].map(|name| asm.cx.append_basic_block(frame.func, name));
        b.build_unconditional_branch(head)?;

        b.position_at_end(head);
        let trip = b.build_phi(int, "trip")?;
        trip.add_incoming(&[(&int.const_zero(), before)]);
        let go = b.build_phi(byte, "go")?;
        go.add_incoming(&[(&go_first, before)]);
        let pointer = asm.cx.ptr_type(inkwell::AddressSpace::default());
        let mut turns = Vec::with_capacity(places.len());
        for [from, here, there] in places {
            let (current, next) = (b.build_phi(pointer, "")?, b.build_phi(pointer, "")?);
            current.add_incoming(&[(&from, before)]);
            next.add_incoming(&[(&here, before)]);
            turns.push(Turn { here, there, current, next });
        }
        let number = trip.as_basic_value().into_int_value();
        let is_left = b.build_int_compare(IntPredicate::SLT, number, limit, "")?;
        let go_on = go.as_basic_value().into_int_value();
        let goes_on = b.build_int_compare(IntPredicate::NE, go_on, byte.const_zero(), "")?;
        b.build_conditional_branch(b.build_and(is_left, goes_on, "")?, body, exit)?;

        b.position_at_end(body);
        asm.store(trip_place, number.into(), 8)?;
        let args = self.loop_arguments(it, &turns, number)?;
        self.call_with(Callee::Routine(it.routine), args, it.lent)?;
        let go_next = asm.load(byte.into(), again, 1)?;
        let trip_next = b.build_int_add(number, asm.index(1), "")?;
        let Some(behind) = b.get_insert_block() else {
            return Problem::malformed("no block to emit into");
        };
        for turn in &turns {
            let is_here = b.build_int_compare(IntPredicate::EQ, turn.next(), turn.here, "")?;
            let other = b.build_select(is_here, turn.there, turn.here, "")?;
            turn.current.add_incoming(&[(&turn.next(), behind)]);
            turn.next.add_incoming(&[(&other, behind)]);
        }
        trip.add_incoming(&[(&trip_next, behind)]);
        go.add_incoming(&[(&go_next, behind)]);
        b.build_unconditional_branch(head)?;

        b.position_at_end(exit);
        if !it.rows.is_empty() {
            let is_short = b.build_int_compare(IntPredicate::NE, number, limit, "")?;
            frame.fail_if(is_short, frame.code(Failure::Trips as i32))?;
        }
        self.give_back_lent(it.lent)?;
        it.carried.iter().zip(&turns).try_for_each(|(carried, turn)| self.bring(carried, turn))
    }

    fn loop_arguments(
        &self,
        it: &Loop,
        turns: &[Turn<'cx>],
        number: IntValue<'cx>,
    ) -> Result<Vec<BasicMetadataValueEnum<'cx>>> {
        let (frame, asm) = (self.frame, self.frame.asm);
        let mut args: Vec<BasicMetadataValueEnum<'cx>> = Vec::with_capacity(it.args.len() + 8);
        for &arg in &it.args {
            let address = match arg {
                LoopArgument::Memory(place) => self.address(place)?,
                LoopArgument::Current(at) => turns[at].current(),
                LoopArgument::Next(at) => turns[at].next(),
                LoopArgument::Row(at) => {
                    let rows = it.rows[at];
                    let bytes = frame.size(rows.bytes)?;
                    let offset = asm.builder.build_int_mul(number, bytes, "")?;
                    asm.element(self.address(rows.to)?, asm.cx.i8_type().into(), offset)?
                }
            };
            args.push(address.into());
        }
        for &symbol in &it.symbols {
            args.push(frame.size(symbol)?.into());
        }
        Ok(args)
    }

    /// Copies a carried tensor to its first place, where it is not there.
    fn bring(&self, carried: &Carried, turn: &Turn<'cx>) -> Result<()> {
        let (frame, asm) = (self.frame, self.frame.asm);
        let b = &asm.builder;
        let [copy, after] =
            ["copy", "after"].map(|name| asm.cx.append_basic_block(frame.func, name));
        let is_here = b.build_int_compare(IntPredicate::EQ, turn.current(), turn.here, "")?;
        b.build_conditional_branch(is_here, after, copy)?;
        b.position_at_end(copy);
        b.build_memcpy(turn.here, 1, turn.current(), 1, frame.size(carried.bytes)?)?;
        b.build_unconditional_branch(after)?;
        b.position_at_end(after);
        Ok(())
    }
}
