//! The end of planning: addresses for all tensors, names for inputs and outputs.

use super::{Arg, Base, Copy, Entry, EntryArgument, KernelCall, Place, Plan, Planner, Step};
use crate::ir::{DType, TermView, Type};
use crate::runtime::signature::TensorSpec;

impl Planner<'_> {
    /// Addresses for all, and names for inputs and outputs.
    pub(super) fn finish(&mut self, mut inputs: Vec<TensorSpec>, results: &[usize]) -> Step<Plan> {
        let mut outputs = Vec::with_capacity(results.len());
        let mut copied = Vec::new();
        for (index, &tensor) in results.iter().enumerate() {
            let tensor = self.tensors[tensor];
            let name = if results.len() == 1 { "output".into() } else { format!("output{index}") };
            outputs.push(self.spec(name, tensor.ty)?);
            if !self.memory.give_to_output(tensor.memory, index) && tensor.memory.bytes > 0 {
                copied.push((tensor.memory, index));
            }
        }
        self.rename(&mut inputs, "onnx.inputs");
        self.rename(&mut outputs, "onnx.outputs");
        let workspace = self.memory.lay_out()?;
        let argument = |arg: &Arg, param: Option<Type>| match *arg {
            Arg::Tensor(tensor) => {
                EntryArgument::Memory(self.memory.place(self.tensors[tensor].memory))
            }
            Arg::Scalar(value) => {
                let scalar = param.and_then(|ty| self.body.terms().scalar(ty));
                let dtype = scalar.map_or(DType::I64, |(dtype, _)| dtype);
                EntryArgument::Scalar { dtype, value }
            }
        };
        let calls = self.calls.iter().map(|(kernel, args)| {
            let function = &self.programs[*kernel].1;
            let types = function.params().into_iter().map(|param| function.view().ty(param));
            let args = args.iter().zip(types).map(|(arg, ty)| argument(arg, ty)).collect();
            KernelCall { kernel: *kernel, args }
        });
        let copies = copied.iter().map(|&(tensor, index)| Copy {
            from: self.memory.place(tensor),
            to: Place { base: Base::Output(index), offset: 0 },
            bytes: tensor.bytes,
        });
        let entry = Entry {
            inputs,
            outputs,
            calls: calls.collect(),
            copies: copies.collect(),
            workspace,
            ..Entry::default()
        };
        let programs = std::mem::take(&mut self.programs);
        let (sources, constants) =
            (std::mem::take(&mut self.sources), std::mem::take(&mut self.constants));
        Ok(Plan { entry, programs, sources, constants })
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
