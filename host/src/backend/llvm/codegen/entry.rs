//! The functions that run a whole model, and that say how large what it needs is.
//!
//! ```c
//! int32_t tenon_main(const DLTensor *inputs, DLTensor *outputs, void *workspace,
//!                    const struct tenon_parallel *parallel);
//! int32_t tenon_sizes(const DLTensor *inputs, int64_t *extents, uint64_t *workspace);
//! ```
//!
//! `tenon_main` checks its arguments (`interface`), calls the kernels in order with addresses that are known up
//! to the start of an argument, a constant or the workspace, and copies what no kernel could write
//! to its place in the outputs. It allocates nothing and may run on several threads at once.
//!
//! `tenon_sizes` checks the inputs alone. It writes the extents of all outputs, one after the other, and the bytes of the
//! workspace; either place may be null.

use inkwell::{
    AddressSpace, IntPredicate,
    context::Context,
    memory_buffer::MemoryBuffer,
    module::Module,
    types::BasicMetadataTypeEnum,
    values::{BasicMetadataValueEnum, BasicValueEnum, FunctionValue, GlobalValue, PointerValue},
};

use super::{
    assembler::Assembler,
    error::{BackendError, Problem, Result},
    interface::{Given, Interface, layout},
    scratch::ALIGN,
    value::{Class, Value},
};
use crate::{
    backend::llvm::{
        LlvmError,
        attributes::{Pointer, decorate, decorate_pointer},
    },
    ir::DType,
    plan::{Base, ENTRY_SYMBOL, Entry, EntryArgument, KernelCall, Place, SIZES_SYMBOL, Size},
    runtime::{profile::MARK, status::Failure},
    target::Target,
};

/// The module that holds the functions.
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
    build_sizes(&asm, entry)
        .and_then(|()| Builder::new(&asm, entry)?.build())
        .map_err(|problem| problem.of(ENTRY_SYMBOL))?;
    Ok(module)
}

fn build_sizes<'cx>(asm: &Assembler<'cx, '_>, entry: &Entry) -> Result<()> {
    let mut interface = Interface::new(asm, entry, SIZES_SYMBOL, 3)?;
    let [inputs, extents, workspace] = [0, 1, 2].map(|index| interface.param(index));
    interface.inputs(inputs?)?;
    interface.check_memory(entry.workspace)?;
    let shapes: Vec<Size> = entry.output_shapes.iter().flatten().copied().collect();
    write_numbers(&interface, extents?, &shapes)?;
    write_numbers(&interface, workspace?, &[entry.workspace])?;
    interface.succeed()
}

/// Writes numbers one after the other, unless the place is null.
fn write_numbers<'cx>(
    interface: &Interface<'cx, '_>,
    place: PointerValue<'cx>,
    numbers: &[Size],
) -> Result<()> {
    let (asm, b) = (interface.asm, &interface.asm.builder);
    let [write, after] =
        ["write", "after"].map(|name| asm.cx.append_basic_block(interface.func, name));
    b.build_conditional_branch(b.build_is_null(place, "")?, after, write)?;
    b.position_at_end(write);
    write_side_by_side(interface, place, numbers)?;
    b.build_unconditional_branch(after)?;
    b.position_at_end(after);
    Ok(())
}

fn write_side_by_side<'cx>(
    interface: &Interface<'cx, '_>,
    place: PointerValue<'cx>,
    numbers: &[Size],
) -> Result<()> {
    let asm = interface.asm;
    for (index, &number) in numbers.iter().enumerate() {
        let place = asm.element(place, asm.cx.i64_type().into(), asm.index(index as i64))?;
        asm.store(place, interface.size(number)?.into(), 8)?;
    }
    Ok(())
}

struct Builder<'cx, 'a> {
    interface: Interface<'cx, 'a>,
    workspace: PointerValue<'cx>,
    parallel: PointerValue<'cx>,
    inputs: Vec<Given<'cx>>,
    outputs: Vec<Given<'cx>>,
    constants: Vec<GlobalValue<'cx>>,
}

impl<'cx, 'a> Builder<'cx, 'a> {
    fn new(asm: &'a Assembler<'cx, 'a>, entry: &'a Entry) -> Result<Builder<'cx, 'a>> {
        let interface = Interface::new(asm, entry, ENTRY_SYMBOL, 4)?;
        if entry.workspace != Size::Known(0) {
            let facts = Pointer { noalias: true, ..Pointer::default() };
            decorate_pointer(interface.func, 2, facts);
        }
        let constants = entry.constants.iter().map(|symbol| {
            // Seen through the GOT, so that they may be anywhere.
            let constant = asm.module.add_global(asm.cx.i8_type(), None, symbol);
            constant.set_constant(true);
            constant.set_alignment(ALIGN as u32);
            constant
        });
        Ok(Builder {
            workspace: interface.param(2)?,
            parallel: interface.param(3)?,
            inputs: Vec::new(),
            outputs: Vec::new(),
            constants: constants.collect(),
            interface,
        })
    }

    fn build(&mut self) -> Result<()> {
        let (asm, entry) = (self.interface.asm, self.interface.entry);
        self.inputs = self.interface.inputs(self.interface.param(0)?)?;
        self.outputs = self.interface.outputs(self.interface.param(1)?)?;
        if entry.workspace != Size::Known(0) {
            self.check_workspace()?;
        }
        for write in &entry.writes {
            write_side_by_side(&self.interface, self.address(write.to)?, &write.numbers)?;
        }
        let kernels = self.declare_kernels()?;
        let mark = entry.is_profiled.then(|| {
            let nothing = asm.cx.void_type().fn_type(&[], false);
            asm.module.add_function(MARK, nothing, None)
        });
        let mark = || mark.map_or(Ok(()), |mark| asm.builder.build_call(mark, &[], "").map(drop));
        mark()?;
        for call in &entry.calls {
            let Some(&Some(kernel)) = kernels.get(call.kernel) else {
                return Problem::malformed("a call of no kernel");
            };
            self.call(kernel, call)?;
            mark()?;
        }
        for copy in &entry.copies {
            let (from, to) = (self.address(copy.from)?, self.address(copy.to)?);
            let bytes = self.interface.size(copy.bytes)?;
            asm.builder.build_memcpy(to, 1, from, 1, bytes)?;
        }
        self.interface.succeed()
    }

    fn check_workspace(&self) -> Result<()> {
        let (interface, asm) = (&self.interface, self.interface.asm);
        let b = &asm.builder;
        interface.check_memory(interface.entry.workspace)?;
        let address = b.build_ptr_to_int(self.workspace, asm.cx.i64_type(), "")?;
        let rest = b.build_and(address, asm.index(ALIGN as i64 - 1), "")?;
        let is_askew = b.build_int_compare(IntPredicate::NE, rest, asm.index(0), "")?;
        let is_null = b.build_is_null(self.workspace, "")?;
        let is_bad = b.build_or(is_askew, is_null, "")?;
        interface.fail_if(is_bad, interface.code(Failure::Workspace as i32))
    }

    /// The kernels as functions, with the parameters that their calls give them.
    fn declare_kernels(&self) -> Result<Vec<Option<FunctionValue<'cx>>>> {
        let (asm, entry) = (self.interface.asm, self.interface.entry);
        let cx = asm.cx;
        let pointer = cx.ptr_type(AddressSpace::default());
        let mut kernels = vec![None; entry.kernels.len()];
        for call in &entry.calls {
            let (Some(slot), Some(symbol)) =
                (kernels.get_mut(call.kernel), entry.kernels.get(call.kernel))
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

    fn call(&self, kernel: FunctionValue<'cx>, call: &KernelCall) -> Result<()> {
        let (interface, asm) = (&self.interface, self.interface.asm);
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
        let result = asm.builder.build_call(kernel, &args, "")?;
        let Some(BasicValueEnum::IntValue(status)) = result.try_as_basic_value().basic() else {
            return Problem::malformed("a kernel without a status");
        };
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
            Base::Input(index) => self.inputs.get(index).map(|given| given.data),
            Base::Output(index) => self.outputs.get(index).map(|given| given.data),
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
