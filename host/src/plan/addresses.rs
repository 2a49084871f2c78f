//! The end of planning: addresses for all tensors, names for inputs and outputs.

use super::memory::PlannedTensor;
use super::sizes::Size;
use super::{
    Arg, Base, Copy, Entry, EntryArgument, KernelCall, Place, Plan, PlannedCall, Planner, Step,
    Write,
};
use crate::ir::{DType, TermView, Type};
use crate::runtime::signature::TensorSpec;

impl Planner<'_> {
    /// Addresses for all, and names for inputs and outputs.
    pub(super) fn finish(&mut self, mut inputs: Vec<TensorSpec>, results: &[usize]) -> Step<Plan> {
        let mut outputs = Vec::with_capacity(results.len());
        let mut copied = Vec::new();
        let mut output_shapes = Vec::with_capacity(results.len());
        for (index, &tensor) in results.iter().enumerate() {
            let tensor = self.tensors[tensor];
            let name = if results.len() == 1 { "output".into() } else { format!("output{index}") };
            outputs.push(self.spec(name, tensor.ty)?);
            output_shapes.push(self.shape(tensor.ty)?);
            let is_empty = tensor.memory.bytes == Size::Known(0);
            if !self.memory.give_to_output(tensor.memory, index) && !is_empty {
                copied.push((tensor.memory, index));
            }
        }
        // A model's function is `main`; others may lie beside it.
        let main = self.module.get_str("main");
        if main.is_some_and(|main| std::ptr::eq(&**main, self.function)) {
            self.rename(&mut inputs, "onnx.inputs");
            self.rename(&mut outputs, "onnx.outputs");
        }
        let workspace = self.memory.lay_out(&mut self.sizes)?;
        let calls = std::mem::take(&mut self.calls);
        let calls = calls.into_iter().map(|call| self.kernel_call(call)).collect();
        let copy = |&(tensor, index): &(PlannedTensor, usize)| Copy {
            from: self.memory.place(&mut self.sizes, tensor),
            to: Place { base: Base::Output(index), offset: Size::Known(0) },
            bytes: tensor.bytes,
        };
        let copies = copied.iter().map(copy).collect();
        let agreements = std::mem::take(&mut self.agreements);
        let agreements = agreements.into_iter().chain(self.memory.agreements.drain(..)).collect();
        let extents = std::mem::take(&mut self.extents);
        let writes = std::mem::take(&mut self.writes).into_iter().map(|(tensor, numbers)| {
            let tensor = self.tensors[tensor].memory;
            Write { to: self.memory.place(&mut self.sizes, tensor), numbers }
        });
        let writes = writes.collect();
        let entry = Entry {
            inputs,
            outputs,
            extents,
            output_shapes,
            agreements,
            writes,
            calls,
            copies,
            workspace,
            ..Entry::default()
        };
        let programs = std::mem::take(&mut self.programs);
        let (sources, constants) =
            (std::mem::take(&mut self.sources), std::mem::take(&mut self.constants));
        let sizes = std::mem::take(&mut self.sizes);
        Ok(Plan { entry, sizes, programs, sources, constants })
    }

    fn kernel_call(&mut self, call: PlannedCall) -> KernelCall {
        let PlannedCall { program: kernel, args, symbols } = call;
        let function = &self.programs[kernel].1;
        let types = function.params().into_iter().map(|param| function.view().ty(param));
        let terms = self.body.terms();
        let argument = |(arg, ty): (Arg, Option<Type>)| match arg {
            Arg::Tensor(tensor) => {
                let memory = self.tensors[tensor].memory;
                EntryArgument::Memory(self.memory.place(&mut self.sizes, memory))
            }
            Arg::Scalar(value) => {
                let scalar = ty.and_then(|ty| terms.scalar(ty));
                let dtype = scalar.map_or(DType::I64, |(dtype, _)| dtype);
                EntryArgument::Scalar { dtype, value }
            }
        };
        let args = args.into_iter().zip(types).map(argument).collect();
        KernelCall { kernel, args, symbols }
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
