//! The end of planning: addresses for all tensors, names for inputs and outputs.

use std::sync::Arc;

use super::sizes::Size;
use super::{
    Action, Arg, Base, Copy, Entry, EntryArgument, KernelCall, Place, Plan, PlannedAction,
    PlannedCall, Planner, Step, Tensor, Write,
};
use crate::ir::{DType, TermView, Type};
use crate::runtime::signature::TensorSpec;

impl Planner<'_> {
    /// Addresses for all, and names for inputs and outputs.
    pub(super) fn finish(&mut self, mut inputs: Vec<TensorSpec>, results: &[usize]) -> Step<Plan> {
        let mut outputs = Vec::with_capacity(results.len());
        let mut output_shapes = Vec::with_capacity(results.len());
        for (index, &tensor) in results.iter().enumerate() {
            let Tensor { memory, ty } = self.tensors[tensor];
            let name = if results.len() == 1 { "output".into() } else { format!("output{index}") };
            outputs.push(self.spec(name, ty)?);
            output_shapes.push(self.shape(ty)?);
            let is_empty = memory.bytes == Size::Known(0);
            if !self.memory.give_to_output(memory, index) && !is_empty {
                self.actions.push(PlannedAction::Result(tensor, index));
            }
        }
        // A model's function is `main`; others may lie beside it.
        let main = self.module.get_str("main");
        if main.is_some_and(|main| std::ptr::eq(&**main, self.function)) {
            self.rename(&mut inputs, "onnx.inputs");
            self.rename(&mut outputs, "onnx.outputs");
        }
        let workspace = self.memory.lay_out(&mut self.sizes)?;
        self.memory.settle();
        let actions = std::mem::take(&mut self.actions);
        let actions = actions.into_iter().map(|action| self.action(action)).collect();
        let entry = Entry {
            inputs,
            outputs,
            extents: std::mem::take(&mut self.extents),
            output_shapes,
            agreements: std::mem::take(&mut self.agreements),
            actions,
            workspace,
            ..Entry::default()
        };
        let programs = std::mem::take(&mut self.programs);
        let constants = std::mem::take(&mut self.constants);
        let sizes = std::mem::take(&mut self.sizes);
        Ok(Plan { entry, sizes, programs, constants })
    }

    fn action(&mut self, action: PlannedAction) -> Action {
        match action {
            PlannedAction::Call(call) => Action::Call(self.kernel_call(call)),
            PlannedAction::Write(tensor, numbers) => {
                Action::Write(Write { to: self.place(tensor), numbers })
            }
            PlannedAction::Copy(from, to) => {
                let bytes = self.tensors[from].memory.bytes;
                Action::Copy(Copy { from: self.place(from), to: self.place(to), bytes })
            }
            PlannedAction::Result(from, index) => {
                let to = Place { base: Base::Output(index), offset: Size::Known(0) };
                let bytes = self.tensors[from].memory.bytes;
                Action::Copy(Copy { from: self.place(from), to, bytes })
            }
            PlannedAction::Agree(agreement) => Action::Agree(agreement),
            PlannedAction::Choose(condition) => Action::Choose(self.place(condition)),
            PlannedAction::Otherwise => Action::Otherwise,
            PlannedAction::End => Action::End,
        }
    }

    fn place(&mut self, tensor: usize) -> Place {
        self.memory.place(&mut self.sizes, self.tensors[tensor].memory)
    }

    fn kernel_call(&mut self, call: PlannedCall) -> KernelCall {
        let PlannedCall { program: kernel, args, symbols, source } = call;
        let function = Arc::clone(&self.programs[kernel].1);
        let types = function.params().into_iter().map(|param| function.view().ty(param));
        let terms = self.body.terms();
        let argument = |(arg, ty): (Arg, Option<Type>)| match arg {
            Arg::Tensor(tensor) => EntryArgument::Memory(self.place(tensor)),
            Arg::Scalar(value) => {
                let scalar = ty.and_then(|ty| terms.scalar(ty));
                let dtype = scalar.map_or(DType::I64, |(dtype, _)| dtype);
                EntryArgument::Scalar { dtype, value }
            }
        };
        let args = args.into_iter().zip(types).map(argument).collect();
        KernelCall { kernel, args, symbols, source }
    }

    /// The extents of a type.
    fn shape(&mut self, ty: Type) -> Step<Vec<Size>> {
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
