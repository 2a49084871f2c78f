//! What a planned function does, as code: calls with addresses that are known up to the start of an argument, a constant
//! or the workspace, copies, and choices.

use inkwell::{
    AddressSpace, IntPredicate,
    basic_block::BasicBlock,
    types::BasicMetadataTypeEnum,
    values::{
        BasicMetadataValueEnum, BasicValueEnum, FunctionValue, GlobalValue, IntValue, PointerValue,
    },
};

use super::{
    error::{Problem, Result},
    interface::Interface,
    scratch::ALIGN,
    value::{Class, Value},
};
use crate::{
    backend::llvm::attributes::decorate,
    ir::DType,
    plan::{Action, Base, Copy, EntryArgument, KernelCall, Place, Size},
    runtime::{profile::MARK, status::Failure},
};

/// A function whose actions are emitted.
pub(super) struct Actions<'cx, 'a> {
    interface: &'a Interface<'cx, 'a>,
    /// Where the elements of inputs and outputs lie.
    inputs: Vec<PointerValue<'cx>>,
    outputs: Vec<PointerValue<'cx>>,
    workspace: PointerValue<'cx>,
    parallel: PointerValue<'cx>,
    constants: Vec<GlobalValue<'cx>>,
    kernels: Vec<Option<FunctionValue<'cx>>>,
    /// What takes note of the time, where it is wanted.
    mark: Option<FunctionValue<'cx>>,
    /// The calls that were emitted.
    calls: usize,
    /// The choices that are open.
    choices: Vec<Choice<'cx>>,
}

struct Choice<'cx> {
    /// Where the other branch begins.
    otherwise: BasicBlock<'cx>,
    end: BasicBlock<'cx>,
}

impl<'cx, 'a> Actions<'cx, 'a> {
    pub(super) fn new(
        interface: &'a Interface<'cx, 'a>,
        inputs: Vec<PointerValue<'cx>>,
        outputs: Vec<PointerValue<'cx>>,
        workspace: PointerValue<'cx>,
        parallel: PointerValue<'cx>,
    ) -> Result<Self> {
        let (asm, entry) = (interface.asm, interface.entry);
        let constants = entry.constants.iter().map(|symbol| {
            // Seen through the GOT, so that they may be anywhere.
            let constant = asm.module.add_global(asm.cx.i8_type(), None, symbol);
            constant.set_constant(true);
            constant.set_alignment(ALIGN as u32);
            constant
        });
        let constants = constants.collect();
        let mark = entry.is_profiled.then(|| {
            let number = asm.cx.i64_type().into();
            asm.module.add_function(MARK, asm.cx.void_type().fn_type(&[number], false), None)
        });
        Ok(Actions {
            interface,
            inputs,
            outputs,
            workspace,
            parallel,
            constants,
            kernels: declare_kernels(interface)?,
            mark,
            calls: 0,
            choices: Vec::new(),
        })
    }

    pub(super) fn emit(mut self, actions: &[Action]) -> Result<()> {
        self.mark()?;
        actions.iter().try_for_each(|action| self.action(action))
    }

    fn action(&mut self, action: &Action) -> Result<()> {
        match action {
            Action::Call(call) => {
                self.call(call)?;
                self.calls += 1;
                self.mark()
            }
            Action::Write(write) => self.interface.write(self.address(write.to)?, &write.numbers),
            Action::Copy(copy) => self.copy(copy),
            &Action::Agree(agreement) => self.interface.agree(agreement),
            &Action::Choose(condition) => self.choose(condition),
            Action::Otherwise => self.otherwise(),
            Action::End => self.end(),
        }
    }

    /// Takes note of the time behind so many calls.
    fn mark(&self) -> Result<()> {
        if let Some(mark) = self.mark {
            let asm = self.interface.asm;
            asm.builder.build_call(mark, &[asm.index(self.calls as i64).into()], "")?;
        }
        Ok(())
    }

    fn copy(&self, copy: &Copy) -> Result<()> {
        let (from, to) = (self.address(copy.from)?, self.address(copy.to)?);
        let bytes = self.interface.size(copy.bytes)?;
        self.interface.asm.builder.build_memcpy(to, 1, from, 1, bytes)?;
        Ok(())
    }

    fn choose(&mut self, condition: Place) -> Result<()> {
        let asm = self.interface.asm;
        let byte = asm.load(asm.cx.i8_type().into(), self.address(condition)?, 1)?;
        let zero = asm.cx.i8_type().const_zero();
        let is_true =
            asm.builder.build_int_compare(IntPredicate::NE, byte.into_int_value(), zero, "")?;
        let [then, otherwise, end] = ["then", "otherwise", "end"]
            .map(|name| asm.cx.append_basic_block(self.interface.func, name));
        asm.builder.build_conditional_branch(is_true, then, otherwise)?;
        asm.builder.position_at_end(then);
        self.choices.push(Choice { otherwise, end });
        Ok(())
    }

    fn otherwise(&self) -> Result<()> {
        let Some(choice) = self.choices.last() else { return Problem::malformed("no choice") };
        let b = &self.interface.asm.builder;
        b.build_unconditional_branch(choice.end)?;
        b.position_at_end(choice.otherwise);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let Some(choice) = self.choices.pop() else { return Problem::malformed("no choice") };
        let b = &self.interface.asm.builder;
        b.build_unconditional_branch(choice.end)?;
        b.position_at_end(choice.end);
        Ok(())
    }

    fn call(&self, call: &KernelCall) -> Result<()> {
        let Some(&Some(kernel)) = self.kernels.get(call.kernel) else {
            return Problem::malformed("a call of no kernel");
        };
        let (interface, asm) = (self.interface, self.interface.asm);
        let count = call.args.len() + call.symbols.len() + 2;
        let mut args: Vec<BasicMetadataValueEnum<'cx>> = Vec::with_capacity(count);
        for &arg in &call.args {
            args.push(match arg {
                EntryArgument::Memory(place) => self.address(place)?.into(),
                EntryArgument::Scalar { dtype, value } => self.scalar(dtype, value)?.into(),
            });
        }
        for &symbol in &call.symbols {
            args.push(interface.size(symbol)?.into());
        }
        let scratch = Place { base: Base::Workspace, offset: interface.entry.scratch };
        args.extend([self.address(scratch)?.into(), BasicMetadataValueEnum::from(self.parallel)]);
        let status = status_of(asm.builder.build_call(kernel, &args, "")?)?;
        let zero = asm.cx.i32_type().const_zero();
        let is_bad = asm.builder.build_int_compare(IntPredicate::NE, status, zero, "")?;
        interface.fail_if(is_bad, interface.code(Failure::Threads as i32))
    }

    fn scalar(&self, dtype: DType, value: Size) -> Result<BasicValueEnum<'cx>> {
        let asm = self.interface.asm;
        match value {
            Size::Known(value) => asm.int_of(Class::of(dtype)?.register(asm.cx), value),
            Size::Computed(_) => {
                let number = Value::scalar(DType::I64, self.interface.size(value)?);
                asm.whole(asm.cast(number, dtype)?, 1)
            }
        }
    }

    fn address(&self, place: Place) -> Result<PointerValue<'cx>> {
        let base = match place.base {
            Base::Input(index) => self.inputs.get(index).copied(),
            Base::Output(index) => self.outputs.get(index).copied(),
            Base::Constant(index) => {
                self.constants.get(index).map(|constant| constant.as_pointer_value())
            }
            Base::Workspace => Some(self.workspace),
        };
        let Some(base) = base else { return Problem::malformed("an address of nothing") };
        let (asm, offset) = (self.interface.asm, self.interface.size(place.offset)?);
        asm.element(base, asm.cx.i8_type().into(), offset)
    }
}

/// The kernels as functions, with the parameters that their calls give them.
fn declare_kernels<'cx>(interface: &Interface<'cx, '_>) -> Result<Vec<Option<FunctionValue<'cx>>>> {
    let (asm, entry) = (interface.asm, interface.entry);
    let cx = asm.cx;
    let pointer = cx.ptr_type(AddressSpace::default());
    let mut kernels = vec![None; entry.kernels.len()];
    for call in entry.calls() {
        let (Some(slot), Some(symbol)) =
            (kernels.get_mut(call.kernel), entry.kernels.get(call.kernel))
        else {
            return Problem::malformed("a call of no kernel");
        };
        if slot.is_some() {
            continue;
        }
        let mut params: Vec<BasicMetadataTypeEnum<'cx>> = Vec::with_capacity(call.args.len() + 2);
        for arg in &call.args {
            params.push(match arg {
                EntryArgument::Memory(_) => pointer.into(),
                EntryArgument::Scalar { dtype, .. } => Class::of(*dtype)?.register(cx).into(),
            });
        }
        let int = BasicMetadataTypeEnum::from(cx.i64_type());
        params.extend(std::iter::repeat_n(int, call.symbols.len()));
        params.extend([BasicMetadataTypeEnum::from(pointer), pointer.into()]);
        let ty = cx.i32_type().fn_type(&params, false);
        let func = asm.module.add_function(symbol, ty, None);
        decorate(func, asm.target);
        *slot = Some(func);
    }
    Ok(kernels)
}

fn status_of<'cx>(result: inkwell::values::CallSiteValue<'cx>) -> Result<IntValue<'cx>> {
    match result.try_as_basic_value().basic() {
        Some(BasicValueEnum::IntValue(status)) => Ok(status),
        _ => Problem::malformed("a kernel without a status"),
    }
}
