//! What the functions that users call have in common: checks of tensors. The numbers of the function ([`Frame`]) are
//! computed behind the checks of the inputs, from their extents.

use std::collections::HashMap;
use std::ops::Deref;

use inkwell::{
    AddressSpace, IntPredicate,
    module::Linkage,
    values::{BasicValueEnum, FunctionValue, GlobalValue, IntValue, PointerValue},
};

use super::{
    assembler::Assembler,
    check::TensorLayout,
    error::{Problem, Result},
    frame::Frame,
};
use crate::{
    backend::llvm::attributes::decorate,
    plan::{Body, Entry, LARGEST_EXTENT, RangedSize, Size, SizeStep},
    target::Target,
};
use tenon_runtime::{
    dlpack::DataType,
    signature::{TensorSpec, data_type},
    status::Failure,
};

/// A function that users call, while it is emitted.
pub(super) struct Interface<'cx, 'a> {
    pub(super) frame: Frame<'cx, 'a>,
    entry: &'a Entry,
    check: FunctionValue<'cx>,
}

impl<'cx, 'a> Deref for Interface<'cx, 'a> {
    type Target = Frame<'cx, 'a>;

    fn deref(&self) -> &Frame<'cx, 'a> {
        &self.frame
    }
}

/// The axis of room of a tensor that has no memory yet.
const TAKEN: i64 = -2;

/// A tensor that was checked.
pub(super) struct Given<'cx> {
    /// Its first element.
    pub(super) data: PointerValue<'cx>,
    /// Its extents.
    shape: PointerValue<'cx>,
    /// How much room its rows have, where it is one that has any.
    room: Option<IntValue<'cx>>,
}

/// Where things lie in a `DLTensor` of the target.
pub(super) fn layout(target: &Target) -> TensorLayout {
    TensorLayout::new(target.architecture().pointer_bytes())
}

impl<'cx, 'a> Interface<'cx, 'a> {
    /// The function `symbol` of `params` pointers.
    pub(super) fn new(
        asm: &'a Assembler<'cx, 'a>,
        entry: &'a Entry,
        body: &'a Body,
        symbol: &str,
        params: usize,
    ) -> Result<Self> {
        let pointer = asm.cx.ptr_type(AddressSpace::default());
        let ty = asm.cx.i32_type().fn_type(&vec![pointer.into(); params], false);
        let func = asm.module.add_function(symbol, ty, None);
        let Some(check) = asm.module.get_function("tenon.check") else {
            return Problem::malformed("the check of arguments is missing");
        };
        decorate(check, asm.target);
        Ok(Interface { frame: Frame::new(asm, body, func)?, entry, check })
    }

    /// Checks the inputs, and computes all numbers.
    pub(super) fn inputs(&mut self, array: PointerValue<'cx>) -> Result<Vec<Given<'cx>>> {
        let rooms = self.entry.rooms.iter().map(|it| (it.input, (it.axis, None))).collect();
        let inputs = self.tensors(array, &self.entry.inputs, 0, &rooms, &[])?;
        self.frame.compute(&|frame, step| match *step {
            SizeStep::Extent { input, axis } => inputs[input].extent(frame.asm, axis),
            SizeStep::Room { input, .. } => match inputs[input].room {
                Some(room) => Ok(room),
                None => Problem::malformed("an input has no room"),
            },
            SizeStep::Element { input, at, least } => inputs[input].size(frame, (input, at), least),
            _ => Problem::malformed("the entry is given no numbers"),
        })?;
        for given in &self.entry.extents {
            let (found, expected) =
                (inputs[given.input].extent(self.asm, given.axis)?, self.size(given.expected)?);
            self.differ(found, expected, Failure::Shape.of_argument(given.input))?;
        }
        for ranged in &self.entry.ranges {
            self.check_range(ranged)?;
        }
        self.entry.agreements.iter().try_for_each(|&(what, check)| self.agree(what, check))?;
        Ok(inputs)
    }

    /// Checks that a number is one that the function is made for.
    fn check_range(&self, ranged: &RangedSize) -> Result<()> {
        let (asm, size) = (self.asm, self.size(ranged.size)?);
        let limits =
            [(IntPredicate::SLT, Some(ranged.range.least)), (IntPredicate::SGT, ranged.range.most)];
        for (predicate, limit) in limits {
            let Some(limit) = limit else { continue };
            let is_bad = asm.builder.build_int_compare(predicate, size, asm.index(limit), "")?;
            self.fail_if(is_bad, self.code(Failure::Range as i32))?;
        }
        Ok(())
    }

    /// Checks the outputs.
    pub(super) fn outputs(&self, array: PointerValue<'cx>) -> Result<Vec<Given<'cx>>> {
        let first = self.entry.inputs.len();
        let rooms =
            self.entry.rooms.iter().map(|it| (it.output, (it.axis, Some(it.room)))).collect();
        let taken: Vec<usize> = self.entry.taken.iter().map(|it| it.output).collect();
        let outputs = self.tensors(array, &self.entry.outputs, first, &rooms, &taken)?;
        let shapes = outputs.iter().zip(&self.entry.output_shapes);
        for (index, (output, shape)) in shapes.enumerate() {
            if taken.contains(&index) {
                continue;
            }
            let told = &self.entry.outputs[index].shape;
            for (axis, &expected) in shape.iter().enumerate() {
                if told[axis].known().is_none() {
                    let found = output.extent(self.asm, axis)?;
                    let status = Failure::Shape.of_argument(first + index);
                    self.differ(found, self.size(expected)?, status)?;
                }
            }
        }
        Ok(outputs)
    }

    /// Checks that there is something to take memory from.
    pub(super) fn check_arena(&self) -> Result<()> {
        let Some(arena) = &self.frame.arena else { return Ok(()) };
        let is_null = self.asm.builder.build_is_null(arena.table, "")?;
        self.fail_if(is_null, self.code(Failure::Limit as i32))
    }

    /// Leaves outputs that were taken to the caller: their addresses and shapes, dense.
    pub(super) fn give_taken(
        &self,
        array: PointerValue<'cx>,
        outputs: &[Given<'cx>],
    ) -> Result<()> {
        let Some(arena) = &self.frame.arena else { return Ok(()) };
        let (asm, b) = (self.asm, &self.asm.builder);
        let layout = layout(asm.target);
        let pointer = asm.cx.ptr_type(AddressSpace::default());
        for it in &self.entry.taken {
            let memory = arena.taken(asm, it.slot)?;
            let at = |field: u32| {
                let offset = it.output as i64 * i64::from(layout.size()) + i64::from(field);
                asm.element(array, asm.cx.i8_type().into(), asm.index(offset))
            };
            self.write(outputs[it.output].shape, &it.shape)?;
            b.build_store(at(0)?, memory)?;
            b.build_store(at(layout.strides())?, pointer.const_null())?;
            asm.store(at(layout.offset())?, asm.index(0).into(), 8)?;
        }
        Ok(())
    }

    /// Checks that what becomes longer where it is has the same room before and after: else rows would not be where they are.
    pub(super) fn check_rooms(&self, inputs: &[Given<'cx>], outputs: &[Given<'cx>]) -> Result<()> {
        let (asm, b) = (self.asm, &self.asm.builder);
        let int = asm.cx.i64_type();
        for room in &self.entry.rooms {
            let [from, to] = [inputs[room.input].data, outputs[room.output].data]
                .map(|data| b.build_ptr_to_int(data, int, ""));
            let is_one = b.build_int_compare(IntPredicate::EQ, from?, to?, "")?;
            let (given, now) = (self.size(room.given)?, self.size(room.room)?);
            let moves = b.build_int_compare(IntPredicate::NE, given, now, "")?;
            let is_some =
                b.build_int_compare(IntPredicate::NE, self.size(room.past)?, asm.index(0), "")?;
            let are_rows =
                b.build_int_compare(IntPredicate::SGT, self.size(room.count)?, asm.index(1), "")?;
            let is_bad = b.build_and(is_one, moves, "")?;
            let is_bad = b.build_and(is_bad, b.build_and(is_some, are_rows, "")?, "")?;
            let argument = self.entry.inputs.len() + room.output;
            self.fail_if(is_bad, self.code(Failure::Alias.of_argument(argument)))?;
        }
        Ok(())
    }

    /// Checks that no output has a byte in common with anything else, but for one that is an input which is updated in place.
    pub(super) fn check_apart(&self, inputs: &[Given<'cx>], outputs: &[Given<'cx>]) -> Result<()> {
        let (asm, b) = (self.asm, &self.asm.builder);
        let Some(apart) = asm.module.get_function("tenon.apart") else {
            return Problem::malformed("the check of buffers is missing");
        };
        decorate(apart, asm.target);
        let int = asm.cx.i64_type();
        let sizes = self.entry.input_bytes.iter().chain(&self.entry.output_bytes);
        let count = inputs.len() + outputs.len();
        let spans = b.build_alloca(int.array_type(2 * count as u32), "")?;
        for (at, (given, &bytes)) in inputs.iter().chain(outputs).zip(sizes).enumerate() {
            let begin = b.build_ptr_to_int(given.data, int, "")?;
            for (word, value) in [begin, self.size(bytes)?].into_iter().enumerate() {
                let place = asm.element(spans, int.into(), asm.index((2 * at + word) as i64))?;
                asm.store(place, value.into(), 8)?;
            }
        }
        let mate = |output: usize| {
            let pair = self.entry.in_place.iter().find(|pair| pair[1] == output);
            asm.index(pair.map_or(-1, |pair| pair[0] as i64))
        };
        let mates = int.const_array(&(0..outputs.len()).map(mate).collect::<Vec<_>>());
        let global = asm.module.add_global(mates.get_type(), None, "mates");
        global.set_initializer(&mates);
        global.set_constant(true);
        global.set_linkage(Linkage::Private);
        let numbers = [inputs.len(), count].map(|number| asm.index(number as i64).into());
        let args = [spans.into(), numbers[0], numbers[1], global.as_pointer_value().into()];
        let call = b.build_call(apart, &args, "")?.try_as_basic_value().basic();
        let Some(BasicValueEnum::IntValue(argument)) = call else {
            return Problem::malformed("the check of buffers has no result");
        };
        let zero = asm.cx.i32_type().const_zero();
        let is_bad = b.build_int_compare(IntPredicate::NE, argument, zero, "")?;
        let argument = b.build_left_shift(argument, self.code(8), "")?;
        let status = b.build_or(argument, self.code(Failure::Alias as i32), "")?;
        self.fail_if(is_bad, status)
    }

    /// Writes the extents of outputs that were found to where the caller has their shapes.
    pub(super) fn tell(&self, outputs: &[Given<'cx>]) -> Result<()> {
        for found in &self.entry.found {
            let int = self.asm.cx.i64_type().into();
            let axis = self.asm.index(found.axis as i64);
            let place = self.asm.element(outputs[found.output].shape, int, axis)?;
            self.asm.store(place, self.size(found.extent)?.into(), 8)?;
        }
        Ok(())
    }

    /// Checks an array of `DLTensor`, but for extents that are not known. `rooms` are those that have room along an axis: as much as
    /// is said, or as their own strides say. Of those that are `taken` nothing but rank and element type says anything yet.
    fn tensors(
        &self,
        array: PointerValue<'cx>,
        specs: &[TensorSpec],
        first: usize,
        rooms: &HashMap<usize, (usize, Option<Size>)>,
        taken: &[usize],
    ) -> Result<Vec<Given<'cx>>> {
        if specs.is_empty() {
            return Ok(Vec::new());
        }
        let is_null = self.asm.builder.build_is_null(array, "")?;
        self.fail_if(is_null, self.code(Failure::Null as i32))?;
        let byte = self.asm.cx.i8_type().into();
        let pointer = self.asm.cx.ptr_type(AddressSpace::default());
        let layout = layout(self.asm.target);
        let mut given = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            let at = |offset: u32| {
                let offset = index as i64 * i64::from(layout.size()) + i64::from(offset);
                self.asm.element(array, byte, self.asm.index(offset))
            };
            let tensor = at(0)?;
            let spec = self.spec(spec)?.as_pointer_value();
            let (axis, room) = match rooms.get(&index) {
                Some(&(axis, Some(room))) => (axis as i64, Some(self.size(room)?)),
                Some(&(axis, None)) => {
                    let rank = specs[index].shape.len();
                    (axis as i64, Some(self.room_of(tensor, rank, axis)?))
                }
                None if taken.contains(&index) => (TAKEN, None),
                None => (-1, None),
            };
            let (axis, length) = (self.asm.index(axis), room.unwrap_or(self.asm.index(0)));
            let args = [tensor.into(), spec.into(), axis.into(), length.into()];
            let call = self.asm.builder.build_call(self.check, &args, "")?;
            let Some(BasicValueEnum::IntValue(code)) = call.try_as_basic_value().basic() else {
                return Problem::malformed("the check has no result");
            };
            let zero = self.asm.cx.i32_type().const_zero();
            let is_bad = self.asm.builder.build_int_compare(IntPredicate::NE, code, zero, "")?;
            let argument = self.code((first + index + 1) as i32 * 256);
            let status = self.asm.builder.build_or(code, argument, "")?;
            self.fail_if(is_bad, status)?;
            let data = self.asm.load(pointer.into(), tensor, 8)?.into_pointer_value();
            let offset = self.asm.load(self.asm.cx.i64_type().into(), at(layout.offset())?, 8)?;
            let data = self.asm.element(data, byte, offset.into_int_value())?;
            let shape = self.asm.load(pointer.into(), at(layout.shape())?, 4)?;
            given.push(Given { data, shape: shape.into_pointer_value(), room });
        }
        Ok(given)
    }

    /// How much room there is along an axis of a tensor of a caller's.
    fn room_of(
        &self,
        tensor: PointerValue<'cx>,
        rank: usize,
        axis: usize,
    ) -> Result<IntValue<'cx>> {
        let asm = self.asm;
        let Some(room) = asm.module.get_function("tenon.room") else {
            return Problem::malformed("what finds room is missing");
        };
        decorate(room, asm.target);
        let args = [tensor.into(), self.code(rank as i32).into(), asm.index(axis as i64).into()];
        match asm.builder.build_call(room, &args, "")?.try_as_basic_value().basic() {
            Some(BasicValueEnum::IntValue(room)) => Ok(room),
            _ => Problem::malformed("what finds room has no result"),
        }
    }

    /// What `check` compares a tensor with.
    fn spec(&self, spec: &TensorSpec) -> Result<GlobalValue<'cx>> {
        let cx = self.asm.cx;
        let (short, long) = (cx.i32_type(), cx.i64_type());
        let Some(DataType { code, bits, lanes }) = data_type(spec.dtype) else {
            let what = format!("argument {spec}");
            return Problem::unsupported(what, "DLPack has no such type");
        };
        let dtype = u32::from(code) | u32::from(bits) << 8 | u32::from(lanes) << 16;
        let extents = spec.shape.iter().map(|extent| extent.known().unwrap_or(-1));
        let shape: Vec<IntValue<'cx>> = extents.map(|extent| self.asm.index(extent)).collect();
        let value = cx.const_struct(
            &[
                short.const_int(spec.shape.len() as u64, false).into(),
                short.const_int(u64::from(dtype), false).into(),
                long.const_int(u64::from(bits.div_ceil(8)), false).into(),
                long.const_array(&shape).into(),
            ],
            false,
        );
        let global = self.asm.module.add_global(value.get_type(), None, "spec");
        global.set_initializer(&value);
        global.set_constant(true);
        global.set_linkage(Linkage::Private);
        Ok(global)
    }
}

impl<'cx> Given<'cx> {
    /// An element that is a size, and not below `least`.
    fn size(
        &self,
        frame: &Frame<'cx, '_>,
        (input, at): (usize, usize),
        least: i64,
    ) -> Result<IntValue<'cx>> {
        let asm = frame.asm;
        let int = asm.cx.i64_type().into();
        let place = asm.element(self.data, int, asm.index(at as i64))?;
        let size = asm.load(int, place, 8)?.into_int_value();
        let room = asm.index(LARGEST_EXTENT - least);
        let above = match least {
            0 => size,
            least => asm.builder.build_int_sub(size, asm.index(least), "")?,
        };
        let is_bad = asm.builder.build_int_compare(IntPredicate::UGT, above, room, "")?;
        frame.fail_if(is_bad, frame.code(Failure::Value.of_argument(input)))?;
        Ok(size)
    }

    /// The extent of an axis as the caller gave it.
    fn extent(&self, asm: &Assembler<'cx, '_>, axis: usize) -> Result<IntValue<'cx>> {
        let int = asm.cx.i64_type().into();
        let place = asm.element(self.shape, int, asm.index(axis as i64))?;
        Ok(asm.load(int, place, 8)?.into_int_value())
    }
}
