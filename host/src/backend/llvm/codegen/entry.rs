//! The function that runs a whole model.
//!
//! ```c
//! int32_t tenon_main(const DLTensor *inputs, DLTensor *outputs, void *workspace,
//!                    const struct tenon_parallel *parallel);
//! ```
//!
//! It checks its arguments (`check`), calls the kernels in order with addresses that are known up
//! to the start of an argument, a constant or the workspace, and copies what no kernel could write
//! to its place in the outputs. It allocates nothing and may run on several threads at once.

use inkwell::{
    AddressSpace, IntPredicate,
    basic_block::BasicBlock,
    context::Context,
    memory_buffer::MemoryBuffer,
    module::{Linkage, Module},
    types::BasicMetadataTypeEnum,
    values::{
        BasicMetadataValueEnum, BasicValueEnum, FunctionValue, GlobalValue, IntValue, PhiValue,
        PointerValue,
    },
};

use super::{
    assembler::Assembler,
    check::TensorLayout,
    error::{BackendError, Problem, Result},
    scratch::ALIGN,
    value::Class,
};
use crate::{
    backend::llvm::{
        LlvmError,
        attributes::{Pointer, decorate, decorate_pointer},
    },
    plan::{Base, ENTRY_SYMBOL, Entry, EntryArgument, KernelCall, Place},
    runtime::{
        dlpack::DataType,
        profile::MARK,
        signature::{TensorSpec, data_type},
        status::Failure,
    },
    target::Target,
};

/// The module that holds the function.
pub fn build_entry<'cx>(
    cx: &'cx Context,
    target: &Target,
    entry: &Entry,
) -> std::result::Result<Module<'cx>, BackendError> {
    let check = layout(target).check();
    let text = MemoryBuffer::create_from_memory_range_copy(check.as_bytes(), "check");
    let module = cx.create_module_from_ir(text).map_err(|error| LlvmError::InvalidModule {
        unit: ENTRY_SYMBOL.to_owned(),
        message: error.to_string(),
    })?;
    module.set_name(ENTRY_SYMBOL);
    let asm = Assembler { cx, module: &module, builder: cx.create_builder(), target, mask: None };
    Builder::new(&asm, entry)
        .and_then(|mut builder| builder.build())
        .map_err(|problem| problem.of(ENTRY_SYMBOL))?;
    Ok(module)
}

fn layout(target: &Target) -> TensorLayout {
    TensorLayout::new(target.architecture().pointer_bytes())
}

struct Builder<'cx, 'a> {
    asm: &'a Assembler<'cx, 'a>,
    entry: &'a Entry,
    func: FunctionValue<'cx>,
    check: FunctionValue<'cx>,
    params: [PointerValue<'cx>; 4],
    /// Where failures end, and their statuses.
    failed: BasicBlock<'cx>,
    status: PhiValue<'cx>,
    inputs: Vec<PointerValue<'cx>>,
    outputs: Vec<PointerValue<'cx>>,
    constants: Vec<GlobalValue<'cx>>,
}

impl<'cx, 'a> Builder<'cx, 'a> {
    fn new(asm: &'a Assembler<'cx, 'a>, entry: &'a Entry) -> Result<Builder<'cx, 'a>> {
        let (cx, module, target) = (asm.cx, asm.module, asm.target);
        let pointer = cx.ptr_type(AddressSpace::default());
        let ty = cx.i32_type().fn_type(&[pointer.into(); 4], false);
        let func = module.add_function(ENTRY_SYMBOL, ty, None);
        decorate(func, target);
        if entry.workspace > 0 {
            decorate_pointer(func, 2, Pointer { noalias: true, ..Pointer::default() });
        }
        let Some(check) = module.get_function("tenon.check") else {
            return Problem::malformed("the check of arguments is missing");
        };
        decorate(check, target);
        let params = [0, 1, 2, 3].map(|index| func.get_nth_param(index));
        let [
            Some(BasicValueEnum::PointerValue(inputs)),
            Some(BasicValueEnum::PointerValue(outputs)),
            Some(BasicValueEnum::PointerValue(workspace)),
            Some(BasicValueEnum::PointerValue(parallel)),
        ] = params
        else {
            return Problem::malformed("an entry without parameters");
        };
        let begin = cx.append_basic_block(func, "entry");
        let failed = cx.append_basic_block(func, "failed");
        asm.builder.position_at_end(failed);
        let status = asm.builder.build_phi(cx.i32_type(), "status")?;
        asm.builder.build_return(Some(&status.as_basic_value()))?;
        asm.builder.position_at_end(begin);
        let constants = entry.constants.iter().map(|symbol| {
            // Seen through the GOT, so that they may be anywhere.
            let constant = module.add_global(cx.i8_type(), None, symbol);
            constant.set_constant(true);
            constant.set_alignment(ALIGN as u32);
            constant
        });
        Ok(Builder {
            asm,
            entry,
            func,
            check,
            params: [inputs, outputs, workspace, parallel],
            failed,
            status,
            inputs: Vec::new(),
            outputs: Vec::new(),
            constants: constants.collect(),
        })
    }

    fn build(&mut self) -> Result<()> {
        let [inputs, outputs, ..] = self.params;
        self.inputs = self.tensors(inputs, &self.entry.inputs, 0)?;
        self.outputs = self.tensors(outputs, &self.entry.outputs, self.entry.inputs.len())?;
        if self.entry.workspace > 0 {
            self.check_workspace()?;
        }
        let kernels = self.declare_kernels()?;
        let mark = self.entry.is_profiled.then(|| {
            let nothing = self.asm.cx.void_type().fn_type(&[], false);
            self.asm.module.add_function(MARK, nothing, None)
        });
        let mark =
            || mark.map_or(Ok(()), |mark| self.asm.builder.build_call(mark, &[], "").map(drop));
        mark()?;
        for call in &self.entry.calls {
            let Some(&Some(kernel)) = kernels.get(call.kernel) else {
                return Problem::malformed("a call of no kernel");
            };
            self.call(kernel, call)?;
            mark()?;
        }
        for copy in &self.entry.copies {
            let (from, to) = (self.address(copy.from)?, self.address(copy.to)?);
            let bytes = self.asm.index(copy.bytes as i64);
            self.asm.builder.build_memcpy(to, 1, from, 1, bytes)?;
        }
        let success = self.asm.cx.i32_type().const_zero();
        self.asm.builder.build_return(Some(&success))?;
        Ok(())
    }

    /// Checks an array of `DLTensor`; gives the addresses of their elements.
    fn tensors(
        &self,
        array: PointerValue<'cx>,
        specs: &[TensorSpec],
        first: usize,
    ) -> Result<Vec<PointerValue<'cx>>> {
        if specs.is_empty() {
            return Ok(Vec::new());
        }
        let is_null = self.asm.builder.build_is_null(array, "")?;
        self.fail_if(is_null, self.code(Failure::Null as i32))?;
        let byte = self.asm.cx.i8_type().into();
        let layout = layout(self.asm.target);
        let mut addresses = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            let at = |offset: u32| {
                let offset = index as i64 * i64::from(layout.size()) + i64::from(offset);
                self.asm.element(array, byte, self.asm.index(offset))
            };
            let tensor = at(0)?;
            let spec = self.spec(spec)?.as_pointer_value();
            let call =
                self.asm.builder.build_call(self.check, &[tensor.into(), spec.into()], "")?;
            let Some(BasicValueEnum::IntValue(code)) = call.try_as_basic_value().basic() else {
                return Problem::malformed("the check has no result");
            };
            let zero = self.asm.cx.i32_type().const_zero();
            let is_bad = self.asm.builder.build_int_compare(IntPredicate::NE, code, zero, "")?;
            let argument = self.code((first + index + 1) as i32 * 256);
            let status = self.asm.builder.build_or(code, argument, "")?;
            self.fail_if(is_bad, status)?;
            let pointer = self.asm.cx.ptr_type(AddressSpace::default());
            let data = self.asm.load(pointer.into(), tensor, 8)?.into_pointer_value();
            let offset = self.asm.load(self.asm.cx.i64_type().into(), at(layout.offset())?, 8)?;
            addresses.push(self.asm.element(data, byte, offset.into_int_value())?);
        }
        Ok(addresses)
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
        let shape: Vec<IntValue<'cx>> =
            spec.shape.iter().map(|&extent| self.asm.index(extent)).collect();
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

    fn check_workspace(&self) -> Result<()> {
        let b = &self.asm.builder;
        let address = b.build_ptr_to_int(self.params[2], self.asm.cx.i64_type(), "")?;
        let rest = b.build_and(address, self.asm.index(ALIGN as i64 - 1), "")?;
        let is_askew = b.build_int_compare(IntPredicate::NE, rest, self.asm.index(0), "")?;
        let is_null = b.build_is_null(self.params[2], "")?;
        let is_bad = b.build_or(is_askew, is_null, "")?;
        self.fail_if(is_bad, self.code(Failure::Workspace as i32))
    }

    /// The kernels as functions, with the parameters that their calls give them.
    fn declare_kernels(&self) -> Result<Vec<Option<FunctionValue<'cx>>>> {
        let cx = self.asm.cx;
        let pointer = cx.ptr_type(AddressSpace::default());
        let mut kernels = vec![None; self.entry.kernels.len()];
        for call in &self.entry.calls {
            let (Some(slot), Some(symbol)) =
                (kernels.get_mut(call.kernel), self.entry.kernels.get(call.kernel))
            else {
                return Problem::malformed("a call of no kernel");
            };
            if slot.is_some() {
                continue;
            }
            let mut params: Vec<BasicMetadataTypeEnum<'cx>> =
                Vec::with_capacity(call.args.len() + 2);
            for arg in &call.args {
                params.push(match arg {
                    EntryArgument::Memory(_) => pointer.into(),
                    EntryArgument::Scalar { dtype, .. } => Class::of(*dtype)?.register(cx).into(),
                });
            }
            params.extend([BasicMetadataTypeEnum::from(pointer), pointer.into()]);
            let ty = cx.i32_type().fn_type(&params, false);
            let func = self.asm.module.add_function(symbol, ty, None);
            decorate(func, self.asm.target);
            *slot = Some(func);
        }
        Ok(kernels)
    }

    fn call(&self, kernel: FunctionValue<'cx>, call: &KernelCall) -> Result<()> {
        let mut args: Vec<BasicMetadataValueEnum<'cx>> = Vec::with_capacity(call.args.len() + 2);
        for &arg in &call.args {
            args.push(match arg {
                EntryArgument::Memory(place) => self.address(place)?.into(),
                EntryArgument::Scalar { dtype, value } => {
                    let ty = Class::of(dtype)?.register(self.asm.cx);
                    self.asm.int_of(ty, value)?.into()
                }
            });
        }
        let scratch = Place { base: Base::Workspace, offset: self.entry.scratch };
        args.extend([self.address(scratch)?.into(), BasicMetadataValueEnum::from(self.params[3])]);
        let result = self.asm.builder.build_call(kernel, &args, "")?;
        let Some(BasicValueEnum::IntValue(status)) = result.try_as_basic_value().basic() else {
            return Problem::malformed("a kernel without a status");
        };
        let zero = self.asm.cx.i32_type().const_zero();
        let is_bad = self.asm.builder.build_int_compare(IntPredicate::NE, status, zero, "")?;
        self.fail_if(is_bad, self.code(Failure::Threads as i32))
    }

    fn address(&self, place: Place) -> Result<PointerValue<'cx>> {
        let base = match place.base {
            Base::Input(index) => self.inputs.get(index).copied(),
            Base::Output(index) => self.outputs.get(index).copied(),
            Base::Constant(index) => {
                self.constants.get(index).map(|constant| constant.as_pointer_value())
            }
            Base::Workspace => Some(self.params[2]),
        };
        let Some(base) = base else { return Problem::malformed("an address of nothing") };
        self.asm.element(base, self.asm.cx.i8_type().into(), self.asm.index(place.offset as i64))
    }

    fn code(&self, status: i32) -> IntValue<'cx> {
        self.asm.cx.i32_type().const_int(status as u64, true)
    }

    /// Ends the function with `status` when `cond` is true.
    fn fail_if(&self, cond: IntValue<'cx>, status: IntValue<'cx>) -> Result<()> {
        let b = &self.asm.builder;
        let Some(here) = b.get_insert_block() else {
            return Problem::malformed("no block to emit into");
        };
        let go_on = self.asm.cx.append_basic_block(self.func, "");
        b.build_conditional_branch(cond, self.failed, go_on)?;
        self.status.add_incoming(&[(&status, here)]);
        b.position_at_end(go_on);
        Ok(())
    }
}
