//! Memory with room: an input that becomes longer along one axis, in rows that have room for more than is in them.
//!
//! ```text
//! %past: f32[2, p, 16]     rows of a caller's, room*16 floats from one to the next
//! %new: f32[2, n + p, 16]  rows as far apart, or n + p rows of 16 floats where there is less room
//! ```
//!
//! How much room there is follows from the strides of the input; what comes out has as much, or what it needs where that is more.
//! So one buffer may be both, and nothing of it moves.

use std::collections::HashSet;

use super::memory::{Home, PlannedTensor};
use super::sizes::{Size, SizeStep};
use super::{CopiedRows, PlannedAction, Planner, Room, Step, Tensor, Value, malformed};
use tenon_ir::ops::longer_axis;
use tenon_ir::{Args, BinaryOp, Dim, DimView, Type};

/// A tensor as rows along an axis.
struct RowsOf {
    count: Size,
    /// Bytes of one step along the axis.
    unit: Size,
    extent: Size,
}

impl<'a> Planner<'a> {
    /// `memory.room(%new, %past)`: the memory of a result with all the room that the caller gave.
    pub(super) fn room(&mut self, args: Args<'a>, ty: Type) -> Step<Value> {
        let terms = self.body.terms();
        let (Some(new), Some(past)) = (args.get(0), args.get(1)) else {
            return malformed("room for nothing");
        };
        let (Value::Tensor(new), Value::Tensor(past)) = (self.resolve(new)?, self.resolve(past)?)
        else {
            return malformed("room for something that is no tensor");
        };
        let (new, past) = (self.tensors[new], self.tensors[past]);
        let Home::Input(input) = past.memory.home else {
            return malformed("there is room as in something that is no input");
        };
        let Some(axis) = longer_axis(terms, new.ty, ty) else {
            return malformed("there is room along no axis");
        };
        let dim = terms.tensor(ty).map(|(_, dims)| terms.dim(dims[axis]));
        let Some(DimView::Symbol(name)) = dim else { return malformed("room is no symbol") };
        let (rows, before) = (self.rows_of(new.ty, axis)?, self.rows_of(past.ty, axis)?);
        let given = self.sizes.step(SizeStep::Room { input, axis });
        let room = self.sizes.binary(BinaryOp::Max, given, rows.extent);
        if self.symbols.insert(name, room).is_some() {
            let name = terms.str(name);
            return malformed(format!("the dimension `{name}` stands for something else"));
        }
        let span = |planner: &mut Self, room| {
            let row = planner.sizes.binary(BinaryOp::Mul, rows.unit, room);
            planner.sizes.binary(BinaryOp::Mul, rows.count, row)
        };
        let (input_bytes, output_bytes) = (span(self, given), span(self, room));
        let room = Room {
            input,
            output: 0,
            axis,
            given,
            room,
            count: rows.count,
            past: before.extent,
            input_bytes,
            output_bytes,
        };
        let Home::Storage(storage) = new.memory.home else {
            return malformed("there is room in what the function does not make");
        };
        if new.memory.offset > 0 || self.rooms.insert(storage, room).is_some() {
            return malformed("there is room in a part of a storage");
        }
        let memory = PlannedTensor { bytes: output_bytes, room: output_bytes, ..new.memory };
        self.tensors.push(Tensor { memory, ty });
        Ok(Value::Tensor(self.tensors.len() - 1))
    }

    /// Whether a tensor is all of what has room.
    pub(super) fn lies_in_room(&self, memory: PlannedTensor) -> bool {
        let Home::Storage(storage) = memory.home else { return false };
        self.rooms.get(&storage).is_some_and(|room| room.output_bytes == memory.bytes)
    }

    /// The same memory as a tensor of another type. The room of a caller's is no part of what the function makes.
    pub(super) fn tensor_in_room(&mut self, memory: PlannedTensor, ty: Type) -> Step<usize> {
        let bytes = self.bytes(ty)?;
        let memory = PlannedTensor { bytes, room: bytes, ..memory };
        self.tensors.push(Tensor { memory, ty });
        Ok(self.tensors.len() - 1)
    }

    /// A copy of one tensor to the front of another, which is longer along an axis.
    pub(super) fn copy_to_front(&mut self, from: usize, to: usize) -> Step<()> {
        let (source, target) = (self.tensors[from], self.tensors[to]);
        let Some(axis) = longer_axis(self.body.terms(), source.ty, target.ty) else {
            return malformed("a tensor is copied to one of another size");
        };
        let (rows, target_rows) = (self.rows_of(source.ty, axis)?, self.rows_of(target.ty, axis)?);
        let room = match target.memory.home {
            Home::Storage(storage) => self.rooms.get(&storage),
            Home::Input(_) | Home::Constant(_) => None,
        };
        let (given, room) = match room {
            Some(it) if source.memory.home == Home::Input(it.input) => (it.given, it.room),
            Some(_) => return malformed("what has room begins with something else"),
            None => (rows.extent, target_rows.extent),
        };
        let mut bytes = |extent| self.sizes.binary(BinaryOp::Mul, rows.unit, extent);
        let (bytes, from_step, to_step) = (bytes(rows.extent), bytes(given), bytes(room));
        let rows = CopiedRows { count: rows.count, from_step, to_step };
        self.actions.push(PlannedAction::CopyRows { from, to, bytes, rows });
        Ok(())
    }

    /// A tensor as rows: along an axis, and how many.
    fn rows_of(&mut self, ty: Type, axis: usize) -> Step<RowsOf> {
        let terms = self.body.terms();
        let Some((dtype, dims)) = terms.tensor(ty).filter(|(dtype, _)| dtype.bits() % 8 == 0)
        else {
            return malformed("elements below a byte have no rows");
        };
        let mut product = |dims: &[Dim], first: i64| -> Step<Size> {
            let mut product = Size::Known(first);
            for &dim in dims {
                let extent = self.size(dim)?;
                product = self.sizes.binary(BinaryOp::Mul, product, extent);
            }
            Ok(product)
        };
        let count = product(&dims[..axis], 1)?;
        let unit = product(&dims[axis + 1..], i64::from(dtype.bits() / 8))?;
        Ok(RowsOf { count, unit, extent: self.size(dims[axis])? })
    }

    /// The rooms of the function, each with the output that has it.
    pub(super) fn finish_rooms(&mut self, results: &[usize]) -> Step<Vec<Room>> {
        let mut rooms: Vec<Room> = Vec::with_capacity(self.rooms.len());
        let mut inputs: HashSet<usize> = HashSet::new();
        for (output, &tensor) in results.iter().enumerate() {
            let memory = self.tensors[tensor].memory;
            let Home::Storage(storage) = memory.home else { continue };
            if !self.memory.is_output(memory, output) {
                continue;
            }
            if let Some(room) = self.rooms.remove(&storage) {
                if !inputs.insert(room.input) {
                    return malformed("two results have the room of one input");
                }
                rooms.push(Room { output, ..room });
            }
        }
        if !self.rooms.is_empty() {
            return malformed("there is room in what is no result, or is copied to one");
        }
        Ok(rooms)
    }
}
