//! The end of planning: addresses for all tensors, names for inputs and outputs.

use std::collections::HashSet;

use super::in_place::in_place;
use super::memory::{Home, TakenOutput};
use super::sizes::Size;
use super::taken::give_back;
use super::{
    Action, Arg, Base, Body, Call, Callee, Copy, Entry, EntryArgument, Find, FoundExtent, Place,
    PlannedAction, PlannedCall, Planner, Step, Take, Tensor, Write, malformed,
};
use tenon_ir::{DType, TermView, Type};
use tenon_runtime::signature::TensorSpec;

/// The bytes of inputs; none of those that are sizes alone.
fn inputs_of(tensors: &[Tensor], count: usize) -> Vec<Size> {
    let mut bytes = vec![Size::Known(0); count];
    for Tensor { memory, .. } in tensors {
        // What is not a view comes first.
        if let Home::Input(input) = memory.home
            && memory.offset == 0
            && bytes[input] == Size::Known(0)
        {
            bytes[input] = memory.bytes;
        }
    }
    bytes
}

impl Planner<'_> {
    /// Addresses for all, and names for inputs and outputs.
    pub(super) fn finish(&mut self, mut inputs: Vec<TensorSpec>, results: &[usize]) -> Step<Entry> {
        let mut outputs = Vec::with_capacity(results.len());
        let mut output_shapes = Vec::with_capacity(results.len());
        let mut found = Vec::new();
        for (index, &tensor) in results.iter().enumerate() {
            let ty = self.tensors[tensor].ty;
            let name = if results.len() == 1 { "output".into() } else { format!("output{index}") };
            outputs.push(self.spec(name, ty)?);
            let shape = self.shape(ty)?;
            for (axis, &extent) in shape.iter().enumerate() {
                if self.sizes.is_found(extent) {
                    found.push(FoundExtent { output: index, axis, extent });
                }
            }
            let most = |extent| match self.sizes.is_open(extent) {
                true => Size::Known(-1),
                false => self.sizes.most(extent),
            };
            output_shapes.push(shape.into_iter().map(most).collect());
        }
        // A model's function is `main`; others may lie beside it.
        let main = self.module.get_str("main");
        if main.is_some_and(|main| std::ptr::eq(&**main, self.function)) {
            self.rename(&mut inputs, "onnx.inputs");
            self.rename(&mut outputs, "onnx.outputs");
        }
        let (mut body, taken) = self.finish_body(results, None)?;
        let rooms = self.finish_rooms(results)?;
        let mut input_bytes = inputs_of(&self.tensors, inputs.len());
        let mut output_bytes: Vec<Size> =
            results.iter().map(|&tensor| self.tensors[tensor].memory.room).collect();
        // They have no memory before, and what they have then nobody else has.
        taken.iter().for_each(|it| output_bytes[it.output] = Size::Known(0));
        let is_same = |[input, output]: [usize; 2]| {
            let (input, output) = (&inputs[input], &outputs[output]);
            (input.dtype, &input.shape) == (output.dtype, &output.shape)
        };
        let in_place = in_place(&mut body.actions, [&input_bytes, &output_bytes], is_same, &rooms);
        let updated: HashSet<[usize; 2]> = in_place.iter().copied().collect();
        for room in &rooms {
            if !updated.contains(&[room.input, room.output]) {
                return malformed("an input is read behind what it is put into");
            }
            input_bytes[room.input] = room.input_bytes;
            output_bytes[room.output] = room.output_bytes;
        }
        Ok(Entry {
            in_place,
            rooms,
            input_bytes,
            output_bytes,
            inputs,
            outputs,
            body,
            extents: std::mem::take(&mut self.extents),
            output_shapes,
            found,
            taken,
            agreements: std::mem::take(&mut self.agreements),
            ..Entry::default()
        })
    }

    /// Addresses for all that is done, with results that become outputs.
    /// Beside them are the outputs that are taken.
    /// They are those whose types say nothing of their sizes, in `types` or where these are not given, as far as the inputs say it.
    pub(super) fn finish_body(
        &mut self,
        results: &[usize],
        types: Option<&[Type]>,
    ) -> Step<(Body, Vec<TakenOutput>)> {
        for (index, &tensor) in results.iter().enumerate() {
            let is_taken = match types {
                Some(types) => types.get(index).is_some_and(|&ty| self.is_unsized(ty)),
                None => self.is_open(self.tensors[tensor].ty)?,
            };
            if is_taken {
                self.take_output(tensor, index)?;
                continue;
            }
            let memory = self.tensors[tensor].memory;
            let is_empty = memory.bytes == Size::Known(0);
            if !self.memory.give_to_output(&self.sizes, memory, index) && !is_empty {
                self.actions.push(PlannedAction::Result(tensor, index));
            }
        }
        let workspace = self.memory.lay_out(&mut self.sizes)?;
        self.memory.settle();
        let actions = std::mem::take(&mut self.actions);
        let actions = actions.into_iter().filter_map(|action| self.action(action)).collect();
        let (slots, taken) = self.memory.slots();
        let actions = give_back(actions, slots, &taken);
        // Whether or not it does so in the end: what it calls may need more on one processor than on another.
        let takes = self.sizes.has_open() || slots > 0;
        Ok((Body { actions, workspace, slots, takes, ..Body::default() }, taken))
    }

    /// What is done; nothing for memory that needs not be taken.
    fn action(&mut self, action: PlannedAction) -> Option<Action> {
        Some(match action {
            PlannedAction::Call(call) => Action::Call(self.address_call(call)),
            PlannedAction::Write(tensor, numbers) => {
                Action::Write(Write { to: self.place(tensor), numbers })
            }
            PlannedAction::Copy(from, to) => {
                let bytes = self.tensors[from].memory.bytes;
                Action::Copy(Copy::new(self.place(from), self.place(to), bytes))
            }
            PlannedAction::CopyRows { from, to, bytes, rows } => {
                let (from, to) = (self.place(from), self.place(to));
                Action::Copy(Copy { rows: Some(rows), ..Copy::new(from, to, bytes) })
            }
            PlannedAction::Result(from, index) => {
                let to = Place { base: Base::Output(index), offset: Size::Known(0) };
                let bytes = self.tensors[from].memory.bytes;
                Action::Copy(Copy::new(self.place(from), to, bytes))
            }
            PlannedAction::Agree(agreement, check) => Action::Agree(agreement, check),
            PlannedAction::Find { from, at, size } => {
                Action::Find(Find { from: self.place(from), at, size })
            }
            PlannedAction::Take(storage) => {
                let (slot, bytes) = self.memory.to_take(storage)?;
                Action::Take(Take { slot, bytes })
            }
            PlannedAction::TakeFor(tensor, bytes) => {
                Action::Take(Take { slot: self.slot(tensor)?, bytes })
            }
            PlannedAction::Keep(tensor) => Action::Keep(self.slot(tensor)?),
            PlannedAction::Expect(truth, check) => Action::Expect(self.place(truth), check),
            PlannedAction::Choose(condition) => Action::Choose(self.place(condition)),
            PlannedAction::Otherwise => Action::Otherwise,
            PlannedAction::End => Action::End,
            PlannedAction::Loop(planned) => Action::Loop(Box::new(self.address_loop(*planned))),
        })
    }

    pub(super) fn place(&mut self, tensor: usize) -> Place {
        self.memory.place(&mut self.sizes, self.tensors[tensor].memory)
    }

    fn address_call(&mut self, call: PlannedCall) -> Call {
        let PlannedCall { callee, args, symbols, source } = call;
        let types: Vec<Option<Type>> = match callee {
            Callee::Kernel(kernel) => {
                let function = &self.shared.programs[kernel].1;
                function.params().into_iter().map(|param| function.view().ty(param)).collect()
            }
            Callee::Routine(_) => Vec::new(),
        };
        let terms = self.body.terms();
        let argument = |(index, arg): (usize, Arg)| match arg {
            Arg::Tensor(tensor) => EntryArgument::Memory(self.place(tensor)),
            Arg::Taken(tensor) => EntryArgument::Taken(self.place(tensor)),
            Arg::Scalar(value) => {
                let ty = types.get(index).copied().flatten();
                let scalar = ty.and_then(|ty| terms.scalar(ty));
                let dtype = scalar.map_or(DType::I64, |(dtype, _)| dtype);
                EntryArgument::Scalar { dtype, value }
            }
        };
        let args = args.into_iter().enumerate().map(argument).collect();
        Call { callee, args, symbols, source, lent: None }
    }

    /// The extents of a type.
    pub(super) fn shape(&mut self, ty: Type) -> Step<Vec<Size>> {
        let dims = self.body.terms().tensor(ty).map_or(&[][..], |(_, dims)| dims);
        dims.iter().map(|&dim| self.size(dim)).collect()
    }

    /// Gives the names that the module's attribute `key` lists, where it lists as many.
    fn rename(&self, specs: &mut [TensorSpec], key: &str) {
        let terms = self.body.terms();
        let TermView::List(names) =
            terms.attrs(self.module.attrs).get(key).unwrap_or(TermView::None)
        else {
            return;
        };
        let names: Vec<&str> = names
            .iter()
            .filter_map(|&name| match terms.view(name) {
                TermView::Str(name) => Some(name),
                _ => None,
            })
            .collect();
        if names.len() == specs.len() {
            specs.iter_mut().zip(names).for_each(|(spec, name)| spec.name = name.to_owned());
        }
    }
}
