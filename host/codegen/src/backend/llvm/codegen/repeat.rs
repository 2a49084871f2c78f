//! Loops over a routine.
//!
//! ```text
//! head:  trip, go, where each carried tensor is, where it is written next
//!        trip < limit and go, or exit
//! body:  call;  go = what it gave;  what was written is what is read next, and the other place is written
//! exit:  what is not in its first place is copied there
//! ```
//!
//! What each trip takes the memory of has an address instead of places:
//!
//! ```text
//! head:  rows: what is there is for so many;  if the trip is beyond, twice as much is taken, and they are moved
//! body:  call, which leaves an address;  what was read is given back, and what was left is read next
//! exit:  where there was no trip, what was given is copied to memory that is taken
//! ```

use inkwell::{
    IntPredicate,
    values::{BasicMetadataValueEnum, IntValue, PhiValue, PointerValue},
};

use super::{
    actions::Actions,
    error::{Problem, Result},
};
use crate::plan::{Base, Callee, Carried, Limit, Loop, LoopArgument, Place, Rows, Take};
use tenon_runtime::status::Failure;

/// A carried tensor while trips are made.
enum Turn<'cx> {
    Places(Places<'cx>),
    /// Where its address is kept, and the numbers of what is read and what a trip leaves.
    Taken {
        current: PointerValue<'cx>,
        here: usize,
        there: usize,
    },
}

/// One that lies in two places in turn.
struct Places<'cx> {
    here: PointerValue<'cx>,
    there: PointerValue<'cx>,
    current: PhiValue<'cx>,
    next: PhiValue<'cx>,
}

impl<'cx> Places<'cx> {
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
        let places = self.first_places(it)?;
        self.take_lent(it.lent)?;
        let room = self.first_rows(it)?;
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
        for first in places {
            turns.push(match first {
                First::Places([from, here, there]) => {
                    let (current, next) = (b.build_phi(pointer, "")?, b.build_phi(pointer, "")?);
                    current.add_incoming(&[(&from, before)]);
                    next.add_incoming(&[(&here, before)]);
                    Turn::Places(Places { here, there, current, next })
                }
                First::Taken(turn) => turn,
            });
        }
        let number = trip.as_basic_value().into_int_value();
        let is_left = b.build_int_compare(IntPredicate::SLT, number, limit, "")?;
        let go_on = go.as_basic_value().into_int_value();
        let goes_on = b.build_int_compare(IntPredicate::NE, go_on, byte.const_zero(), "")?;
        b.build_conditional_branch(b.build_and(is_left, goes_on, "")?, body, exit)?;

        b.position_at_end(body);
        asm.store(trip_place, number.into(), 8)?;
        it.rows.iter().zip(&room).try_for_each(|(rows, room)| self.more(rows, *room, number))?;
        let args = self.loop_arguments(it, &turns, number)?;
        self.call_with(Callee::Routine(it.routine), args, it.lent)?;
        let go_next = asm.load(byte.into(), again, 1)?;
        self.turn_taken(&turns)?;
        let trip_next = b.build_int_add(number, asm.index(1), "")?;
        let Some(behind) = b.get_insert_block() else {
            return Problem::malformed("no block to emit into");
        };
        for turn in &turns {
            let Turn::Places(turn) = turn else { continue };
            let is_here = b.build_int_compare(IntPredicate::EQ, turn.next(), turn.here, "")?;
            let other = b.build_select(is_here, turn.there, turn.here, "")?;
            turn.current.add_incoming(&[(&turn.next(), behind)]);
            turn.next.add_incoming(&[(&other, behind)]);
        }
        trip.add_incoming(&[(&trip_next, behind)]);
        go.add_incoming(&[(&go_next, behind)]);
        b.build_unconditional_branch(head)?;

        b.position_at_end(exit);
        if it.rows.iter().any(|rows| rows.more.is_none()) {
            let is_short = b.build_int_compare(IntPredicate::NE, number, limit, "")?;
            frame.fail_if(is_short, frame.code(Failure::Trips as i32))?;
        }
        self.give_back_lent(it.lent)?;
        it.carried.iter().zip(&turns).try_for_each(|(carried, turn)| match turn {
            Turn::Places(turn) => self.bring(carried, turn),
            Turn::Taken { current, here, .. } => self.bring_taken(carried, *current, *here),
        })
    }

    /// Where carried tensors are before the first trip.
    fn first_places(&self, it: &Loop) -> Result<Vec<First<'cx>>> {
        let asm = self.frame.asm;
        let mut places = Vec::with_capacity(it.carried.len());
        for carried in &it.carried {
            let [from, here, there] = [carried.from, carried.here, carried.there];
            places.push(match carried.is_taken {
                false => {
                    First::Places([self.address(from)?, self.address(here)?, self.address(there)?])
                }
                true => {
                    let from = self.address(from)?;
                    let current = asm.builder.build_alloca(from.get_type(), "current")?;
                    asm.builder.build_store(current, from)?;
                    let (here, there) = (number_of(here)?, number_of(there)?);
                    First::Taken(Turn::Taken { current, here, there })
                }
            });
        }
        Ok(places)
    }

    /// Takes memory for some rows, where nobody knows how many there are; gives where it is kept for how many there is room.
    fn first_rows(&self, it: &Loop) -> Result<Vec<Option<PointerValue<'cx>>>> {
        const SOME: i64 = 4;
        let (frame, asm) = (self.frame, self.frame.asm);
        let b = &asm.builder;
        let mut room = Vec::with_capacity(it.rows.len());
        for rows in &it.rows {
            if rows.more.is_none() {
                room.push(None);
                continue;
            }
            frame.check_memory(rows.bytes)?;
            let bytes = b.build_int_mul(frame.size(rows.bytes)?, asm.index(SOME), "")?;
            frame.take_bytes(number_of(rows.to)?, bytes)?;
            let count = b.build_alloca(asm.cx.i64_type(), "room")?;
            b.build_store(count, asm.index(SOME))?;
            room.push(Some(count));
        }
        Ok(room)
    }

    /// Takes twice as much for rows, where there is no room for that of this trip.
    fn more(
        &self,
        rows: &Rows,
        room: Option<PointerValue<'cx>>,
        number: IntValue<'cx>,
    ) -> Result<()> {
        let (Some(room), Some(more)) = (room, rows.more) else { return Ok(()) };
        let (frame, asm) = (self.frame, self.frame.asm);
        let Some(arena) = &frame.arena else { return Problem::malformed("there is no arena") };
        let (b, int) = (&asm.builder, asm.cx.i64_type());
        let [grow, after] = ["grow", "row"].map(|name| asm.cx.append_basic_block(frame.func, name));
        let count = asm.load(int.into(), room, 8)?.into_int_value();
        let is_full = b.build_int_compare(IntPredicate::SGE, number, count, "")?;
        b.build_conditional_branch(is_full, grow, after)?;
        b.position_at_end(grow);
        // What there was before could be addressed, and so can twice as much be counted.
        let twice = b.build_int_add(count, count, "")?;
        let of_row = frame.size(rows.bytes)?;
        let (to, more) = (number_of(rows.to)?, number_of(more)?);
        let place = frame.take_bytes(more, b.build_int_mul(of_row, twice, "")?)?;
        let bytes = b.build_int_mul(of_row, count, "")?;
        b.build_memcpy(place, 1, arena.taken(asm, to)?, 1, bytes)?;
        arena.replace(asm, frame.func, to, more)?;
        b.build_store(room, twice)?;
        b.build_unconditional_branch(after)?;
        b.position_at_end(after);
        Ok(())
    }

    /// What a trip has left is read by the next one.
    fn turn_taken(&self, turns: &[Turn<'cx>]) -> Result<()> {
        let (frame, asm) = (self.frame, self.frame.asm);
        for turn in turns {
            let &Turn::Taken { current, here, there } = turn else { continue };
            let Some(arena) = &frame.arena else { return Problem::malformed("there is no arena") };
            let memory = arena.replace(asm, frame.func, here, there)?;
            asm.builder.build_store(current, memory)?;
        }
        Ok(())
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
                LoopArgument::Current(at) => match &turns[at] {
                    Turn::Places(turn) => turn.current(),
                    Turn::Taken { current, .. } => {
                        let pointer = asm.cx.ptr_type(inkwell::AddressSpace::default());
                        asm.builder.build_load(pointer, *current, "")?.into_pointer_value()
                    }
                },
                LoopArgument::Next(at) => match &turns[at] {
                    Turn::Places(turn) => turn.next(),
                    Turn::Taken { .. } => self.slot(it.carried[at].there)?,
                },
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
    fn bring(&self, carried: &Carried, turn: &Places<'cx>) -> Result<()> {
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

    /// Copies what a loop was given to memory that is taken, where no trip has left anything.
    fn bring_taken(
        &self,
        carried: &Carried,
        current: PointerValue<'cx>,
        here: usize,
    ) -> Result<()> {
        let (frame, asm) = (self.frame, self.frame.asm);
        let Some(arena) = &frame.arena else { return Problem::malformed("there is no arena") };
        let b = &asm.builder;
        let [copy, after] =
            ["copy", "after"].map(|name| asm.cx.append_basic_block(frame.func, name));
        let left = arena.taken(asm, here)?;
        b.build_conditional_branch(b.build_is_null(left, "")?, copy, after)?;
        b.position_at_end(copy);
        let memory = frame.take(Take { slot: here, bytes: carried.bytes })?;
        let from = b.build_load(memory.get_type(), current, "")?.into_pointer_value();
        b.build_memcpy(memory, 1, from, 1, frame.size(carried.bytes)?)?;
        b.build_unconditional_branch(after)?;
        b.position_at_end(after);
        Ok(())
    }
}

/// Where a carried tensor is before the first trip.
enum First<'cx> {
    /// Where it is read, and the two places that are written in turn.
    Places([PointerValue<'cx>; 3]),
    Taken(Turn<'cx>),
}

/// The number of what is taken at a place.
fn number_of(place: Place) -> Result<usize> {
    match place.base {
        Base::Taken(slot) => Ok(slot),
        _ => Problem::malformed("what is taken has a place of its own"),
    }
}
